//! The layer tells clients what they are promised: where problem documents link to, or wherever the application mounts it.

use crate::support::{Ask, Shop};
use axum::Router;
use semel::key::KeySources;
use semel::problem::{DocsBase, Profile};
use semel::{MemoryStore, Policy};
use semel_tower::{IdempotencyLayer, Protection};
use std::sync::Arc;
use std::time::Duration;

fn protection() -> Protection {
    let policy = Policy { retention: Duration::from_secs(7200), ..Policy::default() };
    Protection { policy: Arc::new(policy), max_request_body: 1000, ..Protection::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_tells_of_windows_limits_and_tenants() {
    let shop = Shop::protected(protection()).await;
    let asked = shop.send(&Ask::new("GET", "/.well-known/idempotency")).await;
    assert_eq!((asked.status, asked.header("content-type")), (200, Some("application/json")));
    let document = asked.json();
    let [writes] = document["operations"].as_array().unwrap().as_slice() else { panic!("{document}") };
    assert_eq!(writes["methods"], serde_json::json!(["POST", "PATCH"]));
    assert_eq!((&writes["window_seconds"], &writes["max_request_body_bytes"]), (&7200.into(), &1000.into()));
    assert_eq!((&writes["in_flight"], &writes["timeout_seconds"]), (&"conflict".into(), &25.into()));
    assert_eq!(writes["fingerprint"]["bytes"], false);
    let rules = document["tenant"]["rules"].to_string();
    assert!(rules.contains("a refreshed bearer token is another tenant"), "{rules}");
    let page = shop.send(&Ask::new("GET", "/.well-known/idempotency").header("accept", "text/html")).await;
    assert!(
        page.text().contains("&lt;") || page.text().contains("\"window_seconds\": 7200"),
        "{}",
        page.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_names_every_place_where_a_key_may_be_and_how_refusals_look() {
    let sources = ["header:x-key", "json:/payment/key"].map(|source| source.parse().unwrap());
    let key_sources = KeySources::new(sources).unwrap();
    let shop = Shop::layered(|layer| {
        layer.profile(Profile::Adcp).protect_writes(Protection { key_sources, ..protection() }).unwrap()
    })
    .await;
    let document = shop.send(&Ask::new("GET", "/.well-known/idempotency")).await.json();
    assert_eq!(document["key"]["sources"], serde_json::json!(["header:x-key", "json:/payment/key"]));
    assert_eq!(document["key"]["header"], "x-key");
    assert_eq!(document["key"]["characters"], "letters, digits, _ . : and -");
    assert_eq!(document["operations"][0]["key_scope"], "operation");
    let refused = shop.send(&Ask::payment().without("idempotency-key").header("x-key", "k")).await;
    let (format, refused) = (&document["format"], refused);
    assert_eq!(format["content_type"], refused.header("content-type").unwrap());
    assert!(format["example"].as_str().unwrap().contains("IDEMPOTENCY_CONFLICT"), "{document}");
    let page = shop.send(&Ask::new("GET", "/.well-known/idempotency").header("accept", "text/html")).await;
    for place in ["<code>x-key</code>", "<code>/payment/key</code>", "IDEMPOTENCY_CONFLICT"] {
        assert!(page.text().contains(place), "{place}: {}", page.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_mounts_the_contract_where_its_problem_documents_link_to() {
    let docs = DocsBase::new("/idempotency#").unwrap();
    let shown =
        IdempotencyLayer::new(MemoryStore::new()).protect_writes(protection()).unwrap().docs(docs.clone());
    let mounted = |_: &_| Router::new().route_service("/idempotency", shown.contract_service());
    let shop = Shop::built(|layer| layer.protect_writes(protection()).unwrap().docs(docs), mounted).await;
    let refused = shop.send(&Ask::payment().without("idempotency-key")).await;
    let link = refused.json()["type"].as_str().unwrap().to_owned();
    let (page, code) = link.split_once('#').unwrap();
    let asked = shop.send(&Ask::new("GET", page)).await;
    assert_eq!(asked.status, 200);
    let document = asked.json();
    assert_eq!(document["operations"][0]["window_seconds"], 7200);
    let errors = document["errors"].as_array().unwrap();
    assert!(errors.iter().any(|error| error["code"] == code), "{document}");
    assert_eq!(shop.send(&Ask::new("GET", "/.well-known/idempotency")).await.status, 404);
    assert_eq!(shop.send(&Ask::new("DELETE", page)).await.status, 405);
}
