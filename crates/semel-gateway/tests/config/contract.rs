//! A layer and a gateway that protect alike promise alike.

use crate::read;
use http::Request;
use http_body_util::BodyExt as _;
use semel::MemoryStore;
use semel_gateway::contract::Contract;
use semel_tower::IdempotencyLayer;
use serde_json::Value;
use tower::ServiceExt as _;

const ROUTES: &str = r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
in_flight = "wait:1500ms"
retention = "72h"
body_retention = "1h"
tombstone = "30d"
expired = "new"
store_response = "reference"
keep_headers = ["x-cost"]
[route.outcome]
503 = "retryable"
[route.fingerprint]
ignore = ["/trace"]
headers = ["api-version"]
normalise = { "/currency" = "lowercase" }
defaults = { "/currency" = "EUR", "/amount" = 10 }
[[route]]
operation = "refund"
match = "PATCH /payments/{id}"
in_flight = "accepted"
[route.fingerprint]
host = "ignore"
bytes = true
[route.key]
need = "optional"
from = ["header:x-idempotency-key", "json:/refund/key"]
scope = "tenant"
"#;

#[tokio::test]
async fn a_layer_and_a_gateway_publish_the_same_about_the_same_protection() {
    let config = read(ROUTES).unwrap_or_else(|errors| panic!("{errors}"));
    let of_gateway: Value = serde_json::from_slice(Contract::new(&config).answer(None).body()).unwrap();
    let mut layer = IdempotencyLayer::new(MemoryStore::new()).key_rules(config.key_rules).protect(|_| None);
    for (name, route) in ["create_payment", "refund"].into_iter().zip(config.routes.routes()) {
        let (method, path) = (route.pattern.method().clone(), route.pattern.path());
        layer = layer.describe(name, method, path, route.protection.clone());
    }
    let answer = layer.contract_service().oneshot(Request::new(())).await.unwrap();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let of_layer: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(of_layer["operations"], of_gateway["operations"]);
    assert_eq!(of_layer["operations"][1]["key_scope"], "tenant");
    assert_eq!(
        of_layer["operations"][1]["key_sources"],
        serde_json::json!(["header:x-idempotency-key", "json:/refund/key"])
    );
    assert_eq!(of_layer["format"], of_gateway["format"]);
    for member in ["sources", "min_length", "max_length", "characters"] {
        assert_eq!(of_layer["key"][member], of_gateway["key"][member]);
    }
    let codes = |document: &Value| -> Vec<(Value, Value)> {
        let errors = document["errors"].as_array().unwrap().iter();
        errors.map(|error| (error["code"].clone(), error["status"].clone())).collect()
    };
    assert_eq!(codes(&of_layer), codes(&of_gateway));
}
