mod recipe;
mod subject;
mod version_2;
mod version_3;

use super::*;
use crate::Fingerprint;
use crate::canonical::CheckedJson;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::collections::HashSet;

/// A request to change one thing of at a time.
#[derive(Clone)]
struct Sample {
    operation: &'static str,
    method: Method,
    path: &'static str,
    query: Option<&'static str>,
    host: Option<&'static str>,
    headers: HeaderMap,
    body: Vec<u8>,
}

fn sample(body: &str) -> Sample {
    let sample = Sample {
        operation: "create_payment",
        method: Method::POST,
        path: "/payments",
        query: Some("b=2&a=1"),
        host: Some("shop.example"),
        headers: HeaderMap::new(),
        body: body.as_bytes().to_vec(),
    };
    sample.with("content-type", "application/json")
}

impl Sample {
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        self
    }

    fn change(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn request(&self) -> HttpRequest<'_> {
        HttpRequest {
            operation: self.operation,
            method: &self.method,
            path: self.path,
            query: self.query,
            host: self.host.map(str::as_bytes),
            headers: &self.headers,
            body: &self.body,
        }
    }

    fn hash(&self) -> Fingerprint {
        self.hash_by(&versioned())
    }

    fn hash_by(&self, recipe: &Recipe) -> Fingerprint {
        let hash = fingerprint(recipe, None, &self.request()).unwrap();
        // Whatever is tested here, a body that was looked into for a key has the same fingerprint.
        if let Ok(checked) = CheckedJson::check(Bytes::copy_from_slice(&self.body)) {
            let body = checked.text().clone();
            let request = HttpRequest { body: &body, ..self.request() };
            assert_eq!(fingerprint_of_checked(recipe, None, &request, Some(&checked)).unwrap(), hash);
        }
        hash
    }
}

fn everything() -> Recipe {
    Recipe::builder().build().unwrap()
}

fn versioned() -> Recipe {
    Recipe::builder().header("Api-Version").build().unwrap()
}

fn secret(text: &str) -> FingerprintSecret {
    FingerprintSecret::new(text).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn member_order_white_space_and_number_spelling_do_not_matter() {
    let one = sample(r#"{"amount":10,"card":{"a":1,"b":[{"x":1,"y":2}]}}"#).hash();
    assert_eq!(
        sample("{ \"card\": {\"b\":[{\"y\":2,\"x\":1.0}], \"\\u0061\":1},\n\"amount\": 1e1 }").hash(),
        one
    );
    assert_ne!(sample(r#"{"amount":11,"card":{"a":1,"b":[{"x":1,"y":2}]}}"#).hash(), one);
}

#[test]
fn operation_method_path_query_and_the_chosen_header_matter() {
    let base = sample("{}");
    let others = [
        base.clone().change(|it| it.operation = "create_refund"),
        base.clone().change(|it| it.method = Method::PATCH),
        base.clone().change(|it| it.path = "/payments/1"),
        base.clone().change(|it| it.query = None),
        base.clone().change(|it| it.query = Some("a=1&b=3")),
        base.clone().with("api-version", "2"),
        base.clone().with("api-version", ""),
        base.clone().with("content-type", "application/merge-patch+json"),
        base.clone().with("content-encoding", "gzip"),
        base.clone().change(|it| it.body = b"[]".to_vec()),
    ];
    let hashes: HashSet<_> = others.iter().map(Sample::hash).chain([base.hash()]).collect();
    assert_eq!(hashes.len(), others.len() + 1);
}

#[test]
fn all_values_of_a_chosen_header_count_in_their_order() {
    let lines = |values: &[&'static str]| {
        sample("{}").change(|it| {
            values.iter().for_each(|value| {
                it.headers.append("api-version", HeaderValue::from_static(value));
            });
        })
    };
    let hashes: HashSet<_> = [&["1", "2"][..], &["2", "1"], &["1"], &["12"], &["1", "2", ""]]
        .map(|values| lines(values).hash())
        .into();
    assert_eq!(hashes.len(), 5);
}

#[test]
fn the_order_of_query_names_does_not_matter() {
    assert_eq!(sample("{}").hash(), sample("{}").change(|it| it.query = Some("a=1&b=2")).hash());
    let none = sample("{}").change(|it| it.query = None).hash();
    assert_eq!(sample("{}").change(|it| it.query = Some("")).hash(), none);
}

#[test]
fn credentials_preferences_and_the_key_do_not_matter() {
    let base = sample("{}").hash();
    for name in ["authorization", "accept", "prefer", "cookie", "idempotency-key", "x-api-key", "traceparent"]
    {
        assert_eq!(sample("{}").with(name, "something").hash(), base, "{name}");
    }
}

#[test]
fn utf_8_and_case_of_the_media_type_do_not_matter() {
    let base = sample(r#"{"b":1,"a":2}"#).hash();
    let other = sample(r#"{"a":2,"b":1}"#).with("content-type", "Application/JSON ; charset=utf-8");
    assert_eq!(other.hash(), base);
}

#[test]
fn structured_suffixes_are_json_and_other_types_are_bytes() {
    let hash = |media_type: &str, body: &str| sample(body).with("content-type", media_type).hash();
    assert_eq!(hash("application/vnd.api+json", "{\"a\": 1}"), hash("application/vnd.api+json", "{\"a\":1}"));
    assert_ne!(hash("text/plain", "{\"a\": 1}"), hash("text/plain", "{\"a\":1}"));
    assert_ne!(hash("application/jsonl", "[ ]"), hash("application/jsonl", "[]"));
    let bare = |body: &str| sample(body).change(|it| it.headers.clear()).hash();
    assert_ne!(bare("[ ]"), bare("[]"));
}

#[test]
fn two_media_type_lines_are_no_known_type() {
    let twice = |body: &str| {
        sample(body).change(|it| {
            it.headers.append("content-type", HeaderValue::from_static("application/x+json"));
        })
    };
    assert_ne!(twice("[ ]").hash(), twice("[]").hash());
}

#[test]
fn form_bodies_go_by_their_pairs() {
    let hash = |body: &str| sample(body).with("content-type", "application/x-www-form-urlencoded").hash();
    assert_eq!(hash("b=2&a=x+y"), hash("a=x%20y&b=2"));
    assert_ne!(hash("a=1&b=2"), hash("a=2&b=1"));
    assert_ne!(hash("a=1&a=2"), hash("a=2&a=1"));
}

#[test]
fn what_is_no_clean_json_matches_its_own_retry_and_no_clean_body() {
    let clean = [r#"{"a":1}"#, r#"{"a":2}"#, "\"\u{fffd}\"", "[1]", "\"1e1000000000000000000\"", "{}"];
    let unclean = [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"a":2}"#,
        r#""\ud800""#,
        "[1],",
        "1e1000000000000000000",
        "",
        "{}{}",
        "{} x",
    ];
    let hashes: HashSet<_> = clean.iter().chain(&unclean).map(|body| sample(body).hash()).collect();
    assert_eq!(hashes.len(), clean.len() + unclean.len());
    for body in unclean {
        assert_eq!(sample(body).hash(), sample(body).hash());
        if !body.is_empty() {
            assert_ne!(sample(body).hash(), sample(&format!(" {body}")).hash());
        }
    }
}

#[test]
fn a_body_in_a_content_coding_goes_by_its_bytes() {
    let coded = |body: &str| sample(body).with("content-encoding", "br");
    assert_ne!(coded("[ ]").hash(), coded("[]").hash());
    assert_eq!(coded("[]").hash(), coded("[]").hash());
}

#[test]
fn hostile_bodies_of_ten_megabytes_are_hashed_without_harm() {
    let deep = "[".repeat(10 << 20);
    assert_eq!(sample(&deep).hash(), sample(&deep).hash());
    let form = "a&".repeat(1 << 20);
    sample(&form).with("content-type", "application/x-www-form-urlencoded").hash();
    // One long value where a sort may pick what it compares everything with.
    let (many, long) = ("a&".repeat(1 << 18), "x".repeat(1 << 20));
    let form = format!("z&{many}a={long}&{many}");
    sample(&form).with("content-type", "application/x-www-form-urlencoded").hash();
}

#[test]
fn lengths_keep_bytes_from_moving_between_parts() {
    let hash = |operation, path| sample("{}").change(|it| (it.operation, it.path) = (operation, path)).hash();
    assert_ne!(hash("create", "/payments"), hash("create/", "payments"));
    assert_ne!(hash("create/payments", ""), hash("create", "/payments"));
    assert_ne!(hash("a", "bmethod"), hash("abmethod", ""));
    let two = Recipe::builder().header("x-a").header("x-b").build().unwrap();
    assert_ne!(sample("{}").with("x-a", "1").hash_by(&two), sample("{}").with("x-b", "1").hash_by(&two));
}

#[test]
fn ignored_and_filled_in_members_make_requests_equal() {
    let recipe =
        Recipe::builder().ignore("/metadata/trace_id").default("/currency", "\"EUR\"").build().unwrap();
    let base = sample(r#"{"amount":1,"metadata":{}}"#).hash_by(&recipe);
    let same = sample(r#"{"currency":"EUR","metadata":{"trace_id":"x"},"amount":1}"#).hash_by(&recipe);
    assert_eq!(base, same);
    assert_ne!(sample(r#"{"amount":1,"metadata":{},"currency":"USD"}"#).hash_by(&recipe), base);
    let only = Recipe::builder().only("/amount").build().unwrap();
    assert_eq!(sample(r#"{"amount":1,"x":1}"#).hash_by(&only), sample(r#"{"amount":1}"#).hash_by(&only));
}
