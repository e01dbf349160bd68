//! What is wrong with `[scope]`: whose request it is, and who is believed.

use super::assert_errors;

#[test]
fn sources_that_are_not_explained_and_explanations_without_a_source() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["jwt:sub", "forward-auth"]
"#,
        r#"
error: a `jwt:` source needs keys to verify tokens with
 --> semel.toml:3:11
  |
3 | tenant = ["jwt:sub", "forward-auth"]
  |           ^^^^^^^^^
  = help: add a section [scope.jwt] with the issuer's keys and your `audience`

error: `forward-auth` is a source, and [scope.forward_auth] is missing
 --> semel.toml:3:22
  |
3 | tenant = ["jwt:sub", "forward-auth"]
  |                      ^^^^^^^^^^^^^^
  = help: add a section [scope.forward_auth] with `url` and `tenant_header`
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["credential"]
[scope.jwt]
secret = "a-secret-of-at-least-thirty-two-bytes"
"#,
        r#"
error: this section has no effect: "jwt:sub" is not among the sources
 --> semel.toml:4:1
  |
4 | [scope.jwt]
  | ^^^^^^^^^^^
  = help: add "jwt:sub" to `tenant` in [scope], or remove the section
"#,
    );
}

#[test]
fn sources_that_would_never_be_asked() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["jwt:sub", "jwt:", "jwt:tid", "forward-auth", "credential"]
[scope.jwt]
secret = "a-secret-of-at-least-thirty-two-bytes"
audience = ["shop"]
[scope.forward_auth]
url = "http://127.0.0.1:9200/auth"
tenant_header = "x-account-id"
"#,
        r#"
error: the claim has no name
 --> semel.toml:3:22
  |
3 | tenant = ["jwt:sub", "jwt:", "jwt:tid", "forward-auth", "credential"]
  |                      ^^^^^^
  = help: write "jwt:sub"

error: `jwt:tid` would never be used: only one claim of a token can name the tenant
 --> semel.toml:3:30
  |
3 | tenant = ["jwt:sub", "jwt:", "jwt:tid", "forward-auth", "credential"]
  |                              ^^^^^^^^^
  = help: remove one of the two

error: `credential` would never be used: `forward-auth` always decides
 --> semel.toml:3:57
  |
3 | tenant = ["jwt:sub", "jwt:", "jwt:tid", "forward-auth", "credential"]
  |                                                         ^^^^^^^^^^^^
  = help: put `forward-auth` last
"#,
    );
}

#[test]
fn keys_of_tokens_that_are_none() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["jwt:sub"]
[scope.jwt]
secret = "short-and-not-shown"
public_key = "no-such-file.pem"
issuer = []
"#,
        r#"
error: token keys are given more than once
 --> semel.toml:4:1
  |
4 | [scope.jwt]
  | ^^^^^^^^^^^
  = help: keep one of `jwks`, `public_key` and `secret`; a `jwks` can hold several keys of all kinds

error: `audience` is missing from this [scope.jwt]
 --> semel.toml:4:1
  |
4 | [scope.jwt]
  | ^^^^^^^^^^^
  = help: add audience = ["https://api.example.com"]

error: an HS256 secret needs at least 32 bytes
 --> semel.toml:5:10
  |
5 | secret = *********************
  |          ^^^^^^^^^^^^^^^^^^^^^
  = help: create a longer one, and give it to the issuer too

error: no-such-file.pem cannot be read (No such file or directory (os error 2))
 --> semel.toml:6:14
  |
6 | public_key = "no-such-file.pem"
  |              ^^^^^^^^^^^^^^^^^^
  = help: name a file with an RSA or P-256 public key in PEM

error: an empty list would refuse every token
 --> semel.toml:7:10
  |
7 | issuer = []
  |          ^^
  = help: name at least one, or remove it
"#,
    );
}

#[test]
fn somebody_to_ask_who_cannot_be_asked() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["forward-auth"]
[scope.forward_auth]
url = "ftp://auth.internal/"
headers = ["authorization", "x-forwarded-for", "host"]
"#,
        r#"
error: `tenant_header` is missing from this [scope.forward_auth]
 --> semel.toml:4:1
  |
4 | [scope.forward_auth]
  | ^^^^^^^^^^^^^^^^^^^^
  = help: add tenant_header = "x-account-id"

error: forward-auth needs http:// or https://
 --> semel.toml:5:7
  |
5 | url = "ftp://auth.internal/"
  |       ^^^^^^^^^^^^^^^^^^^^^^
  = help: write an address such as "http://127.0.0.1:9200/auth"

error: `x-forwarded-for` is set by the gateway itself
 --> semel.toml:6:29
  |
6 | headers = ["authorization", "x-forwarded-for", "host"]
  |                             ^^^^^^^^^^^^^^^^^
  = help: remove it: the gateway always sends it

error: `host` is about one request or one connection
 --> semel.toml:6:48
  |
6 | headers = ["authorization", "x-forwarded-for", "host"]
  |                                                ^^^^^^
  = help: remove it
"#,
    );
}

#[test]
fn tenants_that_are_none() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["header:authorization", "credential", "credential", "cookie"]
"#,
        r#"
error: `authorization` is a credential, and tenant names are stored and shown in plain text
 --> semel.toml:3:11
  |
3 | tenant = ["header:authorization", "credential", "credential", "cookie"]
  |           ^^^^^^^^^^^^^^^^^^^^^^
  = help: write "credential", which is hashed

error: `credential` is given twice
 --> semel.toml:3:49
  |
3 | tenant = ["header:authorization", "credential", "credential", "cookie"]
  |                                                 ^^^^^^^^^^^^
  = help: remove one of the two

error: "cookie" is not a source of the tenant
 --> semel.toml:3:63
  |
3 | tenant = ["header:authorization", "credential", "credential", "cookie"]
  |                                                               ^^^^^^^^
  = help: write "header:NAME" for a header that a trusted proxy sets, "jwt:CLAIM" for a claim of a verified token, "forward-auth" for an authority that is asked, or "credential"
"#,
    );
}

#[test]
fn no_tenant_at_all() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = []
"#,
        r#"
error: `tenant` is an empty list: every request would be refused
 --> semel.toml:3:10
  |
3 | tenant = []
  |          ^^
  = help: remove `tenant` to tell callers apart by their credential (callers without one share a tenant), or name a source
"#,
    );
}

#[test]
fn peers() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["header:x-account-id"]
trusted_peers = ["10.1.2.3/8", "localhost", "0.0.0.0/0", "::1/129"]
"#,
        r#"
error: "10.1.2.3/8" has bits set beyond its first 8
 --> semel.toml:4:18
  |
4 | trusted_peers = ["10.1.2.3/8", "localhost", "0.0.0.0/0", "::1/129"]
  |                  ^^^^^^^^^^^^
  = help: write "10.0.0.0/8", or "10.1.2.3" for a single address

error: "localhost" is neither an IP address nor a network
 --> semel.toml:4:32
  |
4 | trusted_peers = ["10.1.2.3/8", "localhost", "0.0.0.0/0", "::1/129"]
  |                                ^^^^^^^^^^^
  = help: write an address or a network: "10.1.2.3", "10.0.0.0/8", "::1", "fd00::/8"

error: "0.0.0.0/0" is every address: any caller could claim to be any tenant
 --> semel.toml:4:45
  |
4 | trusted_peers = ["10.1.2.3/8", "localhost", "0.0.0.0/0", "::1/129"]
  |                                             ^^^^^^^^^^^
  = help: name the addresses of the proxies in front of the gateway

error: "::1/129" has a prefix longer than an address
 --> semel.toml:4:58
  |
4 | trusted_peers = ["10.1.2.3/8", "localhost", "0.0.0.0/0", "::1/129"]
  |                                                          ^^^^^^^^^
  = help: write a number up to 128 after the slash
"#,
    );
}

#[test]
fn a_header_believed_from_nobody() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["header:x-account-id"]
trusted_peers = []
"#,
        r#"
error: `header:x-account-id` would never be trusted: `trusted_peers` is empty
 --> semel.toml:3:11
  |
3 | tenant = ["header:x-account-id"]
  |           ^^^^^^^^^^^^^^^^^^^^^
  = help: name the proxies in `trusted_peers`, or remove the source
"#,
    );
}

#[test]
fn who_is_asked_before_replays() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
replay_check = "forward_auth"
"#,
        r#"
error: `replay_check` cannot be "forward_auth"
 --> semel.toml:3:16
  |
3 | replay_check = "forward_auth"
  |                ^^^^^^^^^^^^^^
  = help: write "forward-auth" for whom [scope.forward_auth] names, or an address such as "http://127.0.0.1:9200/auth"
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
replay_check = "forward-auth"
"#,
        r#"
error: `forward-auth` is to be asked before replays, and [scope.forward_auth] is missing
 --> semel.toml:3:16
  |
3 | replay_check = "forward-auth"
  |                ^^^^^^^^^^^^^^
  = help: add a section [scope.forward_auth] with `url` and `tenant_header`
"#,
    );
}
