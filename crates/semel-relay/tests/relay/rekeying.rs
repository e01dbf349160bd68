//! What is stored is sealed anew beside whoever works with it, wherever that is cut off.

use crate::interposed::{Cut, Interposed};
use crate::support::{Memory, Place, Shop, Sqlite, answer, replayed};
use bytes::Bytes;
use semel::seal::{Keyring, SealingKey, sealed_by};
use semel::{Body, Engine, EngineOptions, OperationId, Policy, Record, Store as _};
use semel_conformance::{Loss, LossyStore};
use semel_relay::{RekeyOptions, Rekeyed, Rekeyer};
use std::sync::Arc;

fn keyring(ids: &[&str]) -> Keyring {
    let key = |id: &&str| SealingKey::new(*id, &[id.as_bytes()[0]; 32]).unwrap();
    Keyring::new(ids.iter().map(key)).unwrap()
}

/// Small batches, so that there are several.
fn rekeyer(engine: &Engine) -> Rekeyer {
    Rekeyer::new(engine.clone(), RekeyOptions { batch: 3, ..RekeyOptions::default() })
}

async fn rekeyed(shop: &Shop) -> Rekeyed {
    rekeyer(&shop.engine).run(|_| {}).await.unwrap()
}

const RECORDS: u32 = 8;

/// Finished operations, one that keeps nothing, and an owner at a recovery point.
async fn filled(shop: &Shop) -> Vec<OperationId> {
    let mut ids = Vec::new();
    for number in 0..RECORDS {
        ids.push(shop.completed(number, "paid").await);
    }
    shop.doubted(100).await;
    ids
}

fn seal(record: &Record) -> Option<String> {
    match &record.response.as_ref().unwrap().body {
        Body::Sealed(bytes) => sealed_by(bytes).map(str::to_owned),
        other => {
            assert_eq!(*other, answer(201, "paid").body);
            None
        }
    }
}

async fn is_sealed_by(shop: &Shop, ids: &[OperationId], key: Option<&str>) {
    for (number, id) in (0..).zip(ids) {
        assert_eq!(seal(&shop.record(*id).await.unwrap()).as_deref(), key);
        assert_eq!(replayed(shop.request(number).await), (201, Bytes::from("paid")));
        assert!(shop.history(*id).await.is_empty(), "nothing is told of it");
    }
}

#[tokio::test(start_paused = true)]
async fn in_memory_everything_is_sealed_by_the_newest_key_and_the_second_run_finds_nothing_to_do() {
    everything_is_sealed_by_the_newest_key(Memory::new()).await;
}

#[tokio::test]
async fn on_sqlite_everything_is_sealed_by_the_newest_key_and_the_second_run_finds_nothing_to_do() {
    everything_is_sealed_by_the_newest_key(Sqlite::new()).await;
}

async fn everything_is_sealed_by_the_newest_key(place: impl Place) {
    let shop = Shop::at(&place, Policy::default()).await;
    let ids = filled(&shop).await;
    let all = ids.len() + 1;
    for (keys, key) in [
        (keyring(&["a"]), Some("a")),
        (keyring(&["b", "a"]), Some("b")),
        (keyring(&["c", "b"]), Some("c")),
        (keyring(&["c"]).open_only(), None),
    ] {
        shop.engine.set_keyring(Some(keys));
        let before = shop.record(ids[0]).await.unwrap();
        let mut told = Vec::new();
        let done = rekeyer(&shop.engine).run(|done| told.push(done.looked_at)).await.unwrap();
        assert_eq!(done, Rekeyed { looked_at: all, rewritten: ids.len(), damaged: 0, held: 0 });
        assert!(told.len() > 3 && told.is_sorted(), "{told:?}");
        is_sealed_by(&shop, &ids, key).await;
        let after = shop.record(ids[0]).await.unwrap();
        assert_eq!(after.version, before.version + 1);
        assert_eq!(Record { response: before.response.clone(), version: before.version, ..after }, before);
        let again = rekeyed(&shop).await;
        assert_eq!(again, Rekeyed { looked_at: all, ..Rekeyed::default() });
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_open_is_counted_and_left_alone_and_the_others_are_rewritten() {
    let shop = Shop::new(Policy::default()).await;
    shop.engine.set_keyring(Some(keyring(&["lost"])));
    let lost = shop.completed(200, "paid").await;
    shop.engine.set_keyring(Some(keyring(&["a"])));
    let ids = filled(&shop).await;
    let before = shop.record(lost).await;
    shop.engine.set_keyring(Some(keyring(&["b", "a"])));
    let done = rekeyed(&shop).await;
    assert_eq!((done.rewritten, done.damaged), (ids.len(), 1));
    is_sealed_by(&shop, &ids, Some("b")).await;
    assert_eq!(shop.record(lost).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_changes_meanwhile_is_read_again() {
    let shop = Shop::new(Policy::default()).await;
    let mut owner = shop.execute(1).await;
    owner.advance("created", Some(Bytes::from_static(b"pay_1"))).await.unwrap();
    shop.engine.set_keyring(Some(keyring(&["a"])));
    let id = owner.operation_id();
    let (way, elsewhere) = (shop.store.clone(), shop.clone());
    way.after_the_next_find(async move { owner_goes_on(&elsewhere, id).await });
    let done = rekeyed(&shop).await;
    assert_eq!(done.rewritten, 1);
    let record = shop.record(id).await.unwrap();
    assert_eq!((record.version, sealed_by(record.checkpoint.as_ref().unwrap())), (4, Some("a")));
    // The owner's next write is decided on what is there now.
    owner.advance("charged", Some(Bytes::from_static(b"ch_1"))).await.unwrap();
    drop(owner);
}

/// A sign of life, as the heartbeat gives it.
async fn owner_goes_on(shop: &Shop, id: OperationId) {
    use semel::transition::{Act, Change, Claim, act};
    let record = shop.record(id).await.unwrap();
    let extend = Act::Extend { lease: shop.policy.lease };
    let Ok(Change::Put { next, history }) = act(&record, &Claim::of(&record), &extend) else {
        panic!("the owner may")
    };
    let swap = semel::Swap { expected: record.expected(), next, history };
    assert_eq!(shop.store.swap(vec![swap]).await.unwrap().items, vec![semel::Swapped::Done]);
}

#[tokio::test(start_paused = true)]
async fn lost_answers_cost_nothing_but_another_look() {
    for loss in [Loss::Answer, Loss::Call] {
        let place = Memory::new();
        let shop = Shop::at(&place, Policy::default()).await;
        let ids = filled(&shop).await;
        let lossy = LossyStore::losing(place.open().await, [loss, loss]);
        let options = EngineOptions { keyring: Some(keyring(&["a"])), ..EngineOptions::default() };
        let engine = Engine::with_options(lossy.clone(), options);
        let done = rekeyer(&engine).run(|_| {}).await.unwrap();
        assert_eq!((done.rewritten, done.damaged, lossy.left()), (ids.len(), 0, 0));
        shop.engine.set_keyring(Some(keyring(&["a"])));
        is_sealed_by(&shop, &ids, Some("a")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_it_is_cut_off_the_next_run_does_what_is_left() {
    for cut in [Cut::Before, Cut::After] {
        for call in 0.. {
            let place = Memory::new();
            let shop = Shop::at(&place, Policy::default()).await;
            let ids = filled(&shop).await;
            shop.engine.set_keyring(Some(keyring(&["a"])));
            let way = Interposed::over(place.open().await).cutting(call, cut);
            // A call that is cut off never ends; the store's time-out is not what this is about.
            let options = EngineOptions {
                keyring: Some(keyring(&["a"])),
                store_timeout: std::time::Duration::from_secs(1_000_000),
                ..EngineOptions::default()
            };
            let engine = Engine::with_options(Arc::new(way.clone()), options);
            let rekeyer = rekeyer(&engine);
            let whole = tokio::select! {
                () = way.reached() => false,
                done = rekeyer.run(|_| {}) => done.is_ok(),
            };
            // What is in the middle is replayed all the same, each by its own.
            for number in 0..RECORDS {
                assert_eq!(replayed(shop.request(number).await), (201, Bytes::from("paid")));
            }
            let rest = rekeyed(&shop).await;
            assert_eq!((rest.damaged, rest.held, whole && rest.rewritten > 0), (0, 0, false));
            is_sealed_by(&shop, &ids, Some("a")).await;
            if whole {
                assert!(call > 8, "there was more to do than that");
                break;
            }
        }
    }
}
