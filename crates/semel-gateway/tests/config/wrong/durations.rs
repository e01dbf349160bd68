//! Durations and sizes: which are wrong, alone or together.

use super::assert_errors;

#[test]
fn durations() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
store_timeout = 2
[[route]]
operation = "create_payment"
match = "POST /payments"
lease = "1h30m"
timeout = "25 seconds"
retention = "24"
tombstone = "200000d"
"#,
        r#"
error: `store_timeout` must be a duration in quotes, not a number
 --> semel.toml:2:17
  |
2 | store_timeout = 2
  |                 ^
  = help: write store_timeout = "2s"

error: "1h30m" is not a duration
 --> semel.toml:6:9
  |
6 | lease = "1h30m"
  |         ^^^^^^^
  = help: a duration is a whole number and its unit, one of ms, s, m, h and d: "250ms", "30s", "5m", "24h", "7d"

error: "25 seconds" is not how a duration is written
 --> semel.toml:7:11
  |
7 | timeout = "25 seconds"
  |           ^^^^^^^^^^^^
  = help: write "25s"

error: "24" has no unit
 --> semel.toml:8:13
  |
8 | retention = "24"
  |             ^^^^
  = help: write "24s" if that is meant; a duration is a whole number and its unit, one of ms, s, m, h and d: "250ms", "30s", "5m", "24h", "7d"

error: `tombstone` cannot be "200000d"
 --> semel.toml:9:13
  |
9 | tombstone = "200000d"
  |             ^^^^^^^^^
  = help: write something from "0s" to "36500d"
"#,
    );
}

#[test]
fn sizes() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
max_request_body = "1MB"
max_stored_response = 1024
"#,
        r#"
error: "1MB" is not how a size is written
 --> semel.toml:5:20
  |
5 | max_request_body = "1MB"
  |                    ^^^^^
  = help: write "1MiB"

error: `max_stored_response` must be a size in quotes, not a number
 --> semel.toml:6:23
  |
6 | max_stored_response = 1024
  |                       ^^^^
  = help: write max_stored_response = "1MiB"
"#,
    );
}

#[test]
fn a_timeout_as_long_as_the_lease() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
lease = "30s"
timeout = "30s"
"#,
        r#"
error: `timeout` (30s) must be shorter than `lease` (30s)
 --> semel.toml:6:11
  |
6 | timeout = "30s"
  |           ^^^^^
  = help: write less than "30s", or a `lease` longer than "30s"
"#,
    );
}

#[test]
fn a_lease_below_the_usual_timeout() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
lease = "10s"
"#,
        r#"
error: `timeout` (25s, its default) must be shorter than `lease` (10s)
 --> semel.toml:5:9
  |
5 | lease = "10s"
  |         ^^^^^
  = help: write more than "25s", or a `timeout` shorter than "10s"
"#,
    );
}

#[test]
fn a_body_that_would_outlive_its_record() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
retention = "1h"
body_retention = "24h"
"#,
        r#"
error: `body_retention` (24h) is longer than `retention` (1h)
 --> semel.toml:6:18
  |
6 | body_retention = "24h"
  |                  ^^^^^
  = help: write at most "1h", or raise `retention`: a body is kept no longer than its record
"#,
    );
}

#[test]
fn a_wait_that_is_too_long() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
in_flight = "wait:1m"
"#,
        r#"
error: duplicates would wait 1m, longer than the first request may take (25s, `timeout`)
 --> semel.toml:5:13
  |
5 | in_flight = "wait:1m"
  |             ^^^^^^^^^
  = help: write at most "wait:25s"
"#,
    );
}
