//! With keys: what reaches the store is sealed, whoever gets it back gets what was given, and nothing else is ever replayed.

use crate::support::{LEASE, Shop, answer, completed, key, replayed, waiting};
use bytes::Bytes;
use semel::seal::{Keyring, Plain, SealingKey, sealed_by};
use semel::transition::{About, Change, Evidence, Settlement, Windows};
use semel::{
    Actor, BeginError, Body, Decision, Deduplicated, Draft, Finish, Outcome, Owner, Policy, Record, Settled,
    Settling, Stale, State, Store as _, StoreError, Swap, Swapped, When,
};
use semel_testing::store::{Call, Fault};
use std::convert::Infallible;
use std::time::Duration;

fn keyring(ids: &[&str]) -> Keyring {
    let key = |id: &&str| SealingKey::new(*id, &[id.as_bytes()[0]; 32]).unwrap();
    Keyring::new(ids.iter().map(key)).unwrap()
}

fn sealing(policy: Policy) -> Shop {
    let shop = Shop::with(policy);
    shop.engine.set_keyring(Some(keyring(&["a"])));
    shop
}

/// The key that sealed the answer in the store.
async fn seal_of(shop: &Shop) -> Option<String> {
    match shop.record().await.unwrap().response.unwrap() {
        response if !response.headers.is_empty() => None,
        response => match response.body {
            Body::Sealed(bytes) => sealed_by(&bytes).map(str::to_owned),
            _ => None,
        },
    }
}

/// Puts another record in the place of the one in the store, as somebody with access to it could.
pub(crate) async fn tamper(shop: &Shop, change: impl FnOnce(&mut Record)) {
    let record = shop.record().await.unwrap();
    let mut other = record.clone();
    change(&mut other);
    let times = other.times.map(When::At);
    let next = Draft {
        version: record.version + 1,
        times,
        key: other.key,
        operation_id: other.operation_id,
        fingerprint: other.fingerprint,
        recipe: other.recipe,
        state: other.state,
        attempt: other.attempt,
        owner: other.owner,
        origin: other.origin,
        recovery_point: other.recovery_point,
        checkpoint: other.checkpoint,
        response: other.response,
        resource: other.resource,
        last_error: other.last_error,
        reconcile_attempts: other.reconcile_attempts,
        dead_letter: other.dead_letter,
    };
    let swap = Swap { expected: record.expected(), next: Box::new(next), history: None };
    assert_eq!(shop.memory.swap(vec![swap]).await.unwrap().items, vec![Swapped::Done]);
}

async fn is_damaged(shop: &Shop) -> bool {
    matches!(shop.begin().await, Err(BeginError::Store(StoreError::Damaged(_))))
}

#[tokio::test(start_paused = true)]
async fn the_store_gets_sealed_answers_and_retries_get_the_first_ones_bytes() {
    let failed = Outcome::Failed { response: Some(answer("once")), resource: None };
    for outcome in [completed("once"), failed] {
        let shop = sealing(Policy::default());
        shop.execute().await.finish(outcome).await.unwrap();
        assert_eq!(seal_of(&shop).await.as_deref(), Some("a"));
        let Decision::Replay(record) = shop.decide().await else { panic!("a retry is replayed") };
        assert_eq!(record.response, Some(answer("once")));
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_get_the_first_ones_bytes() {
    let shop = sealing(waiting(Duration::from_secs(5)));
    let ticket = shop.execute().await;
    let waiter = {
        let shop = shop.clone();
        tokio::spawn(async move { shop.decide().await })
    };
    while shop.store.batches(Call::Read).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    ticket.finish(completed("once")).await.unwrap();
    assert_eq!(replayed(waiter.await.unwrap()), "once");
}

#[tokio::test(start_paused = true)]
async fn evidence_is_sealed_too_even_if_its_first_answer_is_lost() {
    for lost in [false, true] {
        let shop = sealing(Policy { settling: Settling::Webhook, ..Policy::default() });
        let ticket = shop.execute().await;
        ticket.doubt("timeout").await;
        let settlement = Settlement {
            settler: Owner::random(),
            actor: Actor::Reconciler,
            evidence: Evidence::Completed { response: Some(answer("settled")), resource: None },
            note: None,
            windows: Windows::from(&Policy::default()),
        };
        if lost {
            shop.store.next(Call::Swap, [Fault::LostAnswer]);
        }
        let about = About::of(&shop.record().await.unwrap());
        let settled = shop.engine.settle(&about, &settlement).await.unwrap();
        assert!(matches!(settled, Settled::Done(_)));
        assert_eq!(seal_of(&shop).await.as_deref(), Some("a"));
        assert_eq!(replayed(shop.decide().await), "settled");
        let Ok(Finish::Fenced(Some(record))) = ticket.finish(completed("late")).await else {
            panic!("the owner is fenced, and told what is there")
        };
        assert_eq!(record.response, Some(answer("settled")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_recovery_point_is_sealed_and_whoever_takes_over_goes_on_from_it() {
    let shop = sealing(Policy { stale: Stale::Resume, ..Policy::default() });
    let mut dead = shop.execute().await;
    dead.advance("charged", Some(Bytes::from_static(b"ch_1"))).await.unwrap();
    let left = Some(("charged".to_owned(), Some(Bytes::from_static(b"ch_1"))));
    assert_eq!(dead.recovery_point().unwrap(), left);
    assert_eq!(sealed_by(&shop.record().await.unwrap().checkpoint.unwrap()), Some("a"));
    shop.clock.advance(LEASE);
    let owner = shop.execute().await;
    assert_eq!(owner.recovery_point().unwrap(), left);
    owner.finish(completed("resumed")).await.unwrap();
    drop(dead);
}

#[tokio::test(start_paused = true)]
async fn a_recovery_point_that_does_not_open_is_taken_over_by_nobody() {
    let shop = sealing(Policy { stale: Stale::Resume, ..Policy::default() });
    let mut dead = shop.execute().await;
    dead.advance("charged", Some(Bytes::from_static(b"ch_1"))).await.unwrap();
    let before = shop.record().await.unwrap();
    shop.clock.advance(LEASE);
    shop.engine.set_keyring(Some(keyring(&["b"])));
    assert!(is_damaged(&shop).await);
    shop.engine.set_keyring(None);
    assert!(is_damaged(&shop).await);
    assert_eq!(shop.record().await.unwrap(), before, "nobody took it over");
    shop.engine.set_keyring(Some(keyring(&["a"])));
    tamper(&shop, |record| record.recovery_point = Some("created".into())).await;
    assert!(is_damaged(&shop).await);
    drop(dead);
}

#[tokio::test(start_paused = true)]
async fn phases_go_on_from_a_sealed_journal() {
    let shop = sealing(Policy { stale: Stale::Resume, ..Policy::default() });
    let dead = shop.execute().await;
    let charge = async |phases: &mut semel::Phases, id: &'static str| {
        phases.foreign("charged", Deduplicated, async |_| Ok::<_, Infallible>(id.to_owned())).await.unwrap()
    };
    assert_eq!(charge(&mut dead.phases().unwrap(), "ch_1").await, "ch_1");
    let kept = shop.record().await.unwrap().checkpoint.unwrap();
    assert!(!kept.windows(4).any(|window| window == b"ch_1"));
    shop.clock.advance(LEASE);
    let owner = shop.execute().await;
    assert_eq!(charge(&mut owner.phases().unwrap(), "ch_2").await, "ch_1", "it is not made again");
    owner.finish(completed("resumed")).await.unwrap();
    drop(dead);
}

#[tokio::test(start_paused = true)]
async fn nothing_but_what_was_sealed_here_is_replayed_and_nothing_executes_instead() {
    type Spoil = fn(&mut Record);
    fn body(record: &mut Record) -> &mut Body {
        &mut record.response.as_mut().unwrap().body
    }
    fn bytes(record: &mut Record, change: fn(&mut Vec<u8>)) {
        let Body::Sealed(sealed) = body(record) else { panic!("it is sealed") };
        let mut changed = sealed.to_vec();
        change(&mut changed);
        *sealed = changed.into();
    }
    let spoils: [(&str, Spoil); 6] = [
        ("a flipped bit", |record| bytes(record, |bytes| bytes[60] ^= 1)),
        ("the end cut off", |record| bytes(record, |bytes| bytes.truncate(bytes.len() - 1))),
        ("nothing left", |record| bytes(record, Vec::clear)),
        ("another status", |record| record.response.as_mut().unwrap().status = 200),
        ("headers of its own", |record| record.response.as_mut().unwrap().headers = answer("").headers),
        ("called plain", |record| {
            let Body::Sealed(sealed) = body(record).clone() else { panic!("it is sealed") };
            *body(record) = Body::Stored(sealed);
        }),
    ];
    for (what, spoil) in spoils {
        let shop = sealing(Policy::default());
        shop.engine.set_keyring(Some(keyring(&["a"]).plain(Plain::Refused)));
        shop.execute().await.finish(completed("once")).await.unwrap();
        tamper(&shop, spoil).await;
        assert!(is_damaged(&shop).await, "{what}");
        assert_eq!(shop.state().await, Some(State::Completed), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_is_replayed_until_plain_ones_are_refused() {
    let shop = Shop::new();
    shop.execute().await.finish(completed("plain")).await.unwrap();
    shop.engine.set_keyring(Some(keyring(&["a"])));
    assert_eq!(replayed(shop.decide().await), "plain");
    shop.engine.set_keyring(Some(keyring(&["a"]).plain(Plain::Refused)));
    assert!(is_damaged(&shop).await);
}

#[tokio::test(start_paused = true)]
async fn an_older_key_opens_while_the_new_one_seals_and_without_it_nothing_is_guessed() {
    let shop = sealing(Policy::default());
    shop.execute().await.finish(completed("once")).await.unwrap();
    shop.engine.set_keyring(Some(keyring(&["b", "a"])));
    assert_eq!(replayed(shop.decide().await), "once");
    for without in [Some(keyring(&["b"])), None] {
        shop.engine.set_keyring(without);
        assert!(is_damaged(&shop).await);
    }
}

#[tokio::test(start_paused = true)]
async fn rewriting_changes_nothing_but_the_seal_and_the_version() {
    let shop = Shop::new();
    shop.execute().await.finish(completed("once")).await.unwrap();
    for ids in [&["a"][..], &["b", "a"], &["c", "b"]] {
        shop.engine.set_keyring(Some(keyring(ids)));
        let before = shop.record().await.unwrap();
        let Some(Change::Put { next, history: None }) = shop.engine.rewritten(&before).unwrap() else {
            panic!("there is something to rewrite, and nothing to tell of it")
        };
        let swap = Swap { expected: before.expected(), next, history: None };
        assert_eq!(shop.memory.swap(vec![swap]).await.unwrap().items, vec![Swapped::Done]);
        let after = shop.record().await.unwrap();
        assert_eq!(
            Record { response: before.response.clone(), version: before.version, ..after.clone() },
            before
        );
        assert_eq!(seal_of(&shop).await.as_deref(), Some(ids[0]));
        assert!(shop.engine.rewritten(&after).unwrap().is_none());
        assert_eq!(replayed(shop.decide().await), "once");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_record_is_rewritten_meanwhile_goes_on() {
    let shop = sealing(Policy::default());
    let mut ticket = shop.execute().await;
    ticket.advance("created", Some(Bytes::from_static(b"pay_1"))).await.unwrap();
    shop.engine.set_keyring(Some(keyring(&["b", "a"])));
    let record = shop.record().await.unwrap();
    let Some(Change::Put { next, history }) = shop.engine.rewritten(&record).unwrap() else {
        panic!("its checkpoint is to be rewritten")
    };
    let swap = Swap { expected: record.expected(), next, history };
    assert_eq!(shop.memory.swap(vec![swap]).await.unwrap().items, vec![Swapped::Done]);
    ticket.advance("charged", Some(Bytes::from_static(b"ch_1"))).await.unwrap();
    ticket.finish(completed("once")).await.unwrap();
    // What was under way ended by the key that it began with.
    assert_eq!(seal_of(&shop).await.as_deref(), Some("a"));
    assert_eq!(replayed(shop.decide().await), "once");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_read_from_the_store_can_be_opened() {
    let shop = sealing(Policy::default());
    let mut ticket = shop.execute().await;
    ticket.advance("created", Some(Bytes::from_static(b"pay_1"))).await.unwrap();
    ticket.finish(completed("once")).await.unwrap();
    let found = shop.record().await.unwrap();
    assert_eq!(shop.engine.client_key(&found).await.unwrap(), key());
    let opened = shop.engine.open(found).unwrap();
    assert_eq!((opened.response, opened.checkpoint.as_deref()), (Some(answer("once")), Some(&b"pay_1"[..])));
}
