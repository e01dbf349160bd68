//! Histories that no run may have, each made of one that it may: a check that never fails holds nothing.

use super::*;
use crate::book::Order;
use crate::scene::{DECLINED, ID, NUMBER, Scene, by_service};
use crate::setup::Setup;
use bytes::Bytes;
use semel::clock::{Clock as _, Keeper, Mark, Terms};
use semel::transition::Act;
use semel::{Now, Owner, Record, Settling, Store as _, Timestamp};
use std::time::Duration;

const OTHER: OperationId = OperationId::from_u128(8);

async fn paid() -> (Scene, Record) {
    Scene::done(by_service(Expired::Refuse), NUMBER).await
}

async fn declined() -> (Scene, Record) {
    Scene::done(by_service(Expired::Refuse), DECLINED).await
}

/// An attempt that did nothing and said so, and another one that has the effect.
async fn retried(proved: bool) -> Scene {
    let scene = Scene::of(by_service(Expired::Refuse), NUMBER, false);
    let record = scene.reserve(ID).await;
    scene.start(&record);
    let order = scene.order(&record);
    // The write has to be true when it is made: what is doctored is the proof's time.
    scene.world.note_nothing(&order);
    let windows = scene.windows();
    let failed = scene.act(&record, &Act::Retryable { error: "nothing done".into(), windows }).await;
    scene.pass(Duration::from_millis(50)).await;
    if !proved {
        scene.world.book.pages().proofs.clear();
    }
    let second = taken(&scene, &failed).await;
    scene.start(&second);
    scene.charge(&second);
    scene.end(&second).await;
    scene
}

async fn taken(scene: &Scene, record: &Record) -> Record {
    use semel::transition::{Arrival, Arrived, Match, arrive};
    let now = scene.store.read(Vec::new()).await.expect("a store without faults").now;
    let arrival =
        Arrival { matches: Match::Same, owner: Owner::from_u128(99), policy: scene.rule().policy() };
    match arrive(record, &arrival, now) {
        Arrived::Take(change) => scene.put(record, change).await,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_has_one_effect() {
    let (scene, record) = paid().await;
    let again = scene.order(&record);
    scene.breaks(|scene| scene.world.book.pages().effect(&again), "P1", "had its effect by attempts [1, 1]");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_starts_once_for_one_request_and_another_one_after_a_proof_alone() {
    let (scene, record) = paid().await;
    scene.breaks(|scene| scene.start(&record), "P1", "one attempt starts once");
    let (scene, record) = paid().await;
    let order = Order { altered: true, ..scene.order(&record) };
    scene.breaks(|scene| scene.world.note_start(&order), "P1", "one operation for two requests");
    assert_eq!(retried(true).await.verdict(), Vec::<String>::new());
    let said = retried(false).await.verdict();
    assert!(
        said.iter().any(|said| said.contains("nobody has proved that the first did nothing")),
        "{said:?}"
    );
    // An owner that was given up on, and comes late: its attempt was proved to do nothing, and stays so.
    let (scene, order) =
        (retried(true).await, |scene: &Scene| scene.order(&scene.record().expect("it is kept")));
    let first = Order { attempt: 1, ..order(&scene) };
    scene.world.book.pages().starts.remove(0);
    scene.world.note_start(&first);
    let unproved = |scene: &Scene| scene.world.book.pages().proofs.clear();
    scene.breaks(unproved, "P1", "attempt 1 starts after");
    let scene = retried(true).await;
    let late = |scene: &Scene| {
        let mut pages = scene.world.book.pages();
        pages.proofs.values_mut().flatten().for_each(|proof| proof.at = 60_000);
    };
    scene.breaks(late, "P1", "nobody has proved that the first did nothing");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_new_work_after_its_window_and_not_before() {
    let again = async |waits: Duration| {
        let (scene, record) = Scene::done(by_service(Expired::New), NUMBER).await;
        let window = scene.rule().policy().retention;
        scene.pass((window + waits).saturating_sub(Duration::from_millis(20))).await;
        scene.store.remove(vec![record.expected()]).await.expect("a store without faults");
        scene.happens(OTHER).await;
        scene.verdict()
    };
    assert_eq!(again(Duration::from_secs(1)).await, Vec::<String>::new());
    let (scene, _) = Scene::done(by_service(Expired::New), NUMBER).await;
    let order = |scene: &Scene| Order { id: OTHER, ..scene.order(&scene.record().expect("it is kept")) };
    let early = |scene: &Scene| scene.world.note_start(&order(scene));
    scene.breaks(early, "P1", "the window of the first is not over");
    // An owner that comes late starts its work after the next operation did, and after the next attempt of its own.
    let (scene, record) = Scene::done(by_service(Expired::New), NUMBER).await;
    let overtaken = |scene: &Scene, attempt| Order { id: OTHER, attempt, ..scene.order(&record) };
    scene.world.book.pages().starts.insert(0, Start { at: 0, order: overtaken(&scene, 2), reserved: true });
    let before = scene.verdict();
    scene.world.note_start(&overtaken(&scene, 1));
    let after = scene.verdict();
    let is_told = |said: &[String]| {
        said.iter().any(|said| said.contains("attempt 1 starts after") && said.contains("window"))
    };
    assert!(!is_told(&before) && !is_told(&after), "{after:?}");
    // What has not ended has no window.
    let scene = Scene::of(by_service(Expired::New), NUMBER, false);
    let record = scene.reserve(ID).await;
    scene.start(&record);
    scene.breaks(early, "P1", "the first has not ended");
}

#[tokio::test(start_paused = true)]
async fn what_was_released_had_no_effect() {
    let scene = Scene::of(by_service(Expired::Refuse), NUMBER, false);
    let record = scene.reserve(ID).await;
    scene.start(&record);
    scene.world.note_nothing(&scene.order(&record));
    scene.store.remove(vec![record.expected()]).await.expect("a store without faults");
    scene.happens(OTHER).await;
    let effect = scene.order(&record);
    scene.breaks(|scene| scene.world.book.pages().effect(&effect), "P1", "was released, and had its effect");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_is_written_once_and_of_what_was_paid() {
    let (scene, record) = paid().await;
    let order = scene.order(&record);
    scene.world.book.pages().write_receipt(&order, false);
    let again = |scene: &Scene| {
        let _ = scene.world.book.pages().write_receipt(&order, false);
    };
    scene.breaks(again, "P1", "had its receipt by attempts [1, 1]");
    let (scene, record) = declined().await;
    let order = scene.order(&record);
    let unpaid = |scene: &Scene| {
        let _ = scene.world.book.pages().write_receipt(&order, true);
    };
    scene.breaks(unpaid, "P1", "has a receipt, and was not paid");
}

#[tokio::test(start_paused = true)]
async fn what_two_phases_paid_has_its_receipt() {
    let rule = Rule::drawn(|rule| {
        let whole = |policy: &semel::Policy| policy.store_response == StoreResponse::Full;
        rule.receipt && rule.policies().into_iter().all(whole)
    });
    let scene = Scene::of(rule, NUMBER, false);
    let record = scene.reserve(ID).await;
    let order = scene.order(&record);
    scene.world.book.pages().write_receipt(&order, true);
    scene.start(&record);
    scene.charge(&record);
    scene.end(&record).await;
    scene.tell(Variant::Plain, scene.answer(ID, false));
    scene.breaks(|scene| scene.world.book.pages().receipts.clear(), "P4", "has no receipt");
}

#[tokio::test(start_paused = true)]
async fn an_operation_has_one_answer() {
    let body = |answer: &mut Answer| answer.body = Bytes::from_static(b"{}");
    paid().await.0.breaks(|scene| scene.retell(1, body), "P2", "several answers");
    let header = |answer: &mut Answer| drop(answer.kept.pop());
    paid().await.0.breaks(|scene| scene.retell(1, header), "P2", "several headers");
    let cookie = |answer: &mut Answer| answer.sets_cookie = true;
    paid().await.0.breaks(|scene| scene.retell(1, cookie), "P2", "replays a cookie");
    let first = |answer: &mut Answer| answer.replayed = false;
    paid().await.0.breaks(|scene| scene.retell(1, first), "P2", "claim to be the first");
    let damage = |scene: &Scene| scene.world.auditor.note_damage(ID, 0);
    paid().await.0.breaks(damage, "P2", "was replayed all the same");
    let early = |scene: &Scene| scene.world.told()[0].heard = 3;
    paid().await.0.breaks(early, "P2", "was answered at 3 ms, and stored at 20 ms");
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_within_the_window_gets_the_answer() {
    let told = |meaning| {
        move |answer: &mut Answer| {
            answer.meaning = meaning;
            answer.replayed = false;
        }
    };
    for meaning in [Meaning::InProgress, Meaning::Unknown, Meaning::Expired, Meaning::NothingDone] {
        paid().await.0.breaks(|scene| scene.retell(1, told(meaning)), "P2", "was told");
    }
    let not_kept = told(Meaning::NotStored);
    paid().await.0.breaks(|scene| scene.retell(1, not_kept), "P2", "was kept, and is told not to be");
    let (scene, _) = paid().await;
    scene.retell(1, told(Meaning::NoStore));
    assert_eq!(scene.verdict(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_window_ends_within_a_second() {
    let replayed = async |late: u64| {
        let (scene, _) = paid().await;
        let window = scene.rule().policy().retention;
        scene.pass(window + Duration::from_millis(late)).await;
        scene.tell(Variant::Plain, scene.answer(ID, true));
        scene.verdict()
    };
    assert_eq!(replayed(900).await, Vec::<String>::new());
    let said = replayed(1_500).await;
    assert!(
        said.iter().any(|said| said.starts_with("windows") && said.contains("after its window")),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_effect_is_of_the_body_whose_client_is_told() {
    let altered = |scene: &Scene| {
        scene.world.told()[1].variant = Variant::Altered;
    };
    paid().await.0.breaks(altered, "P3", "Altered was told of");
    let other = |scene: &Scene| {
        scene.world.book.pages().effects.iter_mut().for_each(|effect| effect.order.tenant = 2);
    };
    paid().await.0.breaks(other, "P3", "which was another request");
}

#[tokio::test(start_paused = true)]
async fn what_is_told_and_stored_agrees_with_the_ledger() {
    let nothing = |scene: &Scene| scene.world.book.pages().effects.clear();
    paid().await.0.breaks(nothing, "P4", "was told Paid, and had 0 effects");
    paid().await.0.breaks(nothing, "P4", "is completed, and the ledger has false of it");
    let (scene, record) = declined().await;
    let order = scene.order(&record);
    scene.breaks(
        |scene| scene.world.book.pages().effect(&order),
        "P4",
        "was told Declined, and had 1 effects",
    );
    // Behind a recovery point it is what comes next that did not happen.
    for (point, is_right) in [(None, true), (Some("charged:sent"), true), (Some("charged"), false)] {
        let scene = retried_in_the_end(point).await;
        let holds = scene.verdict().is_empty();
        assert_eq!(holds, is_right, "{point:?}: {:?}", scene.verdict());
    }
}

/// What did nothing, and is not tried again.
async fn retried_in_the_end(point: Option<&str>) -> Scene {
    let scene = Scene::of(Rule::drawn(|rule| rule.receipt), NUMBER, false);
    let mut record = scene.reserve(ID).await;
    if let Some(point) = point {
        let lease = scene.rule().policy().lease;
        let advance = Act::Advance { point: point.into(), checkpoint: None, lease };
        record = scene.act(&record, &advance).await;
    }
    let windows = scene.windows();
    scene.act(&record, &Act::Retryable { error: "nothing done".into(), windows }).await;
    scene
}

#[tokio::test(start_paused = true)]
async fn what_was_told_to_have_ended_has_ended_in_the_store() {
    let scene = Scene::of(by_service(Expired::Refuse), NUMBER, false);
    let record = scene.reserve(ID).await;
    scene.start(&record);
    scene.charge(&record);
    let early = |scene: &Scene| scene.tell(Variant::Plain, scene.answer(ID, false));
    scene.breaks(early, "P4", "and the store does not have it so");
}

#[tokio::test(start_paused = true)]
async fn whatever_starts_was_reserved() {
    let scene = Scene::of(by_service(Expired::Refuse), NUMBER, false);
    let unreserved = scene.draft(ID, 1).at(Timestamp::from_millis(0));
    scene.breaks(|scene| scene.start(&unreserved), "P5", "the store has no such attempt");
}

#[tokio::test(start_paused = true)]
async fn no_answer_has_a_word_of_another_tenants() {
    let foreign = |answer: &mut Answer| answer.body = canary(3).into();
    paid().await.0.breaks(|scene| scene.retell(1, foreign), "tenants", "words of another tenant");
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_documented_and_has_its_reason() {
    for (meaning, words) in [
        (Meaning::Undocumented, "201"),
        (Meaning::Damaged, "nobody has touched it"),
        (Meaning::QuotaExceeded, "there is no quota"),
        (Meaning::InvalidKey, "Plain was told InvalidKey"),
    ] {
        let told = |answer: &mut Answer| answer.meaning = meaning;
        paid().await.0.breaks(|scene| scene.retell(1, told), "answers", words);
    }
    let (scene, _) = paid().await;
    scene.retell(1, |answer| answer.meaning = Meaning::Damaged);
    let heard = scene.world.told()[1].heard;
    // It was read with the keys of before.
    scene.world.book.pages().key_changes.push(heard);
    assert!(!scene.verdict().iter().any(|said| said.contains("nobody has touched it")));
    let nameless = |answer: &mut Answer| answer.operation_id = None;
    paid().await.0.breaks(|scene| scene.retell(1, nameless), "answers", "an outcome without an operation id");
    let malformed = |scene: &Scene| scene.world.told()[1].variant = Variant::Malformed;
    paid().await.0.breaks(malformed, "answers", "Malformed was told Paid");
    let of_another = |scene: &Scene| {
        scene.retell(1, |answer| answer.meaning = Meaning::InProgress);
        scene.world.told()[1].variant = Variant::Altered;
    };
    paid().await.0.breaks(of_another, "answers", "of another request under its key");
    let alone = Scene::of(by_service(Expired::Refuse), NUMBER, false);
    alone.happens(ID).await;
    let mismatch = |scene: &Scene| scene.retell(1, |answer| answer.meaning = Meaning::Mismatch);
    alone.breaks(mismatch, "answers", "there was no other request");
}

#[tokio::test(start_paused = true)]
async fn the_stores_time_gains_nothing_on_the_true_one() {
    let judged = |ahead: i64| {
        move |scene: &Scene| {
            let told = Keeper::new(Terms::default(), 1)
                .judge(Mark::NONE, &scene.world.machine.readings_of(&scene.world.machine));
            let earliest = Timestamp::from_millis(told.now.earliest.as_millis() + ahead);
            let now = Now { earliest, latest: earliest, ..told.now };
            crate::store::Audit::judged(&*scene.world.auditor, 1, now, 0);
        }
    };
    let (scene, _) = paid().await;
    judged(DISCIPLINE)(&scene);
    scene.breaks(judged(60_000), "clock", "the store's time gained 60000 ms");
    // A window that is stamped by a time that is behind is as short as one that is judged by a time that is ahead.
    let (scene, _) = paid().await;
    let behind = |scene: &Scene| {
        judged(-60_000)(scene);
        judged(0)(scene);
    };
    scene.breaks(behind, "clock", "the store's time gained 60000 ms");
    assert!(scene.world.machine.boottime() > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn only_what_strikes_leaves_doubt() {
    let doubted = async |fault: Fault| {
        let setup = Setup { only: vec![fault], density: Some(1.0), ..Setup::of(1) };
        let scene = Scene::with(by_service(Expired::Refuse), NUMBER, false, &setup);
        assert!((0..10_000).any(|_| scene.world.faults.strikes(fault)), "{fault:?} never strikes");
        let record = scene.reserve(ID).await;
        let doubt = Act::Doubt { error: "timeout".into(), settling: Settling::Operator };
        scene.act(&record, &doubt).await;
        scene.verdict()
    };
    assert_eq!(doubted(Fault::AnswerLost).await, Vec::<String>::new());
    let said = doubted(Fault::HangUp).await;
    assert!(said.iter().any(|said| said.starts_with("doubt")), "{said:?}");
}
