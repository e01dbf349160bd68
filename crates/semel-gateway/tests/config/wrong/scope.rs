//! What is wrong with `[scope]`: whose request it is, and who is believed.

use super::told;

#[test]
fn sources_that_are_not_explained_and_explanations_without_a_source() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["jwt:sub", "forward-auth"]
"#,
        r#"
error: it is not said what tokens are checked with
 --> semel.toml:3:11
  |
3 | tenant = ["jwt:sub", "forward-auth"]
  |           ^^^^^^^^^
  = help: add a section [scope.jwt] with the issuer's keys and your `audience`

error: it is not said who is asked
 --> semel.toml:3:22
  |
3 | tenant = ["jwt:sub", "forward-auth"]
  |                      ^^^^^^^^^^^^^^
  = help: add a section [scope.forward_auth] with `url` and `tenant_header`
"#,
    );
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["credential"]
[scope.jwt]
secret = "a-secret-of-at-least-thirty-two-bytes"
"#,
        r#"
error: nothing is asked of this: "jwt:sub" is not among the sources
 --> semel.toml:4:1
  |
4 | [scope.jwt]
  | ^^^^^^^^^^^
  = help: add "jwt:sub" to `tenant` in [scope], or take the section out
"#,
    );
}

#[test]
fn sources_that_would_never_be_asked() {
    told(
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

error: `jwt:tid` would never be asked: a token is believed for one claim, or not at all
 --> semel.toml:3:30
  |
3 | tenant = ["jwt:sub", "jwt:", "jwt:tid", "forward-auth", "credential"]
  |                              ^^^^^^^^^
  = help: take one of the two out

error: `credential` would never be asked: `forward-auth` has the last word
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
    told(
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
error: the keys of tokens are there more than once
 --> semel.toml:4:1
  |
4 | [scope.jwt]
  | ^^^^^^^^^^^
  = help: keep one of `jwks`, `public_key` and `secret`; a `jwks` can hold several keys of all kinds

error: this [scope.jwt] has no `audience`
 --> semel.toml:4:1
  |
4 | [scope.jwt]
  | ^^^^^^^^^^^
  = help: add audience = ["https://api.example.com"]

error: a secret of HS256 has at least 32 bytes
 --> semel.toml:5:10
  |
5 | secret = *********************
  |          ^^^^^^^^^^^^^^^^^^^^^
  = help: make a longer one, and give it to the issuer too

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
  = help: name at least one, or leave it out
"#,
    );
}

#[test]
fn somebody_to_ask_who_cannot_be_asked() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["forward-auth"]
[scope.forward_auth]
url = "ftp://auth.internal/"
headers = ["authorization", "x-forwarded-for", "host"]
"#,
        r#"
error: this [scope.forward_auth] has no `tenant_header`
 --> semel.toml:4:1
  |
4 | [scope.forward_auth]
  | ^^^^^^^^^^^^^^^^^^^^
  = help: add tenant_header = "x-account-id"

error: forward-auth speaks http:// or https://
 --> semel.toml:5:7
  |
5 | url = "ftp://auth.internal/"
  |       ^^^^^^^^^^^^^^^^^^^^^^
  = help: write an address such as "http://127.0.0.1:9200/auth"

error: `x-forwarded-for` is what the gateway says of a request, not what a client may
 --> semel.toml:6:29
  |
6 | headers = ["authorization", "x-forwarded-for", "host"]
  |                             ^^^^^^^^^^^^^^^^^
  = help: take it out: it is sent, as the gateway knows it

error: `host` is about one request or one connection
 --> semel.toml:6:48
  |
6 | headers = ["authorization", "x-forwarded-for", "host"]
  |                                                ^^^^^^
  = help: take it out
"#,
    );
}

#[test]
fn tenants_that_are_none() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["header:authorization", "credential", "credential", "cookie"]
"#,
        r#"
error: `authorization` is a credential, and the names of tenants are stored and shown in clear
 --> semel.toml:3:11
  |
3 | tenant = ["header:authorization", "credential", "credential", "cookie"]
  |           ^^^^^^^^^^^^^^^^^^^^^^
  = help: write "credential": it is hashed then

error: `credential` is there twice
 --> semel.toml:3:49
  |
3 | tenant = ["header:authorization", "credential", "credential", "cookie"]
  |                                                 ^^^^^^^^^^^^
  = help: take one of the two out

error: "cookie" is not a source of the tenant
 --> semel.toml:3:63
  |
3 | tenant = ["header:authorization", "credential", "credential", "cookie"]
  |                                                               ^^^^^^^^
  = help: write "header:NAME" for a header that a trusted proxy sets, "jwt:CLAIM" for a claim of a verified token, "forward-auth" for somebody who is asked, or "credential"
"#,
    );
}

#[test]
fn no_tenant_at_all() {
    told(
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
  = help: leave `tenant` out for the credential, with one tenant for all callers without one; or name a source
"#,
    );
}

#[test]
fn peers() {
    told(
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
  = help: write "10.0.0.0/8", or "10.1.2.3" for the one address

error: "localhost" is neither an IP address nor a network
 --> semel.toml:4:32
  |
4 | trusted_peers = ["10.1.2.3/8", "localhost", "0.0.0.0/0", "::1/129"]
  |                                ^^^^^^^^^^^
  = help: write an address or a network: "10.1.2.3", "10.0.0.0/8", "::1", "fd00::/8"

error: "0.0.0.0/0" is everybody: any caller could name any tenant
 --> semel.toml:4:45
  |
4 | trusted_peers = ["10.1.2.3/8", "localhost", "0.0.0.0/0", "::1/129"]
  |                                             ^^^^^^^^^^^
  = help: name the addresses of the proxies in front of the gateway

error: "::1/129" has more bits than an address of its kind
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
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["header:x-account-id"]
trusted_peers = []
"#,
        r#"
error: `header:x-account-id` would be believed from nobody: `trusted_peers` is empty
 --> semel.toml:3:11
  |
3 | tenant = ["header:x-account-id"]
  |           ^^^^^^^^^^^^^^^^^^^^^
  = help: name the proxies in `trusted_peers`, or take the source out
"#,
    );
}
