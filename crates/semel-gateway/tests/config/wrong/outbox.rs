//! What is wrong with `[outbox]`, and with where it publishes to.

use super::assert_errors;

#[test]
fn outboxes() {
    assert_errors(
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
error: a store in memory, or in DynamoDB, has no outbox
 --> semel.toml:4:8
  |
4 | sink = "http://127.0.0.1:9100/events"
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: use another `store`, "sqlite:semel.db" or "postgres://…", or remove [outbox]

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
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
"#,
        r#"
error: `sink` is missing from this [outbox]
 --> semel.toml:2:1
  |
2 | [outbox]
  | ^^^^^^^^
  = help: add sink = "https://partner.example/events"

error: `secret` is missing from this [outbox]
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
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "nats://me:word@127.0.0.1:4222"
secret = "env:SET"
exchange = "payments"
"#,
        r#"
error: `subject` is missing from this [outbox]
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
  = help: remove it: a broker's URL holds user name and password

error: `exchange` is for RabbitMQ, and this `sink` is NATS
 --> semel.toml:5:12
  |
5 | exchange = "payments"
  |            ^^^^^^^^^^
  = help: remove it
"#,
    );
}

#[test]
fn brokers() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "amqp://me:word@127.0.0.1:5672/"
subjct = "payments.>"
exchange = ""
"#,
        r#"
error: not a RabbitMQ URL: write amqp://user:password@127.0.0.1:5672/%2f
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
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "nats://127.0.0.1:4222"
subject = "payments.>"
stream = "pay.ments"
"#,
        r#"
error: not a valid subject prefix: write words separated by dots, such as payments or shop.payments, without * and >
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
        ("nats://", "not a NATS URL"),
        ("nats://127.0.0.1:4222,tls://me:word@127.0.0.1:4223", "not a NATS URL"),
        ("nats://127.0.0.1:many", "not a NATS URL"),
        ("amqp://[2001:db8::1]:5672", "not a RabbitMQ URL"),
        ("nat://127.0.0.1:4222", "did you mean \"nats://…\"?"),
        ("kafka://127.0.0.1:9092", "write an address that begins with https://, http://, nats:// or amqp://"),
        ("https://me:word@partner/events", "credentials belong in a header"),
        ("http://me:word@partner/events", "credentials belong in a header"),
        ("https://partner:0/events", "port"),
        ("partner", "not a URL"),
    ] {
        let toml = format!(
            "upstream = \"http://127.0.0.1:9000\"\n[outbox]\nsink = \"{sink}\"\nsecret = \"env:SET\"\n"
        );
        let said = crate::read(&toml).unwrap_err().to_string();
        assert!(said.contains(problem) && said.contains("semel.toml:3:8"), "{sink}: {said}");
        assert!(!said.contains("me:word"), "{said}");
    }
}
