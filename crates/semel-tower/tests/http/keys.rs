//! Which requests need a key, and what a key looks like.

use crate::support::{Ask, KEY, Shop};
use semel::key::{KeyRules, KeySources, KeySyntax};
use semel::problem::Profile;
use semel_tower::{KeyRequirement, Protection};

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_key_is_refused_with_a_code_and_a_detail_that_says_what_to_do() {
    let shop = Shop::open().await;
    let long = "k".repeat(256);
    let rows: &[(&str, Vec<u8>, &str)] = &[
        ("empty", b"".to_vec(), "Send one unique key"),
        ("white space", b"   ".to_vec(), "Send one unique key"),
        ("empty quotes", b"\"\"".to_vec(), "Send one unique key"),
        ("15 characters", b"123456789012345".to_vec(), "at least 16"),
        ("15 quoted characters", b"\"123456789012345\"".to_vec(), "at least 16"),
        ("256 characters", long.clone().into_bytes(), "at most 255"),
        ("256 quoted characters", format!("\"{long}\"").into_bytes(), "at most 255"),
        ("a tab within", b"key-01234567\t89abcdef".to_vec(), "visible ASCII"),
        ("a space within", b"key-01234567 89abcdef".to_vec(), "visible ASCII"),
        ("non-ASCII", "key-0123456789abcdéf".as_bytes().to_vec(), "visible ASCII"),
        ("bytes that are no text", b"key-0123456789abc\xff\xfe".to_vec(), "visible ASCII"),
        ("an opening quote", b"\"key-0123456789abcdef".to_vec(), "one quote at each end"),
        ("a closing quote", b"key-0123456789abcdef\"".to_vec(), "one quote at each end"),
        ("a quote within", b"key-01234567\"89abcdef".to_vec(), "one quote at each end"),
        ("parameters", b"\"key-0123456789abcdef\";v=1".to_vec(), "Remove them"),
        ("bare parameters", b"key-0123456789abcdef;v=1".to_vec(), "Remove them"),
        ("a list", b"\"key-0123456789abcdef\", \"key-0123456789abcdef\"".to_vec(), "exactly one"),
        ("a bare list", b"key-0123456789abcdef,key-0123456789abcdef".to_vec(), "exactly one"),
    ];
    for (what, key, advice) in rows {
        let answer =
            shop.send(&Ask::payment().without("idempotency-key").header("Idempotency-Key", key)).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "idempotency_key_invalid"), "{what}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(advice), "{what}: {detail}");
        assert!(!detail.contains("0123456789"), "the key is not repeated: {detail}");
        assert_eq!(answer.json()["retryable"], false);
    }
    let twice = shop.send(&Ask::payment().header("Idempotency-Key", KEY)).await;
    assert_eq!((twice.status, twice.code().as_str()), (400, "idempotency_key_invalid"), "two lines");
    assert!(twice.json()["detail"].as_str().unwrap().contains("exactly one"));
    assert_eq!((shop.till.requests(), shop.records().await.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_in_a_key_never_get_as_far_as_the_handler() {
    let shop = Shop::open().await;
    for byte in (0_u8..0x20).chain([0x7f]).filter(|byte| *byte != b'\t') {
        let key = [b"key-01234567", [byte].as_slice(), b"89abcdef"].concat();
        let answer =
            shop.send(&Ask::payment().without("idempotency-key").header("Idempotency-Key", key)).await;
        // Most of them are no HTTP, and the server says so itself.
        assert_eq!(answer.status, 400, "{byte:#x}");
    }
    assert_eq!(shop.till.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_16_and_255_characters_will_do() {
    let shop = Shop::open().await;
    for length in [16, 255] {
        let answer = shop.send(&Ask::payment().key(&"k".repeat(length))).await;
        assert_eq!(answer.status, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_is_refused() {
    let shop = Shop::open().await;
    for method in ["POST", "PATCH"] {
        let answer = shop.send(&Ask::new(method, "/payments").json("{}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "idempotency_key_missing"));
        assert!(answer.json()["detail"].as_str().unwrap().contains("Idempotency-Key"));
    }
    assert_eq!(shop.till.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_key_is_optional_a_request_without_one_passes_unprotected() {
    let shop = Shop::protected(Protection { key: KeyRequirement::Optional, ..Protection::default() }).await;
    let bare = Ask::new("POST", "/payments")
        .json("{}")
        .header("Semel-Operation-Id", "forged")
        .header("Semel-Attempt", "7")
        .answered_with("semel-outcome", "completed");
    for effect in ["effect 1", "effect 2"] {
        let answer = shop.send(&bare).await;
        assert_eq!((answer.status, answer.text(), answer.is_replay()), (201, effect, false));
        assert_eq!(answer.header("semel-operation-id"), None);
        assert_eq!(
            answer.header("semel-outcome"),
            None,
            "what a service tells Semel is not the client's business"
        );
        let saw = shop.till.saw();
        assert!(
            !saw.contains_key("semel-operation-id") && !saw.contains_key("semel-attempt"),
            "nor can a client forge it"
        );
    }
    let refused = shop.send(&Ask::payment().key("short")).await;
    assert_eq!(refused.code(), "idempotency_key_invalid", "a bad key is no missing key");
    assert_eq!(shop.send(&Ask::payment()).await.text(), "effect 3");
    assert_eq!(shop.send(&Ask::payment()).await.text(), "effect 3");
    assert_eq!(shop.records().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_pass_untouched_with_or_without_a_key() {
    let shop = Shop::open().await;
    for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        for key in [None, Some(KEY), Some("bad")] {
            let ask = Ask::new(method, "/payments").header("Semel-Operation-Id", "of a poll");
            let ask = key.iter().fold(ask, |ask, key| ask.key(key));
            let before = shop.till.effects();
            for _ in 0..2 {
                let answer = shop.send(&ask).await;
                assert_eq!((answer.status, answer.is_replay()), (201, false), "{method} {key:?}");
                assert_eq!(answer.header("semel-operation-id"), None);
            }
            assert_eq!(shop.till.effects(), before + 2);
            let saw = shop.till.saw();
            assert_eq!(saw.get("semel-operation-id").unwrap(), "of a poll");
            assert_eq!(saw.get("idempotency-key").map(|key| key.to_str().unwrap()), key);
        }
    }
    assert!(shop.records().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn patch_is_protected_like_post() {
    let shop = Shop::open().await;
    let patch = Ask::new("PATCH", "/payments").key(KEY).json("{}");
    assert_eq!(shop.send(&patch).await.text(), "effect 1");
    let again = shop.send(&patch).await;
    assert_eq!((again.text(), again.is_replay()), ("effect 1", true));
    let post = shop.send(&Ask::new("POST", "/payments").key(KEY).json("{}")).await;
    assert_eq!((post.text(), post.is_replay()), ("effect 2", false), "another method is another operation");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_structured_and_the_bare_spelling_name_the_same_key() {
    let shop = Shop::open().await;
    let first = shop.send(&Ask::payment()).await;
    let quoted = shop.send(&Ask::payment().key(&format!("\"{KEY}\""))).await;
    assert_eq!((quoted.status, &quoted.body, quoted.is_replay()), (201, &first.body, true));
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_syntaxes_take_their_own_spelling_alone() {
    let strict =
        |syntax| Shop::layered(move |layer| layer.key_rules(KeyRules { syntax, ..KeyRules::default() }));
    let shop = strict(KeySyntax::Structured).await;
    assert_eq!(shop.send(&Ask::payment()).await.code(), "idempotency_key_invalid");
    assert_eq!(shop.send(&Ask::payment().key(&format!("\"{KEY}\""))).await.status, 201);

    let shop = strict(KeySyntax::Opaque).await;
    assert_eq!(shop.send(&Ask::payment()).await.text(), "effect 1");
    assert_eq!(shop.send(&Ask::payment().key(&format!("\"{KEY}\""))).await.text(), "effect 2", "another key");
}

fn sources(texts: &[&str]) -> KeySources {
    KeySources::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
}

async fn keys_from(texts: &[&str], key: KeyRequirement) -> Shop {
    Shop::protected(Protection { key, key_sources: sources(texts), ..Protection::default() }).await
}

fn with_body(body: impl Into<bytes::Bytes>) -> Ask {
    Ask::payment()
        .without("idempotency-key")
        .without("content-type")
        .header("Content-Type", "application/json")
        .body(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_body_is_the_key_however_it_is_escaped_and_however_large_the_body_is() {
    let shop = keys_from(&["header:x-key", "json:/order/key"], KeyRequirement::Required).await;
    for (number, length) in [10, 200_000].into_iter().enumerate() {
        let key = format!("key-in-the-body-{number}");
        let padding = "x".repeat(length);
        let first =
            shop.send(&with_body(format!(r#"{{"order":{{"key":"{key}"}},"note":"{padding}"}}"#))).await;
        assert_eq!((first.status, first.is_replay()), (201, false), "{}", first.text());
        // Another spelling of the same.
        let escaped = key.replace("key", r"\u006bey");
        let again = shop
            .send(&with_body(format!(r#"{{"note": "{padding}", "order": {{"key": "{escaped}"}}}}"#)))
            .await;
        assert_eq!((again.status, &again.body, again.is_replay()), (201, &first.body, true));
        let both = with_body(format!(r#"{{"order":{{"key":"{key}"}},"note":"{padding}"}}"#))
            .header("X-Key", format!("\"{key}\""));
        assert!(shop.send(&both).await.is_replay(), "the same key in both places");
        let other = shop.send(&with_body(format!(r#"{{"order":{{"key":"{key}"}},"note":"other"}}"#))).await;
        assert_eq!(other.code(), "idempotency_key_reused_with_different_payload");
        let different =
            with_body(format!(r#"{{"order":{{"key":"{key}"}}}}"#)).header("X-Key", "another-key-of-one");
        assert_eq!(shop.send(&different).await.code(), "idempotency_key_invalid");
    }
    assert_eq!(shop.till.effects(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_in_which_no_key_can_be_found_is_refused_even_where_none_is_needed() {
    let shop = keys_from(&["json:/key", "header:idempotency-key"], KeyRequirement::Optional).await;
    for (what, body) in [
        ("truncated", r#"{"key":"0123456789abcdef""#),
        ("nothing", ""),
        ("a batch", r#"[{"key":"0123456789abcdef"}]"#),
        ("a string", r#""0123456789abcdef""#),
        ("two keys", r#"{"key":"0123456789abcdef","key":"fedcba9876543210"}"#),
        ("two keys, one escaped", r#"{"key":"0123456789abcdef","\u006bey":"fedcba9876543210"}"#),
        ("a duplicate elsewhere", r#"{"key":"0123456789abcdef","a":{"b":1,"b":1}}"#),
        ("null", r#"{"key":null}"#),
        ("a number", r#"{"key":12345678901234567}"#),
        ("too short", r#"{"key":"short"}"#),
        ("not ASCII", r#"{"key":"0123456789abcdé"}"#),
    ] {
        for ask in [with_body(body), with_body(body).key(KEY)] {
            let answer = shop.send(&ask).await;
            assert_eq!((answer.status, answer.code().as_str()), (400, "idempotency_key_invalid"), "{what}");
            assert!(!answer.text().contains("0123456789"), "the key is not repeated: {}", answer.text());
        }
    }
    let encoded = |name: &str, value: &str| {
        with_body(r#"{"key":"0123456789abcdef"}"#).without(name).header(name, value)
    };
    for ask in [
        encoded("content-encoding", "gzip"),
        encoded("content-type", "application/json; charset=utf-16"),
        encoded("content-type", "application/json; charset"),
    ] {
        let answer = shop.send(&ask).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "idempotency_key_invalid"));
    }
    assert_eq!((shop.till.requests(), shop.records().await.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_key_in_its_body_passes_whole_where_none_is_needed_and_is_refused_where_one_is() {
    let optional = keys_from(&["json:/key"], KeyRequirement::Optional).await;
    for ask in [
        with_body(r#"{"amount":"10.00"}"#),
        with_body(r#"{"amount":"10.00"}"#).chunked(),
        with_body("key=0123456789abcdef").without("content-type").header("Content-Type", "text/plain"),
    ] {
        let answer = optional.send(&ask).await;
        assert_eq!((answer.status, answer.header("semel-operation-id")), (201, None));
    }
    assert_eq!((optional.till.effects(), optional.records().await.len()), (3, 0));
    let required = keys_from(&["json:/key"], KeyRequirement::Required).await;
    for ask in [with_body("{}"), with_body("{}").key(KEY)] {
        let answer = required.send(&ask).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "idempotency_key_missing"));
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("requires the member /key in its JSON body"), "{detail}");
    }
    assert_eq!(required.till.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_header_and_shorter_keys_are_for_the_operation_to_say() {
    let rules = KeyRules { min: 3, ..KeyRules::default() };
    let shop = Shop::protected(Protection {
        key_sources: sources(&["header:PayPal-Request-Id"]),
        key_rules: Some(rules),
        ..Protection::default()
    })
    .await;
    let ask = |key: &str| Ask::payment().without("idempotency-key").header("PayPal-Request-Id", key);
    assert_eq!(shop.send(&ask("abc")).await.status, 201);
    assert!(shop.send(&ask("abc")).await.is_replay());
    let short = shop.send(&ask("ab")).await;
    assert_eq!(short.code(), "idempotency_key_invalid");
    assert!(short.text().contains("The paypal-request-id is too short"), "{}", short.text());
    assert_eq!(shop.send(&Ask::payment()).await.code(), "idempotency_key_missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_as_short_as_the_profiles_clients_send_them_unless_the_application_says_otherwise() {
    let stripe = Shop::layered(|layer| layer.profile(Profile::Stripe)).await;
    assert_eq!(stripe.send(&Ask::payment().key("k")).await.status, 201);
    assert!(stripe.send(&Ask::payment().key("k")).await.is_replay());
    let own =
        |layer: semel_tower::IdempotencyLayer| layer.key_rules(KeyRules::default()).profile(Profile::Stripe);
    assert_eq!(Shop::layered(own).await.send(&Ask::payment().key("k")).await.status, 400);
}
