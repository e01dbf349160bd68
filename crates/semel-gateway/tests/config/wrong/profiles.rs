//! What is wrong with `[profiles.NAME]`.

use super::assert_errors;

#[test]
fn a_template_with_an_unknown_placeholder_is_told_at_its_place() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
profile = "mybank"
[profiles.mybank]
body = '{"error": {"code": "{cod}", "message": "{key}"}}'
"#,
        r#"
error: {cod} is not a placeholder
 --> semel.toml:4:29
  |
4 | body = '{"error": {"code": "{cod}", "message": "{key}"}}'
  |                             ^
  = help: did you mean {code}?
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[profiles.mybank]
body = """
{"error": {
  "message": {detail}
}}"""
"#,
        r#"
error: the template is not JSON: key must be a string
 --> semel.toml:5:15
  |
5 |   "message": {detail}
  |               ^
  = help: write JSON, with placeholders inside strings: {"error": {"code": "{code}"}}
"#,
    );
}

#[test]
fn statuses_and_names_that_do_not_exist() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
profile = "mybnak"
[profiles.mybank]
extends = "strip"
status = { key_resued = 409, in_progress = 200 }
"#,
        r#"
error: `profile` cannot be "mybnak"
 --> semel.toml:2:11
  |
2 | profile = "mybnak"
  |           ^^^^^^^^
  = help: did you mean "mybank"?

error: `extends` cannot be "strip"
 --> semel.toml:4:11
  |
4 | extends = "strip"
  |           ^^^^^^^
  = help: did you mean "stripe"?

error: unknown refusal `key_resued`
 --> semel.toml:5:12
  |
5 | status = { key_resued = 409, in_progress = 200 }
  |            ^^^^^^^^^^
  = help: did you mean `key_reused`?

error: invalid status for `in_progress`
 --> semel.toml:5:44
  |
5 | status = { key_resued = 409, in_progress = 200 }
  |                                            ^^^
  = help: write a number from 400 to 599, without quotes
"#,
    );
}

#[test]
fn a_202_that_clients_take_for_success() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
profile = "stripe"
[[route]]
operation = "create_payment"
match = "POST /payments"
in_flight = "accepted"
"#,
        r#"
error: clients of the profile "stripe" take a 202 for success
 --> semel.toml:6:13
  |
6 | in_flight = "accepted"
  |             ^^^^^^^^^^
  = help: write "conflict", or "wait:5s"
"#,
    );
}
