//! Tenants by credential, with nothing configured: two gateways agree on them without having been told a secret.

use crate::support::{Ask, Database, Gateway, Service, post};

const ADA: &str = "cr3d-of-ada";
const BOB: &str = "cr3d-of-bob";

/// The answer does not repeat the request: what is stored of it is nothing of the caller's.
fn by(credential: &str, target: &str) -> Ask {
    post(target, "same-key-for-all")
        .field(&format!("Authorization: Bearer {credential}"))
        .field("x-length: 20")
}

#[tokio::test]
async fn gateways_agree_on_tenants_and_never_mix_them() {
    let (service, database) = (Service::start(), Database::new().await);
    // At the same moment, on an empty database: they agree on its tables and on the secret.
    let url = database.url();
    let (one, other) = tokio::join!(Gateway::by_flags(&service, &url), Gateway::by_flags(&service, &url));
    let asks = [
        by(ADA, "/payments"),
        by(BOB, "/payments"),
        by(ADA, "/refunds"),
        by(BOB, "/refunds"),
        // As another kind of credential, and without any.
        post("/payments", "same-key-for-all").field(&format!("X-Api-Key: {ADA}")).field("x-length: 20"),
        post("/payments", "same-key-for-all").field("x-length: 20"),
    ];
    for (at, ask) in asks.iter().enumerate() {
        let (here, there) = if at % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let first = here.send(ask).await;
        assert!(first.status == 201 && !first.is_replay(), "{at}: {first:?}");
        assert_eq!(service.executed(), at + 1, "each is one of its own");
        let retry = there.send(ask).await;
        assert!(retry.is_replay(), "{at}: {retry:?}");
        assert_eq!((retry.status, &retry.body), (first.status, &first.body));
        assert_eq!(retry.header("semel-operation-id"), first.header("semel-operation-id"));
    }
    // Once more, now that all are there.
    for ask in &asks {
        assert!(one.send(ask).await.is_replay() && other.send(ask).await.is_replay());
    }
    assert_eq!(service.executed(), asks.len());

    let dump = database.dump().await;
    assert_eq!(dump.matches("semel_records ").count(), asks.len());
    assert!(dump.contains("same-key-for-all") && dump.contains("POST /refunds"), "it tells: {dump}");
    for credential in [ADA, BOB] {
        let digits: String = credential.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(!dump.contains(credential) && !dump.contains(&digits), "{credential} in clear: {dump}");
    }
}
