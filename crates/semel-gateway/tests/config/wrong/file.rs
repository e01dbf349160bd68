//! What is wrong with a file as such, and with what stands at its top.

use super::assert_errors;

#[test]
fn a_file_that_is_empty() {
    assert_errors(
        r#"
"#,
        r#"
error: `upstream` is missing
 --> semel.toml
  = help: add upstream = "http://127.0.0.1:9000"
"#,
    );
}

#[test]
fn broken_toml() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
listen = 127.0.0.1:8080
[admin
listen = "127.0.0.1:8081"
"#,
        r#"
error: this is not TOML: invalid float
 --> semel.toml:2:15
  |
2 | listen = 127.0.0.1:8080
  |               ^^^^^^^^^
  = help: if it is meant as text, put all of it in quotes

error: this is not TOML: unclosed table
 --> semel.toml:3:7
  |
3 | [admin
  |       ^
  = help: expected here: `]`
"#,
    );
}

#[test]
fn a_quote_that_does_not_close_hides_a_token() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
token = "s3cr3t-s3cr3t
listen = "127.0.0.1:8081"
"#,
        r#"
error: this is not TOML: invalid basic string
 --> semel.toml:3:23
  |
3 | token ****************
  |                       ^
  = help: expected here: `"`
"#,
    );
}

#[test]
fn a_token_without_quotes() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
token = s3cr3t
"#,
        r#"
error: this is not TOML: string values must be quoted
 --> semel.toml:3:9
  |
3 | token ********
  |         ^^^^^^
  = help: if it is meant as text, put all of it in quotes
"#,
    );
}

#[test]
fn a_section_twice() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
[admin]
"#,
        r#"
error: this is not TOML: duplicate key
 --> semel.toml:3:2
  |
3 | [admin]
  |  ^^^^^
  = help: it appears twice: keep one (every route starts with its own `[[route]]`)
"#,
    );
}

#[test]
fn an_unknown_setting_with_a_near_one() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
timeut = "25s"
"#,
        r#"
error: `timeut` is not a setting of [[route]]
 --> semel.toml:5:1
  |
5 | timeut = "25s"
  | ^^^^^^
  = help: did you mean `timeout`?
"#,
    );
}

#[test]
fn an_unknown_setting_with_none_near() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
colour = "red"
"#,
        r#"
error: `colour` is not a setting of [admin]
 --> semel.toml:3:1
  |
3 | colour = *****
  | ^^^^^^
  = help: settings here: listen, token, tls, user, identity
"#,
    );
}

#[test]
fn a_setting_of_another_section() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
lease = "30s"
[admin]
store = "memory:"
[[route]]
operation = "create_payment"
match = "POST /payments"
"#,
        r#"
error: `lease` is not a setting
 --> semel.toml:2:1
  |
2 | lease = "30s"
  | ^^^^^
  = help: `lease` is a setting of [[route]]: move it there

error: `store` is not a setting of [admin]
 --> semel.toml:4:1
  |
4 | store = *********
  | ^^^^^
  = help: move `store` to the top of the file, above the first section
"#,
    );
}

#[test]
fn an_unknown_section() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scopes]
tenant = ["credential"]
"#,
        r#"
error: `scopes` is not a setting
 --> semel.toml:2:2
  |
2 | [scopes]
  |  ^^^^^^
  = help: did you mean `scope`?
"#,
    );
}

#[test]
fn a_route_in_single_brackets() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[route]
operation = "create_payment"
"#,
        r#"
error: `route` is a list of sections, each with double brackets
 --> semel.toml:2:1
  |
2 | [route]
  | ^^^^^^^
  = help: begin each with [[route]]
"#,
    );
}

#[test]
fn a_section_that_is_none() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
admin = "127.0.0.1:8081"
"#,
        r#"
error: `admin` is a section, not a string
 --> semel.toml:2:9
  |
2 | admin = "127.0.0.1:8081"
  |         ^^^^^^^^^^^^^^^^
  = help: begin it with [admin]
"#,
    );
}

#[test]
fn an_upstream_without_a_scheme() {
    assert_errors(
        r#"
upstream = "127.0.0.1:9000"
"#,
        r#"
error: the address of the service has no scheme
 --> semel.toml:1:12
  |
1 | upstream = "127.0.0.1:9000"
  |            ^^^^^^^^^^^^^^^^
  = help: write "http://127.0.0.1:9000"
"#,
    );
}

#[test]
fn an_upstream_with_a_password() {
    assert_errors(
        r#"
upstream = "http://me:s3cr3t@api.internal"
"#,
        r#"
error: the address of the service has a user name or password, which would never be sent
 --> semel.toml:1:12
  |
1 | upstream = *******************************
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write the scheme, the host and the port: "http://127.0.0.1:9000"
"#,
    );
}

#[test]
fn an_upstream_that_is_the_gateway() {
    assert_errors(
        r#"
upstream = "http://localhost:8080"
"#,
        r#"
error: `upstream` points at the gateway itself, which listens on 127.0.0.1:8080
 --> semel.toml:1:12
  |
1 | upstream = "http://localhost:8080"
  |            ^^^^^^^^^^^^^^^^^^^^^^^
  = help: write the address of the service, or listen elsewhere
"#,
    );
}

#[test]
fn addresses_to_listen_on() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
listen = ":8080"
[admin]
listen = "localhost:8081"
"#,
        r#"
error: ":8080" is not an address to listen on
 --> semel.toml:2:10
  |
2 | listen = ":8080"
  |          ^^^^^^^
  = help: write "0.0.0.0:8080"

error: "localhost:8081" is not an address to listen on
 --> semel.toml:4:10
  |
4 | listen = "localhost:8081"
  |          ^^^^^^^^^^^^^^^^
  = help: write "127.0.0.1:8081"
"#,
    );
}

#[test]
fn a_store_that_is_not_there_yet() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
store = "redis://me:s3cr3t@host"
"#,
        r#"
error: invalid store URL
 --> semel.toml:2:9
  |
2 | store = ************************
  |         ^^^^^^^^^^^^^^^^^^^^^^^^
  = help: Redis is no store, for it may forget: use "sqlite:semel.db" or "postgres://user@host/database", and put Redis in front with [cache] url
"#,
    );
}

#[test]
fn a_store_without_a_kind() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
store = "semel.db"
"#,
        r#"
error: invalid store URL
 --> semel.toml:2:9
  |
2 | store = "semel.db"
  |         ^^^^^^^^^^
  = help: a store URL begins with its kind: "sqlite:semel.db", "postgres://user@host/database" or "memory:"
"#,
    );
}

#[test]
fn a_profile_that_nobody_knows() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
profile = "strip"
"#,
        r#"
error: `profile` cannot be "strip"
 --> semel.toml:2:11
  |
2 | profile = "strip"
  |           ^^^^^^^
  = help: did you mean "stripe"?
"#,
    );
}

#[test]
fn a_base_for_addresses() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
docs = "https://docs.example.com/<code>"
"#,
        r#"
error: "https://docs.example.com/<code>" is not a valid base URL: a URI cannot contain '<'; percent-encode it
 --> semel.toml:2:8
  |
2 | docs = "https://docs.example.com/<code>"
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write an address to which a code can be appended
"#,
    );
}
