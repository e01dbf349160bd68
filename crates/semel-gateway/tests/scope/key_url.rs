//! Keys of tokens that the issuer publishes at a URL.

use crate::support::{AUDIENCE, ISSUER, Issuer, Shop, serve};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use semel_testing::tls::{Authority, HttpsServer};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

const KEY: &str = "0a4f6c1e-8f5e-4c3a-9d57";

/// What the issuer publishes, and how often it was fetched. Nothing to publish: the issuer is down.
#[derive(Clone, Default)]
struct Published(Arc<Mutex<(Option<Value>, usize)>>);

impl Published {
    fn set(&self, keys: Option<Value>) {
        self.0.lock().unwrap().0 = keys;
    }

    fn fetches(&self) -> usize {
        self.0.lock().unwrap().1
    }

    async fn serve(&self) -> SocketAddr {
        let published = self.clone();
        let answer = move || {
            let mut published = published.0.lock().unwrap();
            published.1 += 1;
            std::future::ready(
                published.0.as_ref().map(Value::to_string).ok_or(StatusCode::SERVICE_UNAVAILABLE),
            )
        };
        serve(Router::new().route("/jwks.json", get(answer))).await
    }
}

async fn shop(issuer: SocketAddr) -> Shop {
    let keys = format!("jwks = \"http://{issuer}/jwks.json\"");
    let rules = format!("audience = [\"{AUDIENCE}\"]\nissuer = [\"{ISSUER}\"]");
    Shop::open(&format!("[scope]\ntenant = [\"jwt:sub\"]\n[scope.jwt]\n{keys}\n{rules}\n")).await
}

fn set(keys: &[(&str, &Issuer)]) -> Option<Value> {
    Some(json!({ "keys": keys.iter().map(|(id, key)| key.jwk(id)).collect::<Vec<_>>() }))
}

#[tokio::test]
async fn keys_are_fetched_once_and_stay_in_force_while_the_issuer_is_down() {
    let (published, key) = (Published::default(), Issuer::p256());
    published.set(set(&[("one", &key)]));
    let shop = shop(published.serve().await).await;
    assert_eq!(shop.pay_with(KEY, &key.token_by("one")).await.executed(), 1);
    published.set(None);
    let again = shop.pay_with(KEY, &key.token_by("one")).await;
    assert!(again.executed() == 1 && again.is_replay());
    assert_eq!(published.fetches(), 1);
}

#[tokio::test]
async fn without_any_keys_nothing_is_executed_and_nobody_is_called_a_stranger() {
    let (published, key) = (Published::default(), Issuer::p256());
    let shop = shop(published.serve().await).await;
    shop.pay_with(KEY, &key.token_by("one")).await.is_undecided();
    assert_eq!(shop.executions(), 0);
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_at_most_once_a_second() {
    let (published, old, new) = (Published::default(), Issuer::p256(), Issuer::rsa());
    published.set(set(&[("old", &old)]));
    let shop = shop(published.serve().await).await;
    assert_eq!(shop.pay_with(KEY, &old.token_by("old")).await.executed(), 1);
    // The fetch for the first token was less than a second ago: all of these go by it.
    for _ in 0..20 {
        shop.pay_with(KEY, &new.token_by("new")).await.is_refused();
    }
    assert!(published.fetches() <= 3, "{} fetches", published.fetches());
    published.set(set(&[("old", &old), ("new", &new)]));
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let again = shop.pay_with(KEY, &new.token_by("new")).await;
    assert!(again.executed() == 1 && again.is_replay(), "the same subject, by another key");
}

#[tokio::test]
async fn over_tls_keys_are_taken_only_from_whom_the_ca_file_vouches_for() {
    let (authority, stranger, key) = (Authority::new(), Authority::new(), Issuer::p256());
    let keys = set(&[("one", &key)]).unwrap().to_string();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{keys}", keys.len());
    let issuer = HttpsServer::start(&authority.issue("issuer", &["localhost"]), None, answer).await;
    let settings = |ca: &Authority| {
        let (port, ca) = (issuer.port(), ca.ca());
        format!(
            "[scope]\ntenant = [\"jwt:sub\"]\n[scope.jwt]\njwks = \"https://localhost:{port}/jwks.json\"\n\
             audience = [\"{AUDIENCE}\"]\nissuer = [\"{ISSUER}\"]\ntls = {{ ca = \"{}\" }}\n",
            ca.display()
        )
    };
    let shop = Shop::open(&settings(&stranger)).await;
    shop.pay_with(KEY, &key.token_by("one")).await.is_undecided();
    assert_eq!((shop.executions(), issuer.requests().len()), (0, 0));
    let shop = Shop::open(&settings(&authority)).await;
    assert_eq!(shop.pay_with(KEY, &key.token_by("one")).await.executed(), 1);
    assert!(issuer.requests()[0].starts_with("GET /jwks.json HTTP/1.1"), "{:?}", issuer.requests());
}

#[tokio::test]
async fn an_issuer_may_require_a_client_certificate() {
    let (authority, clients, key) = (Authority::new(), Authority::new(), Issuer::p256());
    let keys = set(&[("one", &key)]).unwrap().to_string();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{keys}", keys.len());
    let certificate = authority.issue("issuer", &["localhost"]);
    let issuer = HttpsServer::start(&certificate, Some(&clients), answer).await;
    let settings = |client: &str| {
        let (port, ca) = (issuer.port(), authority.ca());
        format!(
            "[scope]\ntenant = [\"jwt:sub\"]\n[scope.jwt]\njwks = \"https://localhost:{port}/jwks.json\"\n\
             audience = [\"{AUDIENCE}\"]\nissuer = [\"{ISSUER}\"]\ntls = {{ ca = \"{}\"{client} }}\n",
            ca.display()
        )
    };
    let shop = Shop::open(&settings("")).await;
    shop.pay_with(KEY, &key.token_by("one")).await.is_undecided();
    assert_eq!((shop.executions(), issuer.requests().len()), (0, 0));
    let shown = clients.issue("gateway", &["gateway.example"]);
    let (certificate, private) = (shown.certificate.display(), shown.key.display());
    let shop =
        Shop::open(&settings(&format!(", certificate = \"{certificate}\", key = \"{private}\""))).await;
    assert_eq!(shop.pay_with(KEY, &key.token_by("one")).await.executed(), 1);
}
