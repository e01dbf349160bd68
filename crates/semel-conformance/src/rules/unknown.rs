//! Doubt is a state of its own, and evidence alone moves it on.

use crate::samples::{LONG, SHORT, WINDOWS, complete, doubt, it_happened, request, response, settlement};
use crate::{Bench, Checked, Client, Ticket};
use semel::transition::{About, Act, Arrived, Evidence, Polling, Refusal};
use semel::{Actor, DueKind, Filter, Happening, Settling, State};
use std::time::Duration;

async fn in_doubt(client: &Client, number: u32, settling: Settling) -> Ticket {
    let ticket = client.arrive(&request(number)).await.executes();
    client.act(&ticket, doubt(settling)).await.expect("the owner doubts");
    ticket
}

pub async fn a_request_that_finds_doubt_does_not_execute(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    let (told, record) = client.arrive(&request(1)).await.told();
    assert_eq!(told, Arrived::Unknown);
    assert_eq!(record.last_error.as_deref(), Some("timed_out"));
    assert_eq!(client.record(&ticket.key).await, record);
    Ok(())
}

pub async fn doubt_never_expires(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| {
        policy.retention = Duration::ZERO;
        policy.tombstone = Duration::ZERO;
    });
    let ticket = in_doubt(&client, 1, Settling::Operator).await;
    bench.pass(SHORT).await;
    assert_eq!(client.reap(&ticket.key).await, Err(Refusal::NotDue));
    for kind in DueKind::ALL {
        assert!(client.due(kind).await.items.is_empty(), "{kind:?}");
    }
    Ok(())
}

pub async fn doubt_that_nothing_automatic_settles_is_a_dead_letter_at_once(bench: Bench) -> Checked {
    let client = bench.client();
    let dead = in_doubt(&client, 1, Settling::Operator).await;
    let alive = in_doubt(&client, 2, Settling::Webhook).await;
    assert!(client.record(&dead.key).await.dead_letter);
    let letters = client.list(&Filter { dead_letter: Some(true), ..Filter::default() }, 10).await;
    assert_eq!(letters, [client.record(&dead.key).await]);
    let others = client.list(&Filter { dead_letter: Some(false), ..Filter::default() }, 10).await;
    assert_eq!(others, [client.record(&alive.key).await]);
    Ok(())
}

pub async fn questions_are_counted_and_end_in_a_dead_letter(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Poll { first: Duration::ZERO }).await;
    let polling = Polling { attempts: 2, next: Duration::ZERO };
    for asked in 1..=2 {
        assert_eq!(client.due(DueKind::Reconcile).await.items.len(), 1);
        client.poll(&ticket.key, &polling).await.expect("it is to be asked about");
        assert_eq!(client.record(&ticket.key).await.reconcile_attempts, asked);
    }
    client.poll(&ticket.key, &polling).await.expect("the questions are used up");
    let record = client.record(&ticket.key).await;
    assert_eq!((record.dead_letter, record.times.reconcile), (true, None));
    assert!(client.due(DueKind::Reconcile).await.items.is_empty());
    assert_eq!(client.poll(&ticket.key, &polling).await, Err(Refusal::NotUnknown));
    let last = client.history(ticket.claim.operation_id).await.pop().expect("its history tells");
    assert_eq!(last.entry.happening, Happening::DeadLettered);
    Ok(())
}

pub async fn nobody_asks_before_the_time(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Poll { first: LONG }).await;
    let polling = Polling { attempts: 2, next: LONG };
    assert!(client.due(DueKind::Reconcile).await.items.is_empty());
    assert_eq!(client.poll(&ticket.key, &polling).await, Err(Refusal::NotDue));
    Ok(())
}

pub async fn evidence_of_success_is_what_retries_get(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Operator).await;
    let settlement = settlement(it_happened("by the bank"));
    client.settle(&ticket, &settlement).await.expect("evidence settles");
    let (told, record) = client.arrive(&request(1)).await.told();
    assert_eq!((told, record.state), (Arrived::Replay, State::Completed));
    assert_eq!(record.response, Some(response("by the bank")));
    assert_eq!((record.owner, record.dead_letter), (settlement.settler, false));
    let last = client.history(record.operation_id).await.pop().expect("its history tells").entry;
    assert_eq!((last.happening, last.actor), (Happening::SettledCompleted, Actor::Operator("ada".into())));
    assert_eq!(last.note.as_deref(), Some("asked the bank"), "a person's reason is kept");
    Ok(())
}

pub async fn evidence_of_failure_is_what_retries_get(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    let evidence = Evidence::Failed { response: Some(response("declined")), resource: None };
    client.settle(&ticket, &settlement(evidence)).await.expect("evidence settles");
    let (told, record) = client.arrive(&request(1)).await.told();
    assert_eq!((told, record.state), (Arrived::Replay, State::FailedReplayable));
    Ok(())
}

pub async fn evidence_without_an_answer_leaves_none_to_replay(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    let evidence = Evidence::Completed { response: None, resource: None };
    client.settle(&ticket, &settlement(evidence)).await.expect("evidence settles");
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::NotStored);
    Ok(())
}

pub async fn evidence_that_nothing_happened_lets_one_retry_execute(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    client.settle(&ticket, &settlement(Evidence::NotExecuted)).await.expect("evidence settles");
    let retry = client.arrive(&request(1)).await.executes();
    assert_eq!((retry.claim.operation_id, retry.claim.attempt), (ticket.claim.operation_id, 2));
    assert!(matches!(client.arrive(&request(1)).await.told().0, Arrived::InProgress { .. }));
    Ok(())
}

pub async fn absence_proves_nothing_while_the_lease_runs_or_for_another_attempt(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = LONG);
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    let absent = settlement(Evidence::Absent);
    assert_eq!(client.settle(&ticket, &absent).await, Err(Refusal::LeaseRunning));
    let mut other = ticket.clone();
    other.claim.attempt += 1;
    assert_eq!(client.settle(&other, &absent).await, Err(Refusal::OtherAttempt));
    assert_eq!(client.record(&ticket.key).await.state, State::Unknown);
    Ok(())
}

pub async fn evidence_without_an_attempt_counts_only_if_it_happened(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    let before = client.record(&ticket.key).await;
    bench.reach(before.times.lease).await;
    let about = About { operation_id: ticket.claim.operation_id, attempt: None };
    let failed = Evidence::Failed { response: Some(response("declined")), resource: None };
    for evidence in [failed, Evidence::NotExecuted, Evidence::Absent] {
        let settled = client.settle_about(&ticket.key, &about, &settlement(evidence)).await;
        assert_eq!(settled, Err(Refusal::AttemptNotNamed));
        assert_eq!(client.record(&ticket.key).await, before);
    }
    let happened = settlement(it_happened("by the bank"));
    client.settle_about(&ticket.key, &about, &happened).await.expect("it is true of the operation");
    assert_eq!(client.record(&ticket.key).await.state, State::Completed);
    Ok(())
}

pub async fn absence_proves_once_the_lease_is_over(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    bench.reach(client.record(&ticket.key).await.times.lease).await;
    let absent = settlement(Evidence::Absent);
    client.settle(&ticket, &absent).await.expect("the owner can do nothing any more");
    assert_eq!(client.record(&ticket.key).await.state, State::FailedRetryable);
    Ok(())
}

pub async fn evidence_moves_nothing_but_doubt_and_is_kept_in_the_history(bench: Bench) -> Checked {
    let client = bench.client();
    let ends: [Option<Act>; 3] =
        [None, Some(complete("done")), Some(Act::Retryable { error: "e".into(), windows: WINDOWS })];
    for (number, end) in (0..).zip(ends) {
        let ticket = client.arrive(&request(number)).await.executes();
        if let Some(act) = end {
            client.act(&ticket, act).await.expect("the owner acts");
        }
        let before = client.record(&ticket.key).await;
        let settled = client.settle(&ticket, &settlement(it_happened("by the bank"))).await;
        assert_eq!(settled, Err(Refusal::NotUnknown));
        assert_eq!(client.record(&ticket.key).await, before);
        let actor = Actor::Webhook("provider".into());
        client.remark(&ticket.key, &actor, "came too late").await.expect("a remark is always taken");
        let after = client.record(&ticket.key).await;
        let mut expected = before.clone();
        expected.version += 1;
        assert_eq!(after, expected, "a remark changes nothing else");
        let last = client.history(after.operation_id).await.pop().expect("the remark is there");
        assert_eq!((last.version, last.entry.happening), (after.version, Happening::Remarked));
        assert_eq!((last.entry.actor, last.entry.note.as_deref()), (actor, Some("came too late")));
    }
    Ok(())
}

pub async fn an_outcome_is_settled_once(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = in_doubt(&client, 1, Settling::Webhook).await;
    client.settle(&ticket, &settlement(it_happened("first"))).await.expect("evidence settles");
    let second = client.settle(&ticket, &settlement(Evidence::NotExecuted)).await;
    assert_eq!(second, Err(Refusal::NotUnknown));
    assert_eq!(client.record(&ticket.key).await.response, Some(response("first")));
    Ok(())
}
