//! Writes and questions that no run may have: each is refused by a rule of its own, beside one that it may have.

use crate::log::Variant;
use crate::rules::Rule;
use crate::scene::{ID, NUMBER, Scene, by_service};
use crate::store::{Audit as _, SimulatedStore, Write};
use semel::transition::{Act, Change, Claim, Polling, act, poll, remark, rewrite};
use semel::{Actor, Expired, OperationId, Owner, Record, Store as _, Swap};
use std::sync::Arc;
use std::time::Duration;

const OTHER: OperationId = OperationId::from_u128(8);

fn scene() -> Scene {
    Scene::of(by_service(Expired::Refuse), NUMBER, false)
}

/// What the auditor objects to.
fn said(scene: &Scene) -> String {
    scene.world.auditor.violations().join("\n")
}

/// An attempt in progress, and the extension of its lease.
async fn extension(scene: &Scene) -> (Record, Act) {
    let lease = scene.rule().policy().lease;
    (scene.reserve(ID).await, Act::Extend { lease })
}

#[tokio::test(start_paused = true)]
async fn only_the_process_that_took_an_attempt_writes_as_its_owner() {
    let mut scene = scene();
    let (record, extend) = extension(&scene).await;
    let extended = scene.act(&record, &extend).await;
    assert_eq!(said(&scene), "");
    // Another process, with the same claim: as an owner that was taken over and is not fenced.
    scene.store = SimulatedStore::open(&scene.world.disk, 2);
    scene.act(&extended, &extend).await;
    assert!(said(&scene).contains("process 2 writes as the owner, and process Some(1) took this attempt"));
}

#[tokio::test(start_paused = true)]
async fn a_write_is_one_that_the_state_machine_comes_to() {
    let scene = scene();
    let (record, extend) = extension(&scene).await;
    let extended = scene.act(&record, &extend).await;
    let now = scene.store.read(Vec::new()).await.expect("a store without faults").now;
    let doctored = |doctor: fn(&mut semel::Draft)| {
        let change = act(&extended, &Claim::of(&extended), &extend);
        let Ok(Change::Put { mut next, .. }) = change else { panic!("it may be extended") };
        doctor(&mut next);
        let write = Write {
            key: &extended.key,
            before: Some(&extended),
            draft: Some(&next),
            history: None,
            carries_damage: false,
        };
        let before = scene.world.auditor.violations().len();
        scene.world.auditor.wrote(1, &write, now.into());
        scene.world.auditor.violations()[before..].join("\n")
    };
    assert_eq!(doctored(|_| {}), "");
    assert!(doctored(|next| next.version += 1).contains("model"));
    assert!(doctored(|next| next.owner = Owner::from_u128(3)).contains("no actor may turn in_progress"));
    assert!(doctored(|next| next.state = semel::State::Expired).contains("model"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_found_an_operation_in_progress_does_not_execute_it() {
    let reserved = async |waits: bool| {
        let scene = scene();
        let record = scene.reserve(ID).await;
        let mut late = scene.draft(OTHER, 2);
        if waits {
            // It comes while the first one is at work, and is told so.
            scene.store.create(vec![late.clone()]).await.expect("a store without faults");
        }
        scene.world.note_nothing(&scene.order(&record));
        scene.store.remove(vec![record.expected()]).await.expect("a store without faults");
        late.operation_id = OTHER;
        scene.store.create(vec![late]).await.expect("a store without faults");
        said(&scene)
    };
    assert_eq!(reserved(false).await, "");
    let said = reserved(true).await;
    assert!(said.starts_with("waiters") && said.contains("in progress, and executes all the same"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_payment_behind_a_recovery_point_is_not_made_again() {
    for (point, is_right) in [("charged:sent", true), ("charged", false), ("receipt:sent", false)] {
        let scene = Scene::of(Rule::drawn(|rule| rule.receipt), NUMBER, false);
        let record = scene.reserve(ID).await;
        let lease = scene.rule().policy().lease;
        let advance = Act::Advance { point: point.into(), checkpoint: None, lease };
        let advanced = scene.act(&record, &advance).await;
        scene.start(&Record { attempt: 1, ..advanced.clone() });
        assert_eq!(said(&scene), "", "the attempt itself");
        scene.start(&Record { attempt: 2, ..advanced });
        let said = said(&scene);
        assert_eq!(said.is_empty(), is_right, "{point}: {said}");
        assert!(is_right || said.contains("an earlier one has committed that it is paid"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_claimed_before_it_is_asked() {
    let scene = Scene::of(Rule::drawn(|rule| rule.polls.is_some() && !rule.takes_over()), NUMBER, false);
    let record = scene.reserve(ID).await;
    let doubt = Act::Doubt { error: "timeout".into(), settling: scene.rule().policy().settling };
    let doubted = scene.act(&record, &doubt).await;
    scene.pass(Duration::from_secs(60 * 60)).await;
    let now = scene.store.read(Vec::new()).await.expect("a store without faults").now;
    let attempts = scene.rule().polls.map_or(0, |(attempts, _)| attempts);
    let polling = Polling { attempts, next: Duration::from_secs(1) };
    scene.put(&doubted, poll(&doubted, &polling, now).expect("it may be asked about")).await;
    let before = scene.world.auditor.violations().len();
    scene.world.auditor.note_question(ID, 1);
    assert_eq!(scene.world.auditor.violations().len(), before);
    scene.world.auditor.note_question(ID, 1);
    assert!(said(&scene).contains("was asked about 2 times, claimed 1 times"));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_leaves_one_remark() {
    let scene = scene();
    let record = scene.reserve(ID).await;
    let webhook = |message: &str| {
        remark(&record, Actor::Webhook("provider".into()), Some(format!("message {message}")))
    };
    let first = scene.put(&record, webhook("msg-1")).await;
    assert_eq!(said(&scene), "");
    let again = remark(&first, Actor::Webhook("provider".into()), Some("message msg-1".into()));
    let second = scene.put(&first, again).await;
    assert!(said(&scene).contains("left two remarks"));
    let strange = remark(&second, Actor::Webhook("provider".into()), Some("message of-nobody".into()));
    scene.put(&second, strange).await;
    assert!(said(&scene).contains("nobody sent the message of-nobody"));
}

#[tokio::test(start_paused = true)]
async fn who_stands_still_is_woken_by_the_next_attempt_alone() {
    let scene = scene();
    let record = scene.reserve(ID).await;
    let life = Arc::new(crate::life::Life::default());
    life.sleep(Duration::from_secs(3_600));
    scene.world.auditor.wakes(ID, 1, &life);
    let is_asleep = async || tokio::time::timeout(Duration::from_millis(1), life.pass()).await.is_err();
    assert!(is_asleep().await);
    scene.world.note_nothing(&scene.order(&record));
    let windows = scene.windows();
    let failed = scene.act(&record, &Act::Retryable { error: "nothing done".into(), windows }).await;
    assert!(is_asleep().await);
    let next = rewrite(&failed, None, None);
    let Change::Put { mut next, .. } = next else { panic!("it is not removed") };
    next.attempt = 2;
    let swap = Swap { expected: failed.expected(), next, history: None };
    let _ = scene.store.swap(vec![swap]).await.expect("a store without faults");
    assert!(!is_asleep().await);
}

#[tokio::test(start_paused = true)]
async fn what_a_crash_gives_back_has_ended_as_it_had() {
    let scene = scene();
    let record = scene.reserve(ID).await;
    scene.world.note_nothing(&scene.order(&record));
    let windows = scene.windows();
    let failed = scene.act(&record, &Act::Retryable { error: "nothing done".into(), windows }).await;
    let expires = scene.world.auditor.ended(ID).map(|ended| ended.expires);
    assert!(expires.is_some());
    let Change::Put { mut next, .. } = rewrite(&failed, None, None) else { panic!("it is not removed") };
    (next.attempt, next.state) = (2, semel::State::InProgress);
    let swap = Swap { expected: failed.expected(), next, history: None };
    let _ = scene.store.swap(vec![swap]).await.expect("a store without faults");
    assert!(scene.world.auditor.ended(ID).is_none());
    scene.world.auditor.took_back(&failed.key, Some(&failed), true);
    assert_eq!(scene.world.auditor.ended(ID).map(|ended| ended.expires), expires);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_an_operation_is_as_the_store_has_it() {
    let scene = scene();
    let ended = scene.happens(ID).await;
    assert!(scene.world.auditor.ended(ID).is_some() && scene.world.auditor.has_attempt(ID, 1));
    assert!(!scene.world.auditor.has_attempt(ID, 2) && scene.world.auditor.ended(OTHER).is_none());
    let last = scene.world.told().last().cloned().expect("a replay");
    assert_eq!((last.variant, ended.attempt), (Variant::Plain, 1));
    // A crash takes it back: it has not ended, whatever was heard of it.
    scene.world.auditor.took_back(&ended.key, None, true);
    assert!(scene.world.auditor.ended(ID).is_none());
    let said = scene.verdict();
    assert!(said.iter().any(|said| said.contains("the store does not have it so")), "{said:?}");
}
