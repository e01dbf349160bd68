//! What is wrong with `[admin]`.

use super::assert_errors;

#[test]
fn an_admin_api_open_to_the_network() {
    assert_errors(
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
  = help: listen on loopback, "127.0.0.1:8081" (read-only without a token), or set `token = "env:SEMEL_ADMIN_TOKEN"` in [admin]
"#,
    );
}

#[test]
fn an_admin_api_on_the_public_port() {
    assert_errors(
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
  = help: use another port: "127.0.0.1:8081"
"#,
    );
}

#[test]
fn a_variable_that_is_not_set() {
    assert_errors(
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
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[admin]
token = "two words" # not shown
"#,
        r#"
error: `token`: it contains characters other than visible ASCII
 --> semel.toml:3:9
  |
3 | token = *********** # not shown
  |         ^^^^^^^^^^^
  = help: write "env:NAME" for the value of the environment variable NAME, "file:PATH" for the content of a file, or the secret itself
"#,
    );
}

#[test]
fn users_that_could_not_be_told_apart_or_would_see_nothing() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[admin.user]]
name = "admin"
token = "one"
role = "operator"
[[admin.user]]
name = "ada"
token = "two"
role = "reader"
tenants = ["*"]
[[admin.user]]
name = "ada"
token = "two"
role = "reader"
tenants = []
"#,
        r#"
error: the name "admin" is reserved for `[admin] token`
 --> semel.toml:3:8
  |
3 | name = "admin"
  |        ^^^^^^^
  = help: write another name: "oncall"

error: `*` alone matches every tenant: omit `tenants` instead
  --> semel.toml:10:12
   |
10 | tenants = ["*"]
   |            ^^^
   = help: write "acct_1" or "acct_*"

error: duplicate user name "ada"
  --> semel.toml:12:8
   |
12 | name = "ada"
   |        ^^^^^
   = help: rename one of them

error: another user has the same token
  --> semel.toml:13:9
   |
13 | token = *****
   |         ^^^^^
   = help: give each user a unique token: it identifies the user

error: `tenants` is an empty list: the user would see nothing
  --> semel.toml:15:11
   |
15 | tenants = []
   |           ^^
   = help: leave `tenants` out for all tenants, or name some
"#,
    );
}

#[test]
fn a_proxy_that_nobody_believes() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[admin.identity]
header = "x-forwarded-user"
roles = { header = "x-forwarded-groups", operator = "a,b" }
trusted_peers = []
"#,
        r#"
error: invalid group name
 --> semel.toml:4:53
  |
4 | roles = { header = "x-forwarded-groups", operator = "a,b" }
  |                                                     ^^^^^
  = help: write the name of one group, without commas

error: the header would never be trusted: `trusted_peers` is empty
 --> semel.toml:5:17
  |
5 | trusted_peers = []
  |                 ^^
  = help: name the address of the proxy
"#,
    );
}
