//! Whose key it is, what it is for, and that one key never stands for two requests.

use crate::support::{Ask, KEY, Shop};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use semel::Policy;
use semel_tower::{IdempotencyLayer, Tenant};
use tower::Layer as _;

fn by_account(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.tenant(|parts| parts.headers.get("x-account")?.to_str().ok().map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_different_request_under_the_same_key_is_refused_in_every_state() {
    let shop = Shop::open().await;
    let other = Ask::payment().json(r#"{"amount":"99.00"}"#);
    let refused = async |when: &str| {
        let answer = shop.send(&other).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (422, "idempotency_key_reused_with_different_payload"),
            "{when}"
        );
        assert_eq!(answer.json()["retryable"], false);
        assert!(
            !String::from_utf8_lossy(&answer.body).contains("effect"),
            "nothing of the first answer is shown"
        );
    };
    let line = Ask::payment().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    refused("in flight").await;
    shop.clock.advance(Policy::default().lease);
    refused("lease over").await;
    assert_eq!(shop.send(&Ask::payment()).await.code(), "idempotency_outcome_unknown");
    refused("unknown").await;
    shop.till.gate.open();
    let first = crate::support::Answer::read(line).await;
    assert_eq!(first.status, 201);
    refused("completed").await;
    shop.clock.advance(Policy::default().retention);
    refused("expired").await;
    assert_eq!(shop.till.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_counts_is_what_is_asked_for_and_not_how_it_is_spelt() {
    let shop = Shop::open().await;
    let first = shop.send(&Ask::payment().json(r#"{"amount":10.0,"to":"a"}"#)).await;
    for body in [r#"{ "to" : "a", "amount" : 10 }"#, r#"{"to":"\u0061","amount":1e1}"#] {
        let again = shop.send(&Ask::payment().json(body)).await;
        assert_eq!((again.status, &again.body), (201, &first.body), "{body}");
    }
    let again = shop
        .send(
            &Ask::payment()
                .json(r#"{"amount":10.0,"to":"a"}"#)
                .header("Accept", "text/html")
                .header("Prefer", "x"),
        )
        .await;
    assert_eq!(again.status, 201);
    for body in [
        r#"{"amount":10.01,"to":"a"}"#,
        r#"{"amount":"10.0","to":"a"}"#,
        r#"{"amount":10.0,"to":"a","to":"a"}"#,
    ] {
        assert_eq!(shop.send(&Ask::payment().json(body)).await.status, 422, "{body}");
    }
    let elsewhere = Ask::new("POST", "/payments?dry=1").key(KEY).json(r#"{"amount":10.0,"to":"a"}"#);
    assert_eq!(shop.send(&elsewhere).await.status, 422, "the query counts");
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_same_key_is_a_fresh_operation_and_never_sees_the_others_bytes() {
    let shop = Shop::layered(by_account).await;
    let of = |account: &str| Ask::payment().header("x-account", account).answered_with("location", account);
    let anns = shop.send(&of("ann")).await;
    let bobs = shop.send(&of("bob")).await;
    assert_eq!((anns.text(), bobs.text()), ("effect 1", "effect 2"));
    assert!(!bobs.is_replay());
    assert_ne!(anns.operation_id(), bobs.operation_id());
    for (account, body) in [("ann", "effect 1"), ("bob", "effect 2")] {
        let replay = shop.send(&of(account)).await;
        assert_eq!(
            (replay.text(), replay.header("location"), replay.is_replay()),
            (body, Some(account), true)
        );
    }
    let other_body = shop.send(&of("eve").json(r#"{"amount":"99.00"}"#)).await;
    assert_eq!(other_body.status, 201, "nor does a mismatch tell that another tenant used the key");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_operations_same_key_is_a_fresh_operation() {
    let shop = Shop::open().await;
    assert_eq!(shop.send(&Ask::payment()).await.text(), "effect 1");
    let refund = Ask::new("POST", "/refunds").key(KEY).json(r#"{"amount":"10.00"}"#);
    assert_eq!(shop.send(&refund).await.text(), "effect 2");
    assert_eq!(shop.send(&Ask::payment()).await.text(), "effect 1");
    assert_eq!(shop.send(&refund).await.text(), "effect 2");
    let note = |id: &str| Ask::new("POST", &format!("/payments/{id}/notes")).key(KEY).json("{}");
    assert_eq!(shop.send(&note("1")).await.status, 201);
    assert_eq!(shop.send(&note("2")).await.status, 422, "one route is one operation, and its path counts");
    let operations: Vec<_> = shop.records().await.into_iter().map(|record| record.key.operation).collect();
    assert!(operations.contains(&"POST /payments/{id}/notes".into()), "{operations:?}");
}

/// Which is shown the rest of the path alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_router_that_another_one_nests_has_operations_of_their_whole_path() {
    let shop = Shop::open().await;
    let layer = IdempotencyLayer::with_engine(shop.engine.clone());
    let till = || shop.till.clone().router();
    let router = Router::new()
        .nest("/accounts/{account}", till().layer(layer.clone()))
        .nest_service("/first", layer.layer(till()))
        .nest_service("/second", layer.layer(till()));
    let server = crate::support::Server::start(router).await;
    let at = |path: &str| Ask::new("POST", path).key(KEY).json(r#"{"amount":"10.00"}"#);
    assert_eq!(at("/accounts/1/payments").send(&server).await.text(), "effect 1");
    assert_eq!(at("/accounts/2/payments").send(&server).await.status, 422, "its path counts, all of it");
    assert_eq!(at("/accounts/1/payments").send(&server).await.text(), "effect 1");
    for (path, effect) in [("/first/payments", "effect 2"), ("/second/payments", "effect 3")] {
        assert_eq!(at(path).send(&server).await.text(), effect, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_tenant_is_refused_where_the_application_names_tenants() {
    let shop = Shop::layered(by_account).await;
    let long = Ask::payment().header("x-account", "a".repeat(256));
    for ask in [Ask::payment(), Ask::payment().header("x-account", ""), long] {
        let answer = shop.send(&ask).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "idempotency_scope_unresolved"));
        assert!(answer.header("www-authenticate").is_some());
    }
    assert_eq!((shop.till.requests(), shop.records().await.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_applications_own_authentication_may_name_the_tenant_in_an_extension() {
    let shop = Shop::open().await;
    let router = shop.till.clone().router().layer(IdempotencyLayer::with_engine(shop.engine.clone())).layer(
        from_fn(|mut request: Request, next: Next| async move {
            if let Some(account) = request.headers().get("x-account") {
                let tenant = Tenant(account.to_str().unwrap().to_owned());
                request.extensions_mut().insert(tenant);
            }
            next.run(request).await
        }),
    );
    let server = crate::support::Server::start(router).await;
    let of = |account: &str, token: &str| {
        Ask::payment().header("x-account", account).header("Authorization", token)
    };
    assert_eq!(of("ann", "Bearer one").send(&server).await.text(), "effect 1");
    assert_eq!(
        of("ann", "Bearer two").send(&server).await.text(),
        "effect 1",
        "a refreshed token is the same tenant"
    );
    assert_eq!(of("bob", "Bearer one").send(&server).await.text(), "effect 2");
    let nobody = of("", "Bearer one").send(&server).await;
    assert_eq!(
        (nobody.status, nobody.code().as_str()),
        (401, "idempotency_scope_unresolved"),
        "an empty name names nobody"
    );
    let mut tenants: Vec<std::sync::Arc<str>> =
        shop.records().await.into_iter().map(|record| record.key.tenant).collect();
    tenants.sort();
    assert_eq!(tenants, ["ann".into(), "bob".into()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_tell_tenants_apart_and_are_not_kept() {
    const SECRETS: [&str; 4] = ["Bearer s3cr3t-one", "Bearer s3cr3t-two", "s3cr3t-api-one", "s3cr3t-api-two"];
    let shop = Shop::open().await;
    let [token, other_token, api_key, other_api_key] = SECRETS;
    let asks = [
        Ask::payment(),
        Ask::payment().header("Authorization", token),
        Ask::payment().header("Authorization", other_token),
        Ask::payment().header("X-Api-Key", api_key),
        Ask::payment().header("X-Api-Key", other_api_key),
        // A token and a key of the same text are not the same.
        Ask::payment().header("X-Api-Key", token),
        // Behind a shared token, the keys tell the callers apart.
        Ask::payment().header("Authorization", token).header("X-Api-Key", api_key),
        Ask::payment().header("Authorization", token).header("X-Api-Key", other_api_key),
    ];
    for (number, ask) in asks.iter().enumerate() {
        let answer = shop.send(ask).await;
        assert_eq!(
            (answer.text(), answer.is_replay()),
            (format!("effect {}", number + 1).as_str(), false),
            "{number}"
        );
    }
    for (number, ask) in asks.iter().enumerate() {
        let answer = shop.send(ask).await;
        assert_eq!(
            (answer.text(), answer.is_replay()),
            (format!("effect {}", number + 1).as_str(), true),
            "{number}"
        );
    }
    let tenants: Vec<_> = shop.records().await.into_iter().map(|record| record.key.tenant).collect();
    assert_eq!(tenants.iter().filter(|tenant| ***tenant == *"anonymous").count(), 1);
    assert_eq!(tenants.iter().filter(|tenant| tenant.starts_with("cred_")).count(), 7);
    assert!(tenants.iter().all(|tenant| !tenant.contains(KEY)));
    for name in ["semel.db", "semel.db-wal"] {
        let bytes = std::fs::read(shop.file().with_file_name(name)).unwrap();
        for secret in SECRETS {
            let secret = secret.trim_start_matches("Bearer ").as_bytes();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{name} holds a credential");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_knows_the_same_tenants_again() {
    let shop = Shop::open().await;
    let ask = Ask::payment().header("Authorization", "Bearer one");
    assert_eq!(shop.send(&ask).await.text(), "effect 1");
    let store = semel_sqlite::SqliteStore::open(shop.file()).await.unwrap();
    let router = shop.till.clone().router().layer(IdempotencyLayer::new(store));
    let restarted = crate::support::Server::start(router).await;
    let replay = ask.send(&restarted).await;
    assert_eq!((replay.text(), replay.is_replay()), ("effect 1", true));
}
