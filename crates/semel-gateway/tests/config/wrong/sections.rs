//! What is wrong with the other sections.

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
fn quotas_that_limit_nothing_or_twice() {
    told(
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

error: a `burst` is of what comes too fast, and nothing is said of that
 --> semel.toml:4:9
  |
4 | burst = 10
  |         ^^
  = help: add new_keys_per_second = 100, or take it out

error: the tenant "acme" is there twice
 --> semel.toml:8:8
  |
8 | name = "acme"
  |        ^^^^^^
  = help: keep one of the two
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
url = "https://auth.internal/"
headers = ["authorization", "x-forwarded-for", "host"]
"#,
        r#"
error: this [scope.forward_auth] has no `tenant_header`
 --> semel.toml:4:1
  |
4 | [scope.forward_auth]
  | ^^^^^^^^^^^^^^^^^^^^
  = help: add tenant_header = "x-account-id"

error: whoever is asked speaks plain HTTP, beside the gateway or through a local proxy: http://
 --> semel.toml:5:7
  |
5 | url = "https://auth.internal/"
  |       ^^^^^^^^^^^^^^^^^^^^^^^^
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

#[test]
fn webhooks() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[[webhook]]
source = "a b"
secrets = "s3cr3t"
[[webhook]]
source = "provider"
secrets = ["env:GONE", "s3cr3t"]
[[webhook]]
source = "provider"
secrets = []
[[webhook]]
"#,
        r#"
error: "a b" cannot be the name of a source
 --> semel.toml:3:10
  |
3 | source = "a b"
  |          ^^^^^
  = help: it is part of an address: write letters, digits, _ and - alone

error: `secrets` must be a list of texts, not a text
 --> semel.toml:4:11
  |
4 | secrets = ********
  |           ^^^^^^^^
  = help: write secrets = ["env:NAME_OF_A_VARIABLE"]

error: `secrets`: the environment variable GONE is not set
 --> semel.toml:7:12
  |
7 | secrets = ["env:GONE", ********]
  |            ^^^^^^^^^^
  = help: set GONE before the start, or name another variable

error: a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"
 --> semel.toml:7:24
  |
7 | secrets = ["env:GONE", ********]
  |                        ^^^^^^^^
  = help: write the secret that the provider gave you ("whsec_…"), or have it make another

error: the source "provider" is there twice
 --> semel.toml:9:10
  |
9 | source = "provider"
  |          ^^^^^^^^^^
  = help: write all its secrets into one [[webhook]]

error: without a secret nobody's word can be believed
  --> semel.toml:10:11
   |
10 | secrets = []
   |           ^^
   = help: write ["env:SEMEL_WEBHOOK_SECRET"]

error: this [[webhook]] has no `source`
  --> semel.toml:11:1
   |
11 | [[webhook]]
   | ^^^^^^^^^^^
   = help: add source = "provider"

error: this [[webhook]] has no `secrets`
  --> semel.toml:11:1
   |
11 | [[webhook]]
   | ^^^^^^^^^^^
   = help: add secrets = ["env:SEMEL_WEBHOOK_SECRET"]
"#,
    );
}

#[test]
fn outboxes() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
store = "memory:"
[outbox]
sink = "http://127.0.0.1:9100/events"
secret = "whsec_short"
attempts = 0
retry = "5s"
"#,
        r#"
error: a store in memory has no outbox
 --> semel.toml:4:8
  |
4 | sink = "http://127.0.0.1:9100/events"
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write a `store` that lasts, "sqlite:semel.db" or "postgres://…", or leave [outbox] out

error: a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"
 --> semel.toml:5:10
  |
5 | secret = *************
  |          ^^^^^^^^^^^^^
  = help: give the receiver the same one

error: `attempts` cannot be 0
 --> semel.toml:6:12
  |
6 | attempts = 0
  |            ^
  = help: write a number from 1 to 1000

error: `retry` is not a setting of [outbox]
 --> semel.toml:7:1
  |
7 | retry = "5s"
  | ^^^^^
  = help: did you mean `retry_every`?
"#,
    );
}

#[test]
fn an_outbox_without_what_it_needs() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
"#,
        r#"
error: this [outbox] has no `sink`
 --> semel.toml:2:1
  |
2 | [outbox]
  | ^^^^^^^^
  = help: add sink = "http://127.0.0.1:9100/events"

error: this [outbox] has no `secret`
 --> semel.toml:2:1
  |
2 | [outbox]
  | ^^^^^^^^
  = help: add secret = "env:SEMEL_OUTBOX_SECRET"
"#,
    );
}

#[test]
fn what_one_receiver_needs_is_nothing_for_another() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "nats://me:word@127.0.0.1:4222"
secret = "env:SET"
exchange = "payments"
"#,
        r#"
error: this [outbox] has no `subject`
 --> semel.toml:2:1
  |
2 | [outbox]
  | ^^^^^^^^
  = help: add subject = "payments"

error: `secret` is for a webhook, and this `sink` is NATS
 --> semel.toml:4:10
  |
4 | secret = "env:SET"
  |          ^^^^^^^^^
  = help: leave it out: a broker takes user and password in the address

error: `exchange` is for RabbitMQ, and this `sink` is NATS
 --> semel.toml:5:12
  |
5 | exchange = "payments"
  |            ^^^^^^^^^^
  = help: leave it out
"#,
    );
}

#[test]
fn brokers() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "amqp://me:word@127.0.0.1:5672/"
subjct = "payments.>"
exchange = ""
"#,
        r#"
error: this is no address of RabbitMQ: it looks like amqp://user:password@127.0.0.1:5672/%2f
 --> semel.toml:3:8
  |
3 | sink = ********************************
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write an address such as "amqp://127.0.0.1:5672/%2f"

error: `subjct` is not a setting of [outbox]
 --> semel.toml:4:1
  |
4 | subjct = "payments.>"
  | ^^^^^^
  = help: did you mean `subject`?

error: the name of an exchange has 1 to 255 characters
 --> semel.toml:5:12
  |
5 | exchange = ""
  |            ^^
  = help: write something like "payments"
"#,
    );
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "nats://127.0.0.1:4222"
subject = "payments.>"
stream = "pay.ments"
"#,
        r#"
error: no subject begins like this: it is words with dots between them, such as payments or shop.payments, without * and >
 --> semel.toml:4:11
  |
4 | subject = "payments.>"
  |           ^^^^^^^^^^^^
  = help: write something like "payments": events go to payments.KIND then

error: the name of a stream has no spaces, dots, slashes, * or >
 --> semel.toml:5:10
  |
5 | stream = "pay.ments"
  |          ^^^^^^^^^^^
  = help: write the name that the stream was created with
"#,
    );
}

#[test]
fn receivers_that_cannot_be_published_to() {
    for (sink, problem) in [
        ("tls://127.0.0.1:4222", "without TLS"),
        ("amqps://127.0.0.1", "without TLS"),
        ("nats://", "no address of a NATS server"),
        ("nats://127.0.0.1:4222,tls://me:word@127.0.0.1:4223", "no address of a NATS server"),
        ("nats://127.0.0.1:many", "no address of a NATS server"),
        ("amqp://[2001:db8::1]:5672", "no address of RabbitMQ"),
        ("nat://127.0.0.1:4222", "did you mean \"nats://…\"?"),
        ("kafka://127.0.0.1:9092", "write an address that begins with http://, nats:// or amqp://"),
        ("https://partner.example/events", "plain HTTP"),
        ("http://me:word@partner/events", "no address"),
        ("partner", "no address"),
    ] {
        let toml = format!(
            "upstream = \"http://127.0.0.1:9000\"\n[outbox]\nsink = \"{sink}\"\nsecret = \"env:SET\"\n"
        );
        let said = crate::read(&toml).unwrap_err().to_string();
        assert!(said.contains(problem) && said.contains("semel.toml:3:8"), "{sink}: {said}");
        assert!(!said.contains("me:word"), "{said}");
    }
}

#[test]
fn keys() {
    told(
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

error: no key has at least 40 and at most 30 characters
 --> semel.toml:5:14
  |
5 | max_length = 30
  |              ^^
  = help: write a `min_length` that is no more than `max_length` (16 and 255 if left out)
"#,
    );
}

#[test]
fn limits() {
    told(
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

error: `requests_in_flight` must be a whole number, not a text
 --> semel.toml:5:22
  |
5 | requests_in_flight = "many"
  |                      ^^^^^^
  = help: write one from 1 to 1000000, without quotes

error: the service would be given up on before its `timeout`
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

error: a request as large as its route allows would never be taken
 --> semel.toml:8:15
  |
8 | body_memory = "1MiB"
  |               ^^^^^^
  = help: write at least "2MiB", the largest `max_request_body` of a route

error: an operation could end in doubt before it is known that the service cannot be reached
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
    told(
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
fn a_webhook_secret_that_is_none() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[[webhook]]
source = "provider"
secrets = ["whsec_dG9vLXNob3J0", "whsec_this-is-not-base64,whatever-it-is"] # not shown
"#,
        r#"
error: a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"
 --> semel.toml:4:12
  |
4 | secrets = [********************, *****************************************] # not shown
  |            ^^^^^^^^^^^^^^^^^^^^
  = help: write the secret that the provider gave you ("whsec_…"), or have it make another

error: a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"
 --> semel.toml:4:34
  |
4 | secrets = [********************, *****************************************] # not shown
  |                                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write the secret that the provider gave you ("whsec_…"), or have it make another
"#,
    );
}

#[test]
fn workers() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[worker]
in_gateway = "no"
forget = "never"
every = "1s"
"#,
        r#"
error: `in_gateway` must be true or false, not a text
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
  = help: what can be set here: in_gateway, forget
"#,
    );
}

#[test]
fn keys_that_are_none() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
keys = [
  { id = "2026-11", key = "c2VhbGluZw==" },
  { id = "two words", key = "env:SEMEL_KEY_2026_11" },
  { id = "2026-05" },
]
"#,
        r#"
error: a key is 32 random bytes, as base64 or as 64 hexadecimal digits
 --> semel.toml:4:27
  |
4 |   { id = "2026-11", key = ************** },
  |                           ^^^^^^^^^^^^^^
  = help: make one with `openssl rand -base64 32`

error: "two words" cannot be the name of a key
 --> semel.toml:5:10
  |
5 |   { id = "two words", key = "env:SEMEL_KEY_2026_11" },
  |          ^^^^^^^^^^^
  = help: write letters, digits, dots, _ and - alone, such as the month that it was made in

error: this [[encryption.keys]] has no `key`
 --> semel.toml:6:3
  |
6 |   { id = "2026-05" },
  |   ^^^^^^^^^^^^^^^^^^
  = help: add key = "env:SEMEL_KEY_2026_11"
"#,
    );
}

#[test]
fn keys_that_are_there_twice() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
seal_with = "2026-12"
keys = [
  { id = "2026-11", key = "env:SEMEL_KEY_2026_11" },
  { id = "2026-11", key = "env:SEMEL_KEY_2026_05" },
]
"#,
        r#"
error: the key "2026-11" is there twice
 --> semel.toml:6:27
  |
6 |   { id = "2026-11", key = "env:SEMEL_KEY_2026_05" },
  |                           ^^^^^^^^^^^^^^^^^^^^^^^
  = help: give every key a name of its own, and never use a name again
"#,
    );
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }, { id = "a", key = "env:SEMEL_KEY_2026_11" }]
"#,
        r#"
error: this key is the same as "2026-11"
 --> semel.toml:3:78
  |
3 | keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }, { id = "a", key = "env:SEMEL_KEY_2026_11" }]
  |                                                                              ^^^^^^^^^^^^^^^^^^^^^^^
  = help: under another name goes another key: make one with `openssl rand -base64 32`
"#,
    );
}

#[test]
fn keys_that_nobody_can_use() {
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
plain = "refused"
"#,
        r#"
error: this [encryption] has no `keys`
 --> semel.toml:2:1
  |
2 | [encryption]
  | ^^^^^^^^^^^^
  = help: add keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }]
"#,
    );
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
seal_with = "2026-12"
keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }]
"#,
        r#"
error: there is no key of the name "2026-12"
 --> semel.toml:3:13
  |
3 | seal_with = "2026-12"
  |             ^^^^^^^^^
  = help: write one of "2026-11", or "none"
"#,
    );
    told(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
seal_with = "none"
plain = "refused"
keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }]
"#,
        r#"
error: nothing is sealed, and what is not sealed would be refused: no answer could be replayed
 --> semel.toml:4:9
  |
4 | plain = "refused"
  |         ^^^^^^^^^
  = help: write plain = "accepted", or name a key in `seal_with`
"#,
    );
}
