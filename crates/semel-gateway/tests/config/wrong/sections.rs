//! What is wrong with the sections that have few settings: keys, quotas, limits, logs, workers.

use super::assert_errors;

#[test]
fn keys() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[key]
syntax = "quoted"
min_length = 40
max_length = 30
"#,
        r#"
error: `syntax` cannot be "quoted"
 --> semel.toml:3:10
  |
3 | syntax = "quoted"
  |          ^^^^^^^^
  = help: write one of "lenient", "structured", "opaque"

error: `min_length` (40) is more than `max_length` (30)
 --> semel.toml:5:14
  |
5 | max_length = 30
  |              ^^
  = help: write a `min_length` that is no more than `max_length` (16 and 255 if left out)
"#,
    );
}

#[test]
fn a_cache_without_an_address_or_at_none() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cache]
url = "localhost:6379"
timeout = "2s"
ca = "/etc/semel/redis-ca.crt"
"#,
        r#"
error: invalid Redis URL
 --> semel.toml:3:7
  |
3 | url = "localhost:6379"
  |       ^^^^^^^^^^^^^^^^
  = help: a Redis URL begins with redis://, redis+cluster:// or redis+sentinel://, or with rediss instead of redis for TLS

error: `timeout` cannot be "2s"
 --> semel.toml:4:11
  |
4 | timeout = "2s"
  |           ^^^^
  = help: write something from "1ms" to "1s"
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cache]
guard = true
"#,
        r#"
error: `url` is missing from this [cache]
 --> semel.toml:2:1
  |
2 | [cache]
  | ^^^^^^^
  = help: add url = "redis://127.0.0.1"
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cache]
url = "redis://127.0.0.1"
ca = "/etc/semel/redis-ca.crt"
"#,
        r#"
error: `ca` has no effect: `url` does not begin with rediss
 --> semel.toml:4:6
  |
4 | ca = "/etc/semel/redis-ca.crt"
  |      ^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write url = "rediss://…", or remove `ca`
"#,
    );
}

#[test]
fn quotas_that_limit_nothing_or_twice() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[quota]
live_keys = 0
burst = 10
[[quota.tenant]]
name = "acme"
[[quota.tenant]]
name = "acme"
"#,
        r#"
error: `live_keys` cannot be 0
 --> semel.toml:3:13
  |
3 | live_keys = 0
  |             ^
  = help: write a number from 1 to 100000000

error: `burst` has no effect without `new_keys_per_second`
 --> semel.toml:4:9
  |
4 | burst = 10
  |         ^^
  = help: add new_keys_per_second = 100, or remove it

error: the tenant "acme" is given twice
 --> semel.toml:8:8
  |
8 | name = "acme"
  |        ^^^^^^
  = help: keep one of the two
"#,
    );
}

#[test]
fn limits() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[limits]
header_bytes = "1KiB"
connections = 0
requests_in_flight = "many"
upstream_give_up = "10s"
body_timeot = "3s"
body_memory = "1MiB"
connect_timeout = "3s"
[[route]]
operation = "create_payment"
match = "POST /payments"
max_request_body = "2MiB"
[[route]]
operation = "create_refund"
match = "POST /refunds"
timeout = "4s"
"#,
        r#"
error: `header_bytes` cannot be "1KiB"
 --> semel.toml:3:16
  |
3 | header_bytes = "1KiB"
  |                ^^^^^^
  = help: write something from "8KiB" to "1MiB"

error: `connections` cannot be 0
 --> semel.toml:4:15
  |
4 | connections = 0
  |               ^
  = help: write a number from 1 to 1000000

error: `requests_in_flight` must be a whole number, not a string
 --> semel.toml:5:22
  |
5 | requests_in_flight = "many"
  |                      ^^^^^^
  = help: write one from 1 to 1000000, without quotes

error: the gateway would give up on the service before its `timeout`
 --> semel.toml:6:20
  |
6 | upstream_give_up = "10s"
  |                    ^^^^^
  = help: write at least "25s", the longest `timeout` of a route

error: `body_timeot` is not a setting of [limits]
 --> semel.toml:7:1
  |
7 | body_timeot = "3s"
  | ^^^^^^^^^^^
  = help: did you mean `body_timeout`?

error: `body_memory` is smaller than a route's `max_request_body`
 --> semel.toml:8:15
  |
8 | body_memory = "1MiB"
  |               ^^^^^^
  = help: write at least "2MiB", the largest `max_request_body` of a route

error: an operation could end in doubt before the service is known to be unreachable
 --> semel.toml:9:19
  |
9 | connect_timeout = "3s"
  |                   ^^^^
  = help: write at most "2s", half of the shortest `timeout` of a route
"#,
    );
}

#[test]
fn logs() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[logs]
format = "yaml"
level = "warning"
"#,
        r#"
error: `format` cannot be "yaml"
 --> semel.toml:3:10
  |
3 | format = "yaml"
  |          ^^^^^^
  = help: write one of "text", "json"

error: `level` cannot be "warning"
 --> semel.toml:4:9
  |
4 | level = "warning"
  |         ^^^^^^^^^
  = help: did you mean "warn"?
"#,
    );
}

#[test]
fn workers() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[worker]
in_gateway = "no"
forget = "never"
every = "1s"
"#,
        r#"
error: `in_gateway` must be true or false, not a string
 --> semel.toml:3:14
  |
3 | in_gateway = "no"
  |              ^^^^
  = help: write in_gateway = true or in_gateway = false, without quotes

error: `forget` cannot be "never"
 --> semel.toml:4:10
  |
4 | forget = "never"
  |          ^^^^^^^
  = help: write one of "hard", "soft"

error: `every` is not a setting of [worker]
 --> semel.toml:5:1
  |
5 | every = ****
  | ^^^^^
  = help: settings here: in_gateway, forget, audit_retention
"#,
    );
}
