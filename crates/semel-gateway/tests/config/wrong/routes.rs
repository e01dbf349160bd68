//! What is wrong with a route.

use super::assert_errors;

#[test]
fn words_of_a_route() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
key = "requird"
expired = "forget"
in_flight = "wait"
stale = "rerun"
store_response = "ful"
"#,
        r#"
error: `key` cannot be "requird"
 --> semel.toml:5:7
  |
5 | key = "requird"
  |       ^^^^^^^^^
  = help: did you mean "required"?

error: `expired` cannot be "forget"
 --> semel.toml:6:11
  |
6 | expired = "forget"
  |           ^^^^^^^^
  = help: write one of "refuse", "new"

error: `wait` does not say how long
 --> semel.toml:7:13
  |
7 | in_flight = "wait"
  |             ^^^^^^
  = help: write "wait:5s"

error: `stale = "rerun"` is not available in a gateway: it cannot know that the first attempt left no effect
 --> semel.toml:8:9
  |
8 | stale = "rerun"
  |         ^^^^^^^
  = help: write "unknown", or "resume" if the service itself refuses late attempts, by  `Semel-Operation-Id` and `Semel-Attempt`

error: `store_response` cannot be "ful"
 --> semel.toml:9:18
  |
9 | store_response = "ful"
  |                  ^^^^^
  = help: did you mean "full"?
"#,
    );
}

#[test]
fn a_route_without_its_names() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
key = "required"
"#,
        r#"
error: `match` is missing from this [[route]]
 --> semel.toml:2:1
  |
2 | [[route]]
  | ^^^^^^^^^
  = help: add match = "POST /payments"
"#,
    );
}

#[test]
fn methods_that_cannot_be_protected() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "b"
match = "GET /b"
[[route]]
operation = "c"
match = "post /c"
"#,
        r#"
error: GET is safe and needs no key
 --> semel.toml:4:9
  |
4 | match = "GET /b"
  |         ^^^^^^^^
  = help: declare POST, PATCH, PUT and DELETE; take this route out

error: "post" is not a method that can be protected
 --> semel.toml:7:9
  |
7 | match = "post /c"
  |         ^^^^^^^^^
  = help: methods are written in upper case: POST
"#,
    );
}

#[test]
fn paths_that_are_none() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "a"
match = "POST /a/:id"
[[route]]
operation = "b"
match = "POST /b/*"
[[route]]
operation = "c"
match = "/c"
"#,
        r#"
error: ":id" would match only itself
 --> semel.toml:4:9
  |
4 | match = "POST /a/:id"
  |         ^^^^^^^^^^^^^
  = help: write {id}

error: `*` matches nothing here
 --> semel.toml:7:9
  |
7 | match = "POST /b/*"
  |         ^^^^^^^^^^^
  = help: write {name} for one segment, or ** as the last one for all that follow

error: there is no method before the path
  --> semel.toml:10:9
   |
10 | match = "/c"
   |         ^^^^
   = help: write a method and a path: "POST /payments", "PATCH /payments/{id}" or "POST /**"
"#,
    );
}

#[test]
fn the_same_operation_and_the_same_requests() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
[[route]]
operation = "create_payment"
match = "POST /payments"
"#,
        r#"
error: the operation "create_payment" is already declared on line 2
 --> semel.toml:6:13
  |
6 | operation = "create_payment"
  |             ^^^^^^^^^^^^^^^^
  = help: give each route its own name: a key counts within its operation

error: the route on line 4, "POST /payments", already matches all of this
 --> semel.toml:7:9
  |
7 | match = "POST /payments"
  |         ^^^^^^^^^^^^^^^^
 ::: semel.toml:4:9
  |
4 | match = "POST /payments"
  |         ^^^^^^^^^^^^^^^^
  = help: remove one of the two
"#,
    );
}

#[test]
fn requests_of_two_routes() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "a"
match = "POST /a/{x}"
[[route]]
operation = "b"
match = "POST /{y}/b"
"#,
        r#"
error: some requests would match both this and "POST /a/{x}" on line 4, and neither is more specific
 --> semel.toml:7:9
  |
7 | match = "POST /{y}/b"
  |         ^^^^^^^^^^^^^
 ::: semel.toml:4:9
  |
4 | match = "POST /a/{x}"
  |         ^^^^^^^^^^^^^
  = help: segment by segment, a literal is more specific than {name}, and {name} than **: change one of the two so that it matches a part of the other, or nothing of it
"#,
    );
}

#[test]
fn requests_of_a_route_and_a_catch_all() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
match = "POST /a/**"
[[route]]
match = "POST /{y}/b"
[[route]]
match = "POST /**/b"
"#,
        r#"
error: some requests would match both this and "POST /a/**" on line 3, and neither is more specific
 --> semel.toml:5:9
  |
5 | match = "POST /{y}/b"
  |         ^^^^^^^^^^^^^
 ::: semel.toml:3:9
  |
3 | match = "POST /a/**"
  |         ^^^^^^^^^^^^
  = help: segment by segment, a literal is more specific than {name}, and {name} than **: change one of the two so that it matches a part of the other, or nothing of it

error: `**` is not the last segment
 --> semel.toml:7:9
  |
7 | match = "POST /**/b"
  |         ^^^^^^^^^^^^
  = help: end the path with it, and write {name} for one segment
"#,
    );
}

#[test]
fn retentions_that_a_profile_does_not_have() {
    for (profile, retention, problem, cure) in [
        (
            "acp",
            "23h",
            "is shorter than the profile \"acp\" promises its clients (24h)",
            "write at least \"24h\"",
        ),
        (
            "ucp",
            "1h",
            "is shorter than the profile \"ucp\" promises its clients (24h)",
            "write at least \"24h\"",
        ),
        (
            "adcp",
            "59m",
            "is shorter than the profile \"adcp\" promises its clients (1h)",
            "write at least \"1h\"",
        ),
        ("adcp", "8d", "is longer than the profile \"adcp\" allows (7d)", "write at most \"7d\""),
    ] {
        let marks = "^".repeat(retention.len() + 2);
        assert_errors(
            &format!(
                "upstream = \"http://127.0.0.1:9000\"\nprofile = \"{profile}\"\n[[route]]\nmatch = \"POST /a\"\nretention = \"{retention}\"\n"
            ),
            &format!(
                "error: `retention` ({retention}) {problem}\n --> semel.toml:5:13\n  |\n5 | retention = \"{retention}\"\n  |             {marks}\n  = help: {cure}\n"
            ),
        );
    }
}

#[test]
fn a_former_scope_that_is_the_scope() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
profile = "stripe"
[key]
former_scope = "tenant"
[[route]]
match = "POST /a"
key.scope = "operation"
key.former_scope = "tennant"
"#,
        r#"
error: "tenant" is the scope that keys have now
 --> semel.toml:4:16
  |
4 | former_scope = "tenant"
  |                ^^^^^^^^
  = help: write the scope that they had before, or remove it

error: `former_scope` cannot be "tennant"
 --> semel.toml:8:20
  |
8 | key.former_scope = "tennant"
  |                    ^^^^^^^^^
  = help: did you mean "tenant"?
"#,
    );
}

#[test]
fn places_where_no_key_can_be() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["header:x-account"]
[key]
from = ["query:key", "header:authorization", "json:key", "header:X-Account", "json:/key", "json:/key"]
[[route]]
operation = "a"
match = "POST /a"
max_request_body = "0B"
"#,
        r#"
error: "query:key" is not a place where a key could be
 --> semel.toml:5:9
  |
5 | from = ["query:key", "header:authorization", "json:key", "header:X-Account", "json:/key", "json:/key"]
  |         ^^^^^^^^^^^
  = help: write "header:idempotency-key" or "json:/idempotency_key"

error: `authorization` cannot hold the key: it is a credential
 --> semel.toml:5:22
  |
5 | from = ["query:key", "header:authorization", "json:key", "header:X-Account", "json:/key", "json:/key"]
  |                      ^^^^^^^^^^^^^^^^^^^^^^
  = help: name the header that clients send the key in: "header:x-idempotency-key"

error: "key" is not a JSON Pointer: it must start with a slash, such as "/metadata/trace_id"
 --> semel.toml:5:46
  |
5 | from = ["query:key", "header:authorization", "json:key", "header:X-Account", "json:/key", "json:/key"]
  |                                              ^^^^^^^^^^
  = help: write a pointer to a string in the body: "json:/idempotency_key"

error: `x-account` tells tenants apart, so it cannot hold the key
 --> semel.toml:5:58
  |
5 | from = ["query:key", "header:authorization", "json:key", "header:X-Account", "json:/key", "json:/key"]
  |                                                          ^^^^^^^^^^^^^^^^^^
  = help: name the header that clients send the key in

error: "json:/key" is in the list twice
 --> semel.toml:5:91
  |
5 | from = ["query:key", "header:authorization", "json:key", "header:X-Account", "json:/key", "json:/key"]
  |                                                                                           ^^^^^^^^^^^
  = help: remove one of the two

error: the key is in the body, and no request may have one
 --> semel.toml:9:20
  |
9 | max_request_body = "0B"
  |                    ^^^^
  = help: raise `max_request_body`, or take "json:…" out of `from`
"#,
    );
}

#[test]
fn defaults_are_wrong_where_they_are_written_and_once() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[defaults]
match = "POST /**"
retention = "1 day"
lease = "20s"
retentoin = "1h"
[defaults.outcome]
503 = "retriable"
[[route]]
operation = "a"
match = "POST /a"
[[route]]
operation = "b"
match = "POST /b"
timeout = "20s"
[[route]]
operation = "c"
match = "POST /c"
timeout = "15s"
"#,
        r#"
error: `match` is not a setting of [defaults]
 --> semel.toml:3:1
  |
3 | match = "POST /**"
  | ^^^^^
  = help: `match` is a setting of [[route]]: move it there

error: "1 day" is not how a duration is written
 --> semel.toml:4:13
  |
4 | retention = "1 day"
  |             ^^^^^^^
  = help: write "1d"

error: `timeout` (25s, its default) must be shorter than `lease` (20s)
 --> semel.toml:5:9
  |
5 | lease = "20s"
  |         ^^^^^
  = help: write more than "25s", or a `timeout` shorter than "20s"

error: `retentoin` is not a setting of [defaults]
 --> semel.toml:6:1
  |
6 | retentoin = "1h"
  | ^^^^^^^^^
  = help: did you mean `retention`?

error: invalid outcome for 503
 --> semel.toml:8:7
  |
8 | 503 = "retriable"
  |       ^^^^^^^^^^^
  = help: did you mean "retryable"?

error: `timeout` (20s) must be shorter than `lease` (20s)
  --> semel.toml:15:11
   |
15 | timeout = "20s"
   |           ^^^^^
   = help: write less than "20s", or a `lease` longer than "20s"
"#,
    );
}

#[test]
fn an_operation_that_cannot_be_a_name() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create payment"
match = "POST /payments"
"#,
        r#"
error: "create payment" is not a valid operation name
 --> semel.toml:3:13
  |
3 | operation = "create payment"
  |             ^^^^^^^^^^^^^^^^
  = help: use letters, digits, _, - and . only, at most 100: "create_payment"
"#,
    );
}

#[test]
fn outcomes() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.outcome]
503 = "retriable"
5xx = "failed"
101 = "completed"
418 = 1
"#,
        r#"
error: invalid outcome for 503
 --> semel.toml:6:7
  |
6 | 503 = "retriable"
  |       ^^^^^^^^^^^
  = help: did you mean "retryable"?

error: `5xx` is not a final status code
 --> semel.toml:7:1
  |
7 | 5xx = "failed"
  | ^^^
  = help: write a status from 200 to 599, 503 = "retryable", or one of gRPC, ABORTED = "unknown"

error: `101` is not a final status code
 --> semel.toml:8:1
  |
8 | 101 = "completed"
  | ^^^
  = help: write a status from 200 to 599, 503 = "retryable", or one of gRPC, ABORTED = "unknown"

error: invalid outcome for 418
 --> semel.toml:9:7
  |
9 | 418 = 1
  |       ^
  = help: for example 418 = "retryable"
"#,
    );
}

#[test]
fn headers_that_cannot_be_kept() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
keep_headers = ["Set-Cookie", "x-cost"]
"#,
        r#"
error: `set-cookie` cannot be kept for retries: cookies, credentials and hop-by-hop fields belong to one caller or one connection
 --> semel.toml:5:17
  |
5 | keep_headers = ["Set-Cookie", "x-cost"]
  |                 ^^^^^^^^^^^^
  = help: remove it
"#,
    );
}
