//! Who is asked before a replay decides whether the caller gets it.

use crate::support::{Ask, Shop};
use http::HeaderValue;
use http::request::Parts;
use semel_tower::{ReplayCheck, ReplayCheckFuture, ReplayVerdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Does what the request says, and counts how often it was asked.
#[derive(Clone, Default)]
struct Told(Arc<AtomicU32>);

impl ReplayCheck for Told {
    fn check<'a>(&'a self, request: &'a Parts) -> ReplayCheckFuture<'a> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let verdict = match request.headers.get("x-verdict").map(HeaderValue::as_bytes) {
            Some(b"refused") => {
                ReplayVerdict::Refused { challenges: vec![HeaderValue::from_static("Bearer realm=\"shop\"")] }
            }
            Some(b"undecided") => ReplayVerdict::Undecided,
            Some(_) => panic!("as told"),
            None => ReplayVerdict::Allowed,
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_sent_only_after_a_yes() {
    let told = Told::default();
    let checking = told.clone();
    let shop = Shop::layered(|layer| layer.replay_check(checking)).await;
    let first = shop.send(&Ask::payment().header("x-verdict", "refused")).await;
    assert_eq!((first.status, told.0.load(Ordering::SeqCst)), (201, 0), "nobody is asked about an execution");
    let refused = shop.send(&Ask::payment().header("x-verdict", "refused")).await;
    assert_eq!((refused.status, refused.code().as_str()), (401, "idempotency_scope_unresolved"));
    assert_eq!(refused.all("www-authenticate"), ["Bearer realm=\"shop\""]);
    assert_eq!(refused.json()["safe_new_key"], false, "the operation was executed");
    for mode in ["undecided", "panics"] {
        let later = shop.send(&Ask::payment().header("x-verdict", mode)).await;
        assert_eq!((later.status, later.header("retry-after")), (503, Some("1")), "{mode}");
        assert_eq!(later.json()["retryable"], true);
    }
    let reused = shop.send(&Ask::payment().json("{}").header("x-verdict", "refused")).await;
    assert_eq!(reused.status, 422, "that is no replay");
    let replay = shop.send(&Ask::payment()).await;
    assert!(replay.is_replay());
    assert_eq!((&replay.body, shop.till.effects()), (&first.body, 1));
    assert_eq!(told.0.load(Ordering::SeqCst), 4);
}
