//! Rekeying while others work with the records, interrupted at every step.

use crate::interposed::{Cut, Interposed};
use crate::support::{LEASE, Memory, Place, Shop, Sqlite, answer, key, replayed};
use bytes::Bytes;
use semel::seal::{Keyring, SealingKey, sealed_by};
use semel::{
    Body, Engine, EngineOptions, Finish, OperationId, Outcome, Policy, Record, Stale, Store as _, Ticket,
};
use semel_conformance::{Loss, LossyStore};
use semel_worker::{RekeyOptions, Rekeyed, Rekeyer};
use std::sync::Arc;
use tokio::sync::oneshot;

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

/// Finished operations, and one in doubt that keeps nothing.
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
        // Who is in doubt may yet say how it ended.
        let in_doubt = Rekeyed { looked_at: all, under_way: 1, ..Rekeyed::default() };
        assert_eq!(done, Rekeyed { rewritten: ids.len(), ..in_doubt });
        assert!(told.len() > 3 && told.is_sorted(), "{told:?}");
        is_sealed_by(&shop, &ids, key).await;
        let after = shop.record(ids[0]).await.unwrap();
        assert_eq!(after.version, before.version + 1);
        assert_eq!(Record { response: before.response.clone(), version: before.version, ..after }, before);
        let again = rekeyed(&shop).await;
        assert_eq!(again, in_doubt);
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_open_is_counted_and_left_alone_and_the_others_are_rewritten() {
    let shop = Shop::new(Policy::default()).await;
    shop.engine.set_keyring(Some(keyring(&["a"])));
    let ids = filled(&shop).await;
    shop.engine.set_keyring(Some(keyring(&["lost", "a"])));
    let lost = shop.completed(200, "paid").await;
    let before = shop.record(lost).await;
    shop.engine.set_keyring(Some(keyring(&["b", "a"])));
    let done = rekeyed(&shop).await;
    assert_eq!((done.rewritten, done.damaged), (ids.len(), 1));
    is_sealed_by(&shop, &ids, Some("b")).await;
    assert_eq!(shop.record(lost).await, before);
}

#[tokio::test]
async fn what_cannot_even_be_listed_is_counted_with_what_does_not_open() {
    let place = Sqlite::new();
    let shop = Shop::at(&place, Policy::default()).await;
    let ids = filled(&shop).await;
    let spoilt = key(0).key.to_string();
    let spoil = "UPDATE semel_records SET owner = x'00' WHERE key = ?1";
    assert_eq!(place.store().await.transaction(move |tx| tx.execute(spoil, [spoilt])).await.unwrap(), 1);
    shop.engine.set_keyring(Some(keyring(&["a"])));
    for rewritten in [ids.len() - 1, 0] {
        let done = rekeyed(&shop).await;
        let expected = Rekeyed { looked_at: ids.len(), rewritten, damaged: 1, held: 0, under_way: 1 };
        assert_eq!((done, done.is_complete()), (expected, false));
    }
}

/// One that is under way, begun when the key `a` sealed; now `b` does.
async fn begun_by_an_older_key(shop: &Shop) -> Ticket {
    shop.engine.set_keyring(Some(keyring(&["a"])));
    let owner = shop.execute(0).await;
    shop.engine.set_keyring(Some(keyring(&["b", "a"])));
    owner
}

async fn ends(owner: Ticket) {
    let outcome = Outcome::Completed { response: Some(answer(201, "paid")), resource: None };
    assert!(matches!(owner.finish(outcome).await, Ok(Finish::Stored)));
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_told_of_until_it_has_ended() {
    let one = Rekeyed { looked_at: 1, ..Rekeyed::default() };
    for in_doubt in [false, true] {
        let shop = Shop::new(Policy::default()).await;
        let owner = begun_by_an_older_key(&shop).await;
        let id = owner.operation_id();
        if in_doubt {
            owner.doubt("timeout").await;
        }
        let done = rekeyed(&shop).await;
        assert_eq!((done, done.is_complete()), (Rekeyed { under_way: 1, ..one }, false));
        ends(owner).await;
        let record = shop.record(id).await.unwrap();
        assert_eq!(seal(&record).as_deref(), Some("a"), "it ends by the key that it began with");
        let done = rekeyed(&shop).await;
        assert_eq!((done, done.is_complete()), (Rekeyed { rewritten: 1, ..one }, true));
        assert_eq!(seal(&shop.record(id).await.unwrap()).as_deref(), Some("b"));
        assert_eq!(replayed(shop.request(0).await), (201, Bytes::from("paid")));
    }
}

#[tokio::test(start_paused = true)]
async fn what_ends_by_an_older_key_after_it_was_looked_at_is_rewritten_in_the_same_run() {
    let shop = Shop::new(Policy::default()).await;
    let owner = begun_by_an_older_key(&shop).await;
    let id = owner.operation_id();
    shop.store.after_the_next_find(ends(owner));
    let done = rekeyed(&shop).await;
    assert_eq!(done, Rekeyed { looked_at: 1, rewritten: 1, ..Rekeyed::default() });
    is_sealed_by(&shop, &[id], Some("b")).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_took_over_meanwhile_has_the_new_key_and_is_not_waited_for() {
    let shop = Shop::new(Policy { stale: Stale::Resume, ..Policy::default() }).await;
    shop.engine.set_keyring(Some(keyring(&["a"])));
    let id = shop.abandoned(0).await;
    shop.engine.set_keyring(Some(keyring(&["b", "a"])));
    let ((tell, told), elsewhere) = (oneshot::channel(), shop.clone());
    shop.store.after_the_next_find(async move {
        elsewhere.pass(LEASE * 2);
        let next = elsewhere.execute(0).await;
        tell.send(next).unwrap();
    });
    let done = rekeyed(&shop).await;
    assert_eq!((done, done.is_complete()), (Rekeyed { looked_at: 1, ..Rekeyed::default() }, true));
    let next = told.await.unwrap();
    assert_eq!((next.operation_id(), next.attempt()), (id, 2));
    ends(next).await;
    assert_eq!(seal(&shop.record(id).await.unwrap()).as_deref(), Some("b"));
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
