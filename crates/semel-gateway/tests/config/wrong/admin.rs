//! What is wrong with `[admin]`.

use super::told;

#[test]
fn an_admin_api_open_to_the_network() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
listen = "0.0.0.0:8081"
"#,
        r#"
error: the admin API would be open to the network at 0.0.0.0:8081, without a token
 --> semel.toml:3:10
  |
3 | listen = "0.0.0.0:8081"
  |          ^^^^^^^^^^^^^^
  = help: listen on loopback, "127.0.0.1:8081" (read only without a token), or set `token = "env:SEMEL_ADMIN_TOKEN"` in [admin]
"#,
    );
}

#[test]
fn an_admin_api_on_the_public_port() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
listen = "127.0.0.1:8080"
"#,
        r#"
error: the admin API would listen where clients are served, on port 8080
 --> semel.toml:3:10
  |
3 | listen = "127.0.0.1:8080"
  |          ^^^^^^^^^^^^^^^^
  = help: give it a port of its own: "127.0.0.1:8081"
"#,
    );
}

#[test]
fn a_variable_that_is_not_set() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
token = "env:SEMEL_ADMIN_TOKEN"
"#,
        r#"
error: `token`: the environment variable SEMEL_ADMIN_TOKEN is not set
 --> semel.toml:3:9
  |
3 | token = "env:SEMEL_ADMIN_TOKEN"
  |         ^^^^^^^^^^^^^^^^^^^^^^^
  = help: set SEMEL_ADMIN_TOKEN before the start, or name another variable
"#,
    );
}

#[test]
fn a_token_that_cannot_be_sent() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
token = "two words" # not shown
"#,
        r#"
error: `token`: it has characters other than visible ASCII
 --> semel.toml:3:9
  |
3 | token = *********** # not shown
  |         ^^^^^^^^^^^
  = help: write "env:NAME" for the content of the environment variable NAME, "file:PATH" for that of a file, or the secret itself
"#,
    );
}
