//! The libraries that payment APIs give to their users, in front of the gateway: a retry is a replay, another amount under a known key is
//! the library's own error, an unknown outcome is never taken for success, and a connection that breaks costs no second charge.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]
#![cfg(unix)]

#[path = "../watching/support/cutting.rs"]
mod cutting;
mod shop;

use serde_json::Value;
use shop::Shop;

/// What is the same for all of them. What a library makes of an unknown outcome, and of another amount, is for the test of each.
#[track_caller]
fn pays_once(shop: &Shop, told: &Value) {
    assert!(told["replay"][0]["id"].is_string(), "{told:#}");
    assert_eq!(told["replay"][0], told["replay"][1], "a retry is a replay: {told:#}");
    assert!(told["dropped"]["id"].is_string(), "the retry after a broken connection succeeds: {told:#}");
    for part in [&told["reused"], &told["unknown"][0], &told["unknown"][1]] {
        assert!(part["id"].is_null() && part["class"].is_string(), "it raises: {told:#}");
    }
    // Of another amount nothing was charged, and of what is unknown one.
    assert_eq!(shop.charges(), [(1000, 1), (1300, 1), (1400, 1)].into(), "{told:#}");
}

#[test]
fn stripes_library_for_python() {
    let shop = Shop::open("profile = \"stripe\"", "");
    let told = shop.python("stripe_pays.py");
    pays_once(&shop, &told);
    assert_eq!(told["reused"]["class"], "IdempotencyError");
    for unknown in [&told["unknown"][0], &told["unknown"][1]] {
        assert_eq!(unknown["class"], "APIError", "{told:#}");
        assert!(unknown["text"].as_str().unwrap().contains("not known whether"), "{told:#}");
    }
}

#[test]
fn stripes_library_for_node() {
    let shop = Shop::open("profile = \"stripe\"", "");
    let told = shop.node("stripe_pays.mjs");
    pays_once(&shop, &told);
    assert_eq!(told["reused"]["class"], "StripeIdempotencyError");
    for unknown in [&told["unknown"][0], &told["unknown"][1]] {
        assert_eq!(unknown["class"], "StripeAPIError", "{told:#}");
        assert!(unknown["text"].as_str().unwrap().contains("not known whether"), "{told:#}");
    }
}

#[test]
fn mollies_library_for_node() {
    let shop = Shop::open("", "");
    let told = shop.node("mollie_pays.mjs");
    pays_once(&shop, &told);
    assert!(told["broke"]["class"].is_string(), "{told:#}");
    assert_eq!(
        (told["reused"]["class"].as_str(), told["reused"]["status"].as_u64()),
        (Some("ApiError"), Some(422))
    );
    for unknown in [&told["unknown"][0], &told["unknown"][1]] {
        assert_eq!(unknown["class"], "ApiError", "{told:#}");
        assert!(unknown["text"].as_str().unwrap().contains("not known whether"), "{told:#}");
    }
}

/// As docs/guides/profiles.md has it.
const SQUARE: &str = r#"
[key]
from = ["json:/idempotency_key"]
[profiles.square]
extends = "ietf"
body = '{"errors": [{"category": "INVALID_REQUEST_ERROR", "code": "{code}", "detail": "{detail}"}]}'
"#;

#[test]
fn squares_library_for_python() {
    let shop = Shop::open("profile = \"square\"", SQUARE);
    let told = shop.python("square_pays.py");
    pays_once(&shop, &told);
    assert_eq!(told["broke"]["class"], "TransportError", "{told:#}");
    assert_eq!(told["reused"]["class"], "ApiError");
    assert_eq!(told["reused"]["code"], "idempotency_key_reused_with_different_payload", "{told:#}");
    for unknown in [&told["unknown"][0], &told["unknown"][1]] {
        assert_eq!(unknown["code"], "idempotency_outcome_unknown", "{told:#}");
    }
}
