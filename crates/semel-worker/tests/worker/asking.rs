//! Questions about unknown outcomes, and what comes of the answers.

use crate::bank::Bank;
use crate::interposed::Interposed;
use crate::support::{LEASE, Memory, Place, Shop, answer, replayed, secs};
use semel::observe::Event;
use semel::{Decision, Finish, Outcome, Policy, Resource, Settling, State, StoreResponse};
use semel_conformance::{Loss, LossyStore};
use semel_worker::{Asking, Finding, Question, Reconciler, Rules};
use std::sync::{Arc, Mutex};

/// Asks what is due, and waits for the answers.
async fn turn(shop: &Shop) {
    let mut reconciler = shop.reconciler();
    reconciler.turn().await.unwrap();
    reconciler.all_answered().await;
}

#[tokio::test(start_paused = true)]
async fn what_happened_is_settled_with_the_answer_that_retries_get() {
    let bank = Bank::completing("paid");
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    turn(&shop).await;
    assert!(bank.questions().is_empty(), "its time has not come");
    shop.pass(secs(10));
    turn(&shop).await;
    assert_eq!(replayed(shop.request(1).await), (201, "paid".into()));
    assert_eq!(shop.happenings(id).await, ["doubted", "settled_completed"]);
    let question = bank.questions().remove(0);
    assert_eq!((question.operation_id, question.attempt, question.number), (id, 1, 1));
    assert_eq!(shop.counted.of(Event::ReconcileResolved), 1);
    shop.pass(secs(3600));
    turn(&shop).await;
    assert_eq!(bank.questions().len(), 1, "nobody asks about what is settled");
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_replayed_as_refused_and_the_policy_says_what_is_kept() {
    let resource = Some(Resource { kind: "payment".into(), id: "pay_1".into() });
    let refused = Finding::Failed { response: Some(answer(402, "no funds")), resource: resource.clone() };
    let bank = Bank::finding(refused.clone());
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    shop.pass(secs(10));
    turn(&shop).await;
    assert_eq!(replayed(shop.request(1).await), (402, "no funds".into()));
    assert_eq!(shop.record(id).await.unwrap().resource, resource);

    let bank = Bank::finding(refused);
    let mut shop = Shop::asking(bank.asking()).await;
    shop.policy = Arc::new(Policy { store_response: StoreResponse::Reference, ..(*shop.policy).clone() });
    shop.doubted(1).await;
    shop.pass(secs(10));
    turn(&shop).await;
    assert!(matches!(shop.request(1).await, Decision::NotStored(record) if record.resource == resource));
}

#[tokio::test(start_paused = true)]
async fn questions_come_further_and_further_apart_then_it_is_a_dead_letter() {
    let bank = Bank::unclear();
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    let mut now = 0;
    let mut asked_at = Vec::new();
    // A second at a time, far longer than all four questions can take.
    while now < 300 && !shop.record(id).await.unwrap().dead_letter {
        let before = bank.questions().len();
        turn(&shop).await;
        if bank.questions().len() > before {
            asked_at.push(now);
        }
        shop.pass(secs(1));
        now += 1;
    }
    let gaps: Vec<u64> = asked_at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((asked_at[0], gaps.len()), (10, 3));
    for (gap, least) in gaps.iter().zip([10, 20, 40]) {
        assert!((least..=least + least / 2 + 1).contains(gap), "{asked_at:?}");
    }
    assert_eq!(now - 1, asked_at[3] + 10, "after the last question nothing is waited for but its answer");
    assert_eq!(shop.happenings(id).await, ["doubted", "remarked", "dead_lettered"]);
    assert!(shop.notes(id).await[1].ends_with("bank_closed"), "{:?}", shop.notes(id).await);
    assert_eq!(shop.counted.of(Event::ReconcileFailed), 1);
    assert_eq!(shop.counted.of(Event::ReconcileScheduled), 1, "a question is no new doubt");
    shop.pass(secs(100_000));
    turn(&shop).await;
    assert_eq!(bank.questions().len(), 4);
    assert!(matches!(shop.request(1).await, Decision::Unknown { .. }), "and no retry executes");
}

#[tokio::test(start_paused = true)]
async fn no_trace_of_it_proves_nothing_while_the_lease_runs() {
    let bank = Bank::finding(Finding::Absent);
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    shop.pass(secs(10));
    turn(&shop).await;
    assert_eq!((bank.questions().len(), shop.state(id).await), (1, State::Unknown));
    assert_eq!(shop.happenings(id).await, ["doubted"], "it is asked again, and need not be kept");
    assert!(matches!(shop.request(1).await, Decision::Unknown { .. }));
    shop.pass(LEASE);
    turn(&shop).await;
    assert_eq!(shop.state(id).await, State::FailedRetryable);
    let ticket = shop.execute(1).await;
    assert_eq!((ticket.operation_id(), ticket.attempt()), (id, 2));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_finishes_while_the_bank_is_asked_has_the_word() {
    for (finding, kept) in [
        (Finding::Completed { response: Some(answer(201, "the bank's")), resource: None }, 0),
        // It cannot be that it did not happen and that it was completed: somebody should look.
        (Finding::Failed { response: None, resource: None }, 1),
        (Finding::Absent, 1),
    ] {
        let bank = Bank::finding(finding.clone()).closed();
        let shop = Shop::asking(bank.asking()).await;
        let ticket = shop.execute(1).await;
        let id = ticket.operation_id();
        shop.pass(LEASE);
        shop.watch().round().await.unwrap();
        shop.pass(secs(10));
        let mut reconciler = shop.reconciler();
        reconciler.turn().await.unwrap();
        bank.asked().await;
        let late = Outcome::Completed { response: Some(answer(201, "the owner's")), resource: None };
        assert!(matches!(ticket.finish(late).await, Ok(Finish::Stored)));
        bank.open();
        reconciler.all_answered().await;
        assert_eq!(replayed(shop.request(1).await), (201, "the owner's".into()));
        let happenings = shop.happenings(id).await;
        assert_eq!(happenings[..2], ["doubted", "finished_late"]);
        assert_eq!(happenings.len(), 2 + kept, "{finding:?}");
        assert_eq!(shop.counted.of(Event::ReconcileResolved), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_comes_after_the_bank_is_refused() {
    let bank = Bank::completing("the bank's");
    let shop = Shop::asking(bank.asking()).await;
    let ticket = shop.execute(1).await;
    shop.pass(LEASE);
    shop.watch().round().await.unwrap();
    shop.pass(secs(10));
    turn(&shop).await;
    let late = Outcome::Failed { response: Some(answer(500, "the owner's")), resource: None };
    assert!(matches!(ticket.finish(late).await, Ok(Finish::Fenced(Some(_)))));
    assert_eq!(replayed(shop.request(1).await), (201, "the bank's".into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_heard_of_one_attempt_says_nothing_of_the_next() {
    let bank = Bank::finding(Finding::Absent).closed();
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    shop.pass(LEASE);
    let mut slow = shop.reconciler();
    slow.turn().await.unwrap();
    bank.asked().await;
    // Meanwhile an operator says that it did not happen, a retry executes, and nobody knows of that one either.
    let record = shop.record(id).await.unwrap();
    let evidence = semel::transition::Evidence::NotExecuted;
    let settlement = semel_conformance::samples::settlement(evidence);
    shop.engine.settle(&semel::transition::About::of(&record), &settlement).await.unwrap();
    let second = shop.execute(1).await;
    second.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    shop.pass(LEASE);
    bank.open();
    slow.all_answered().await;
    let record = shop.record(id).await.unwrap();
    assert_eq!((record.state, record.attempt), (State::Unknown, 2));
}

#[tokio::test(start_paused = true)]
async fn no_answer_by_the_deadline_is_no_answer() {
    let bank = Bank::completing("too late").closed();
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    shop.pass(secs(10));
    let begun = tokio::time::Instant::now();
    turn(&shop).await;
    assert_eq!(begun.elapsed(), secs(5));
    assert_eq!(shop.state(id).await, State::Unknown);
}

#[tokio::test(start_paused = true)]
async fn nobody_else_asks_while_a_question_is_out() {
    let bank = Bank::unclear().closed();
    let shop = Shop::asking(Asking { every: secs(1), deadline: secs(20), ..bank.asking() }).await;
    shop.doubted(1).await;
    shop.pass(secs(1));
    let (mut first, mut second) = (shop.reconciler(), shop.reconciler());
    first.turn().await.unwrap();
    bank.asked().await;
    shop.pass(secs(19));
    second.turn().await.unwrap();
    assert_eq!((first.questions_out(), second.questions_out()), (1, 0));
    shop.pass(secs(1));
    second.turn().await.unwrap();
    assert_eq!(second.questions_out(), 1, "its deadline is over");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_panics_is_one_question_and_no_more() {
    let asking = Asking { attempts: 2, ..Asking::new(|_: Question| async { panic!("as told") }) };
    let shop = Shop::asking(asking).await;
    let id = shop.doubted(1).await;
    for _ in 0..3 {
        shop.pass(secs(20));
        turn(&shop).await;
    }
    assert!(shop.record(id).await.unwrap().dead_letter);
}

#[tokio::test(start_paused = true)]
async fn no_more_questions_are_out_than_there_is_room_for_and_none_is_forgotten() {
    let bank = Bank::completing("paid").closed();
    let shop = Shop::asking(bank.asking()).await;
    for number in 0..50 {
        shop.doubted(number).await;
    }
    shop.pass(secs(10));
    let mut reconciler = shop.reconciler();
    assert!(reconciler.turn().await.unwrap(), "there is more");
    for _ in 0..8 {
        bank.asked().await;
    }
    assert_eq!((reconciler.questions_out(), bank.questions().len()), (8, 8));
    assert!(reconciler.turn().await.unwrap(), "and still no room");
    assert_eq!(bank.questions().len(), 8);
    bank.open();
    while reconciler.turn().await.unwrap() {
        reconciler.one_answered().await;
    }
    reconciler.all_answered().await;
    assert_eq!(bank.most_at_once(), 8);
    let by_operation = bank.by_operation();
    assert_eq!(by_operation.len(), 50);
    assert!(by_operation.values().all(|asked| *asked == 1));
    assert_eq!(shop.counted.of(Event::ReconcileResolved), 50);
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_claim_is_lost_is_not_asked_and_comes_again() {
    for loss in [Loss::Answer, Loss::Call] {
        let bank = Bank::completing("paid");
        let place = Memory::new();
        let shop = Shop::asking_at(&place, bank.asking()).await;
        let id = shop.doubted(1).await;
        shop.pass(secs(10));
        let lossy = LossyStore::losing(place.open().await, [loss]);
        let mut reconciler = shop.elsewhere(Interposed::over(lossy)).reconciler();
        reconciler.turn().await.unwrap_err();
        assert!(bank.questions().is_empty(), "nobody knows whether it is ours to ask");
        shop.pass(secs(15));
        reconciler.turn().await.unwrap();
        reconciler.all_answered().await;
        assert_eq!((bank.questions().len(), shop.state(id).await), (1, State::Completed));
    }
}

#[tokio::test(start_paused = true)]
async fn evidence_that_the_store_does_not_take_is_brought_again() {
    let bank = Bank::completing("paid").closed();
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    shop.pass(secs(10));
    let mut reconciler = shop.reconciler();
    reconciler.turn().await.unwrap();
    bank.asked().await;
    shop.store.be_away(true);
    bank.open();
    // Paused time goes on by itself once everybody waits.
    tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    shop.store.be_away(false);
    reconciler.all_answered().await;
    assert_eq!((shop.state(id).await, bank.questions().len()), (State::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn where_only_a_webhook_tells_nobody_asks_and_nothing_gives_up() {
    let bank = Bank::completing("paid");
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    // The configuration has changed: from now on a webhook tells.
    let policy = Policy { settling: Settling::Webhook, ..Policy::default() };
    let told = Shop { policy: Arc::new(policy), asking: None, ..shop.clone() };
    shop.pass(secs(10));
    turn(&told).await;
    let record = shop.record(id).await.unwrap();
    assert_eq!((record.dead_letter, record.reconcile_attempts), (false, 0));
    assert!(bank.questions().is_empty());
    // Or nobody does: then a person has to.
    let nobody = Shop { policy: Arc::new(Policy::default()), asking: None, ..shop.clone() };
    turn(&nobody).await;
    assert!(shop.record(id).await.unwrap().dead_letter);
    assert_eq!(shop.counted.of(Event::ReconcileFailed), 1);
}

#[tokio::test(start_paused = true)]
async fn where_a_webhook_was_to_tell_and_does_not_any_more_somebody_asks_or_a_person_has_to() {
    for somebody_asks in [true, false] {
        let bank = Bank::completing("paid");
        let shop = Shop::asking(bank.asking()).await;
        let policy = Policy { settling: Settling::Webhook, ..Policy::default() };
        let told = Shop { policy: Arc::new(policy), asking: None, ..shop.clone() };
        let id = told.doubted(1).await;
        told.pass(secs(3600));
        turn(&told).await;
        assert_eq!(told.record(id).await.unwrap().due(), None);
        // The configuration has changed.
        if somebody_asks {
            turn(&shop).await;
            assert_eq!(replayed(shop.request(1).await), (201, "paid".into()));
            assert_eq!(bank.questions().len(), 1);
        } else {
            turn(&Shop { policy: Arc::new(Policy::default()), ..told }).await;
            assert!(shop.record(id).await.unwrap().dead_letter);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rules_that_change_while_it_runs_count_for_doubt_of_before_and_for_what_ends_by_the_old_ones() {
    let bank = Bank::completing("paid");
    let shop = Shop::asking(bank.asking()).await;
    let policy = Policy { settling: Settling::Webhook, ..Policy::default() };
    let told = Shop { policy: Arc::new(policy), asking: None, ..shop.clone() };
    let before = told.doubted(1).await;
    let rules_now = Arc::new(Mutex::new(told.rules()));
    let rules = Arc::clone(&rules_now);
    let rules: Rules = Arc::new(move |operation: &str| {
        let rules = Arc::clone(&rules.lock().unwrap());
        rules(operation)
    });
    let mut reconciler = Reconciler::new(shop.engine.clone(), rules, 8);
    let mut turn_after = async |pause| {
        shop.pass(pause);
        tokio::time::advance(pause).await;
        reconciler.turn().await.unwrap();
        reconciler.all_answered().await;
    };
    turn_after(secs(1)).await;
    assert_eq!(shop.record(before).await.unwrap().due(), None, "a webhook is to tell");

    // A reload: from now on somebody is to be asked. What is under way still goes by the old rules.
    *rules_now.lock().unwrap() = shop.rules();
    let late = told.doubted(2).await;
    for _ in 0..3 {
        turn_after(secs(60)).await;
    }
    assert_eq!((shop.state(before).await, shop.state(late).await), (State::Completed, State::Completed));
    assert_eq!(bank.questions().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_unknown_for_longer_than_its_retention_is_replayed_for_all_of_it() {
    let bank = Bank::unclear();
    let shop = Shop::asking(Asking { attempts: 1000, ..bank.asking() }).await;
    let id = shop.doubted(1).await;
    let retention = shop.policy.retention;
    shop.pass(retention * 3);
    shop.reaper(Default::default()).round().await.unwrap();
    assert_eq!(shop.state(id).await, State::Unknown);
    bank.finds(Finding::Completed { response: Some(answer(201, "paid")), resource: None });
    turn(&shop).await;
    shop.pass(retention - secs(1));
    assert_eq!(replayed(shop.request(1).await), (201, "paid".into()));
    shop.pass(secs(1));
    assert!(matches!(shop.request(1).await, Decision::Expired { .. }));
}
