//! Whose key it is, from the configuration to the record.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use semel::{Engine, Filter, MemoryStore};
use semel_gateway::{Config, PeerAddress};
use semel_tower::IdempotencyLayer;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tower::{Layer as _, ServiceExt as _, service_fn};

const KEY: &str = "0a4f6c1e-8f5e-4c3a";
const PROXY: &str = "10.0.0.7:40000";
const STRANGER: &str = "192.0.2.1:40000";

/// A service that says how many requests it has seen, behind the layer as a configuration has it.
struct Shop {
    layer: IdempotencyLayer,
    seen: Arc<AtomicUsize>,
}

impl Shop {
    fn with(scope: &str) -> Self {
        let toml = format!("upstream = \"http://127.0.0.1:9000\"\n{scope}");
        let config =
            Config::from_toml(&toml, Path::new("semel.toml")).unwrap_or_else(|errors| panic!("{errors}"));
        let layer = IdempotencyLayer::with_engine(Engine::new(MemoryStore::new()));
        Self { layer: config.scope.apply(layer).unwrap(), seen: Arc::default() }
    }

    /// The status of the answer, and its body: the number of the execution, or the code of the problem.
    async fn post(&self, peer: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
        let mut request = Request::post("/payments").header("idempotency-key", KEY);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Full::<Bytes>::default()).unwrap();
        request.extensions_mut().insert(PeerAddress(peer.parse().unwrap()));
        let seen = Arc::clone(&self.seen);
        let service = service_fn(move |_: Request<Full<Bytes>>| {
            let number = seen.fetch_add(1, Ordering::SeqCst) + 1;
            async move { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(number.to_string()))) }
        });
        let response = self.layer.layer(service).oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let code = serde_json::from_slice::<serde_json::Value>(&body)
            .ok()
            .and_then(|document| Some(document.get("code")?.as_str()?.to_owned()));
        (status, code.unwrap_or_else(|| String::from_utf8(body.to_vec()).unwrap()))
    }

    async fn tenants(&self) -> Vec<String> {
        let page = self.layer.engine().store().list(Filter::default(), None, 100).await.unwrap();
        let mut tenants: Vec<_> =
            page.records.into_iter().map(|record| record.key.tenant.to_string()).collect();
        tenants.sort();
        tenants
    }
}

fn unresolved() -> (StatusCode, String) {
    (StatusCode::UNAUTHORIZED, "idempotency_scope_unresolved".into())
}

fn execution(number: usize) -> (StatusCode, String) {
    (StatusCode::OK, number.to_string())
}

const BY_HEADER: &str = "[scope]\ntenant = [\"header:x-account\"]\ntrusted_peers = [\"10.0.0.0/8\"]\n";
const BY_HEADER_OR_CREDENTIAL: &str =
    "[scope]\ntenant = [\"header:x-account\", \"credential\"]\ntrusted_peers = [\"10.0.0.0/8\"]\n";

#[tokio::test]
async fn the_accounts_of_a_trusted_proxy_never_meet_whatever_their_tokens() {
    let shop = Shop::with(BY_HEADER);
    assert_eq!(shop.post(PROXY, &[("x-account", "ann"), ("authorization", "Bearer 1")]).await, execution(1));
    assert_eq!(shop.post(PROXY, &[("x-account", "bob"), ("authorization", "Bearer 1")]).await, execution(2));
    assert_eq!(shop.post(PROXY, &[("x-account", "ann"), ("authorization", "Bearer 2")]).await, execution(1));
    assert_eq!(shop.tenants().await, ["ann", "bob"]);
}

#[tokio::test]
async fn a_stranger_cannot_name_its_tenant() {
    let shop = Shop::with(BY_HEADER);
    assert_eq!(shop.post(PROXY, &[("x-account", "ann")]).await, execution(1));
    for headers in [
        &[("x-account", "ann")][..],
        &[("x-account", "ann"), ("x-forwarded-for", "10.0.0.7")],
        &[("x-account", "ann"), ("forwarded", "for=10.0.0.7")],
        &[("authorization", "Bearer 1")],
        &[],
    ] {
        assert_eq!(shop.post(STRANGER, headers).await, unresolved(), "{headers:?}");
    }
    assert_eq!(shop.tenants().await, ["ann"], "nothing was executed, and nothing recorded");
}

#[tokio::test]
async fn the_first_source_that_is_present_decides() {
    let shop = Shop::with(BY_HEADER_OR_CREDENTIAL);
    assert_eq!(shop.post(PROXY, &[("x-account", "ann"), ("authorization", "Bearer 1")]).await, execution(1));
    assert_eq!(shop.post(PROXY, &[("authorization", "Bearer 1")]).await, execution(2));
    // Not believed is not present: the same token is the same tenant, and never ann.
    assert_eq!(
        shop.post(STRANGER, &[("x-account", "ann"), ("authorization", "Bearer 1")]).await,
        execution(2)
    );
    assert_eq!(shop.post(STRANGER, &[("authorization", "Bearer 2")]).await, execution(3));
    assert_eq!(shop.post(STRANGER, &[("x-account", "ann")]).await, unresolved());
    let tenants = shop.tenants().await;
    assert_eq!((tenants.len(), tenants[0].as_str()), (3, "ann"));
    assert!(tenants[1..].iter().all(|tenant| tenant.starts_with("cred_")), "{tenants:?}");
}

#[tokio::test]
async fn a_present_source_that_is_invalid_is_not_passed_over() {
    let shop = Shop::with(BY_HEADER_OR_CREDENTIAL);
    for headers in [
        &[("x-account", ""), ("authorization", "Bearer 1")][..],
        &[("x-account", "ann"), ("x-account", "bob"), ("authorization", "Bearer 1")],
        &[("x-account", "a b"), ("authorization", "Bearer 1")],
    ] {
        assert_eq!(shop.post(PROXY, headers).await, unresolved(), "{headers:?}");
    }
    assert!(shop.tenants().await.is_empty());
}

#[tokio::test]
async fn with_nothing_configured_credentials_tell_and_those_without_share() {
    let shop = Shop::with("");
    assert_eq!(shop.post(STRANGER, &[]).await, execution(1));
    assert_eq!(shop.post(PROXY, &[("x-account", "ann")]).await, execution(1));
    assert_eq!(shop.post(STRANGER, &[("x-api-key", "one")]).await, execution(2));
    assert_eq!(shop.post(PROXY, &[("x-api-key", "one")]).await, execution(2));
    assert_eq!(shop.tenants().await[0], "anonymous");
}

#[tokio::test]
async fn credential_alone_refuses_callers_without_one() {
    let shop = Shop::with("[scope]\ntenant = [\"credential\"]\n");
    assert_eq!(shop.post(STRANGER, &[]).await, unresolved());
    assert_eq!(shop.post(STRANGER, &[("authorization", "Bearer 1")]).await, execution(1));
}
