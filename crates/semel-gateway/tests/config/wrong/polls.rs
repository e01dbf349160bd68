//! Polls of a route.

use super::assert_errors;

#[test]
fn polls() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.reconcile]
poll = "http://{operation_id}.internal/"
every = "1ms"
attempts = 0
absence_is_proof = "yes"
"#,
        r#"
error: {operation_id} may stand in the path or the query, never in the host
 --> semel.toml:6:8
  |
6 | poll = "http://{operation_id}.internal/"
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write an address such as "http://127.0.0.1:9000/operations/{operation_id}"

error: `every` cannot be "1ms"
 --> semel.toml:7:9
  |
7 | every = "1ms"
  |         ^^^^^
  = help: write something from "100ms" to "24h"

error: `attempts` cannot be 0
 --> semel.toml:8:12
  |
8 | attempts = 0
  |            ^
  = help: write a number from 1 to 1000

error: `absence_is_proof` must be true or false, not a string
 --> semel.toml:9:20
  |
9 | absence_is_proof = "yes"
  |                    ^^^^^
  = help: write absence_is_proof = true or absence_is_proof = false, without quotes
"#,
    );
}

#[test]
fn a_poll_that_is_missing() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.reconcile]
attempts = 3
"#,
        r#"
error: `poll` is missing from this [route.reconcile]
 --> semel.toml:5:1
  |
5 | [route.reconcile]
  | ^^^^^^^^^^^^^^^^^
  = help: add poll = "http://127.0.0.1:9000/operations/{operation_id}"
"#,
    );
}

#[test]
fn files_for_tls_of_a_poll_without_tls() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.reconcile]
poll = "http://127.0.0.1:9000/operations/{operation_id}"
[route.reconcile.tls]
certificate = "/etc/semel/nothing.crt"
"#,
        r#"
error: `key` is missing from this [route.reconcile.tls]
 --> semel.toml:7:1
  |
7 | [route.reconcile.tls]
  | ^^^^^^^^^^^^^^^^^^^^^
  = help: add key = "/etc/semel/gateway.key"

error: [route.reconcile.tls] has no effect: `poll` is not an https:// URL
 --> semel.toml:7:1
  |
7 | [route.reconcile.tls]
  | ^^^^^^^^^^^^^^^^^^^^^
  = help: write poll = "https://…", or remove [route.reconcile.tls]
"#,
    );
}
