//! A lost answer is read back, never guessed: the write was ours if the owner token is ours.
//!
//! The losses are made by [`LossyStore`] in front of the store. A cut in the store's own connection during its commit is for the
//! store's own tests.

use crate::lossy::{Loss, LossyStore};
use crate::samples::{
    LONG, SHORT, advance, complete, doubt, it_happened, release, request, response, retryable, settlement,
};
use crate::{Bench, Checked, Client};
use bytes::Bytes;
use semel::transition::{Act, Arrived, Polling, Refusal};
use semel::{Settling, Stale, State, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

const LOSSES: [Loss; 2] = [Loss::Answer, Loss::Call];

/// A client of the same store that loses its first write so.
fn losing(client: &Client, loss: Loss) -> (Client, Arc<LossyStore>) {
    let lossy = LossyStore::losing(client.store.clone(), [loss]);
    (Client { store: lossy.clone(), policy: client.policy.clone() }, lossy)
}

pub async fn a_reservation_whose_answer_is_lost_is_found_to_be_ours(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, loss) in (0..).zip(LOSSES) {
        let (unlucky, lossy) = losing(&client, loss);
        let ticket = unlucky.arrive(&request(number)).await.executes();
        assert_eq!(lossy.left(), 0, "the loss took place");
        let record = client.record(&ticket.key).await;
        assert!(ticket.claim.holds(&record));
        assert_eq!((record.version, record.attempt), (1, 1), "it was reserved once");
        assert!(matches!(client.arrive(&request(number)).await.told().0, Arrived::InProgress { .. }));
    }
    Ok(())
}

pub async fn a_reservation_that_lost_to_another_is_not_taken_for_ours(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, loss) in (0..).zip(LOSSES) {
        let winner = client.arrive(&request(number)).await.executes();
        let (unlucky, _) = losing(&client, loss);
        assert!(matches!(unlucky.arrive(&request(number)).await.told().0, Arrived::InProgress { .. }));
        assert!(winner.claim.holds(&client.record(&winner.key).await));
    }
    Ok(())
}

pub async fn a_completion_whose_answer_is_lost_is_done_once(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, loss) in (0..).zip(LOSSES) {
        let ticket = client.arrive(&request(number)).await.executes();
        let (unlucky, lossy) = losing(&client, loss);
        unlucky.act(&ticket, complete("done")).await.expect("it is found to be done, or done again");
        assert_eq!(lossy.left(), 0);
        let record = client.record(&ticket.key).await;
        assert_eq!((record.state, record.version), (State::Completed, 2));
        assert_eq!(record.response, Some(response("done")));
    }
    Ok(())
}

pub async fn every_act_of_an_owner_survives_a_lost_answer(bench: Bench) -> Checked {
    let client = bench.client();
    let mut number = 0;
    for loss in LOSSES {
        for (act, state) in [
            (Act::Extend { lease: LONG }, Some(State::InProgress)),
            (advance("charged"), Some(State::InProgress)),
            (crate::samples::fail("failed"), Some(State::FailedReplayable)),
            (retryable(), Some(State::FailedRetryable)),
            (release(), None),
            (doubt(Settling::Webhook), Some(State::Unknown)),
        ] {
            number += 1;
            let ticket = client.arrive(&request(number)).await.executes();
            let (unlucky, lossy) = losing(&client, loss);
            unlucky.act(&ticket, act.clone()).await.expect("the owner acts");
            assert_eq!(lossy.left(), 0);
            assert_eq!(client.read(&ticket.key).await.map(|record| record.state), state, "{act:?}");
            let lines = client.history(ticket.claim.operation_id).await.len();
            assert!(lines <= 1, "told once, not {lines} times");
        }
    }
    Ok(())
}

pub async fn a_retry_whose_answer_is_lost_is_found_to_be_ours(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, loss) in (0..).zip(LOSSES) {
        let first = client.arrive(&request(number)).await.executes();
        client.act(&first, retryable()).await.expect("nothing happened");
        // The create finds the record, so it is its second write that counts.
        let lossy = LossyStore::losing(client.store.clone(), [Loss::Call, loss]);
        let unlucky = Client { store: lossy.clone(), policy: client.policy.clone() };
        let second = unlucky.arrive(&request(number)).await.executes();
        assert_eq!(lossy.left(), 0);
        assert_eq!(second.claim.attempt, 2);
        assert!(second.claim.holds(&client.record(&first.key).await));
        assert!(matches!(client.arrive(&request(number)).await.told().0, Arrived::InProgress { .. }));
    }
    Ok(())
}

pub async fn a_takeover_whose_answer_is_lost_is_found_to_be_ours(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| {
        policy.stale = Stale::Resume;
        policy.lease = SHORT;
    });
    for (number, loss) in (0..).zip(LOSSES) {
        let first = client.arrive(&request(number)).await.executes();
        bench.reach(client.record(&first.key).await.times.lease).await;
        let lossy = LossyStore::losing(client.store.clone(), [Loss::Call, loss]);
        let unlucky = Client { store: lossy.clone(), policy: client.policy.clone() }
            .with_policy(|policy| policy.lease = LONG);
        let second = unlucky.arrive(&request(number)).await.executes();
        assert_eq!((lossy.left(), second.claim.attempt), (0, 2));
        assert!(second.claim.holds(&client.record(&first.key).await));
        assert_eq!(client.act(&first, complete("late")).await, Err(Refusal::Fenced));
    }
    Ok(())
}

pub async fn a_settlement_whose_answer_is_lost_is_done_once(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, loss) in (0..).zip(LOSSES) {
        let ticket = client.arrive(&request(number)).await.executes();
        client.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner doubts");
        let (unlucky, lossy) = losing(&client, loss);
        let ours = settlement(it_happened("by the bank"));
        unlucky.settle(&ticket, &ours).await.expect("it is found to be done, or done again");
        assert_eq!(lossy.left(), 0);
        assert_eq!(client.record(&ticket.key).await.owner, ours.settler);
        assert_eq!(client.history(ticket.claim.operation_id).await.len(), 2, "doubted, settled");
    }
    Ok(())
}

pub async fn a_settlement_that_came_second_is_not_taken_for_done(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner doubts");
    let (unlucky, lossy) = losing(&client, Loss::Call);
    // Its first write is lost on the way; before it reads back, the outcome is settled elsewhere.
    let before = unlucky.record(&ticket.key).await;
    let first = settlement(it_happened("by the bank"));
    let lost = unlucky.store.remove(vec![before.expected()]).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))));
    client.settle(&ticket, &first).await.expect("evidence settles");
    assert_eq!(lossy.left(), 0);
    let second = unlucky.settle(&ticket, &settlement(it_happened("by somebody else"))).await;
    assert_eq!(second, Err(Refusal::NotUnknown));
    assert_eq!(client.record(&ticket.key).await.owner, first.settler);
    Ok(())
}

pub async fn a_question_whose_answer_is_lost_counts_as_asked(bench: Bench) -> Checked {
    let client = bench.client();
    let polling = Polling { attempts: 5, next: LONG };
    for (number, (loss, asks)) in (0..).zip([(Loss::Answer, false), (Loss::Call, true)]) {
        let ticket = client.arrive(&request(number)).await.executes();
        let settling = Settling::Poll { first: Duration::ZERO };
        client.act(&ticket, doubt(settling)).await.expect("the owner doubts");
        let (unlucky, _) = losing(&client, loss);
        assert_eq!(
            unlucky.poll(&ticket.key, &polling).await.is_ok(),
            asks,
            "one question fewer, never one too many"
        );
        assert_eq!(client.record(&ticket.key).await.reconcile_attempts, 1);
    }
    Ok(())
}

pub async fn a_secret_whose_answer_is_lost_is_asked_for_again(bench: Bench) -> Checked {
    let store = bench.store();
    for (name, loss) in [("a", Loss::Answer), ("b", Loss::Call)] {
        let lossy = LossyStore::losing(store.clone(), [loss]);
        let first = lossy.remember(name.into(), Bytes::from("first")).await;
        assert!(matches!(first, Err(StoreError::Lost(_))));
        let expected = if loss == Loss::Answer { "first" } else { "second" };
        let kept = lossy.remember(name.into(), Bytes::from("second")).await.expect("the store remembers");
        assert_eq!(kept, Bytes::from(expected), "whatever is there in the end is the one that counts");
    }
    Ok(())
}

pub async fn a_call_that_is_dropped_midway_is_done_whole_or_not_at_all(bench: Bench) -> Checked {
    let client = bench.client();
    // A time-out drops the future at some point of its way; the caller then reads back as after a lost answer.
    for number in 0..40 {
        let draft = crate::samples::reserved(crate::samples::key(number));
        let call = client.store.create(vec![draft.clone()]);
        let _ = tokio::time::timeout(Duration::from_micros(u64::from(number) * 40), call).await;
        // Until it is seen, or seen not to come: either is whole.
        if let Some(record) = client.read(&draft.key).await {
            assert_eq!(record.owner, draft.owner);
            assert_eq!(client.find(draft.operation_id).await, Some(record));
        }
        // In the end there is one record of the key, ours or one that we make now, and both ways of asking agree.
        let (_, created) = client.create(draft.clone()).await;
        let record = client.record(&draft.key).await;
        assert_eq!(record.operation_id, draft.operation_id, "{created:?}");
        assert_eq!((record.version, record.owner), (1, draft.owner));
    }
    Ok(())
}
