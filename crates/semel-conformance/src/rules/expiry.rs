//! Windows are judged on every read, whether or not the reaper has run.

use crate::samples::{LONG, SHORT, WINDOWS, advance, complete, complete_within, other_payload, request};
use crate::{Bench, Checked, Client, Ticket};
use semel::transition::{Arrived, Refusal, Windows, state_at};
use semel::{Body, DueKind, Expired, Record, State, Timestamp};
use std::time::Duration;

async fn completed(client: &Client, number: u32, windows: Windows) -> (Ticket, Record) {
    let ticket = client.arrive(&request(number)).await.executes();
    client.act(&ticket, complete_within("done", windows)).await.expect("the owner completes");
    let record = client.record(&ticket.key).await;
    (ticket, record)
}

fn expires(record: &Record) -> Timestamp {
    record.times.expires.expect("a final state has a window")
}

pub async fn windows_count_from_the_final_state(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    bench.pass(SHORT).await;
    let windows = Windows { retention: LONG, body_retention: LONG / 2, tombstone: LONG * 2 };
    client.act(&ticket, complete_within("done", windows)).await.expect("the owner completes");
    let times = client.record(&ticket.key).await.times;
    let end = times.completed.expect("it ended");
    assert!(end >= times.created.plus(SHORT), "the window does not run from the beginning");
    assert_eq!(times.body_expires, Some(end.plus(LONG / 2)));
    assert_eq!(times.expires, Some(end.plus(LONG)));
    assert_eq!(times.purge, Some(end.plus(LONG * 3)));
    Ok(())
}

pub async fn a_key_is_refused_as_expired_before_the_reaper_comes(bench: Bench) -> Checked {
    let client = bench.client();
    let (ticket, record) = completed(&client, 1, Windows { retention: SHORT, ..WINDOWS }).await;
    bench.reach(expires(&record)).await;
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Expired);
    assert_eq!(client.arrive(&other_payload(&request(1))).await.told().0, Arrived::KeyReused);
    assert_eq!(client.record(&ticket.key).await, record, "reading writes nothing");
    Ok(())
}

pub async fn within_its_window_nothing_is_reaped(bench: Bench) -> Checked {
    let client = bench.client();
    let (ticket, record) = completed(&client, 1, WINDOWS).await;
    assert_eq!(client.reap(&ticket.key).await, Err(Refusal::NotDue));
    for kind in DueKind::ALL {
        assert!(client.due(kind).await.items.is_empty(), "{kind:?}");
    }
    assert_eq!(client.record(&ticket.key).await, record);
    Ok(())
}

pub async fn an_answer_may_be_over_before_its_window(bench: Bench) -> Checked {
    let client = bench.client();
    let windows = Windows { body_retention: SHORT, ..WINDOWS };
    let (ticket, record) = completed(&client, 1, windows).await;
    bench.reach(record.times.body_expires.expect("the body goes first")).await;
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::NotStored, "before it was dropped");
    assert_eq!(client.reap(&ticket.key).await, Err(Refusal::NotDue), "the record stays as it is");
    assert_eq!(client.drop_answers(10).await.len(), 1);
    let after = client.record(&ticket.key).await;
    let kept = after.response.clone().expect("the status stays");
    assert_eq!((kept.status, kept.body, after.state), (201, Body::Dropped, State::Completed));
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::NotStored);
    Ok(())
}

pub async fn a_window_that_is_over_is_read_off_the_time_and_the_record_goes_in_the_end(
    bench: Bench,
) -> Checked {
    let client = bench.client();
    let windows = Windows { retention: SHORT, body_retention: SHORT, tombstone: SHORT };
    let (ticket, record) = completed(&client, 1, windows).await;
    let actor = semel::Actor::Webhook("provider".into());
    client.remark(&ticket.key, &actor, "came too late").await.expect("a history to be removed");
    bench.reach(expires(&record)).await;
    let (now, found) = client.look(&ticket.key).await;
    let found = found.expect("it is there until its tombstone goes");
    assert_eq!(state_at(&found, now), State::Expired);
    assert_eq!(found.fingerprint, record.fingerprint, "the key still stands for one request");
    bench.reach(record.times.purge.expect("its tombstone ends")).await;
    assert_eq!(client.due(DueKind::Purge).await.items.len(), 1);
    client.reap(&ticket.key).await.expect("the tombstone's time is over");
    assert_eq!(client.read(&ticket.key).await, None);
    assert_eq!(client.find(ticket.claim.operation_id).await, None);
    assert_eq!(client.history(ticket.claim.operation_id).await, []);
    for kind in DueKind::ALL {
        assert!(client.due(kind).await.items.is_empty(), "{kind:?}");
    }
    Ok(())
}

pub async fn the_reaper_leaves_a_tombstone_where_there_is_a_checkpoint(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, advance("charged")).await.expect("a recovery point");
    let windows = Windows { retention: SHORT, body_retention: SHORT, tombstone: LONG };
    client.act(&ticket, complete_within("done", windows)).await.expect("the owner completes");
    let record = client.record(&ticket.key).await;
    bench.reach(expires(&record)).await;
    assert_eq!(client.due(DueKind::Window).await.items.len(), 1);
    client.reap(&ticket.key).await.expect("the window is over");
    let tombstone = client.record(&ticket.key).await;
    assert_eq!((tombstone.state, tombstone.response, tombstone.checkpoint), (State::Expired, None, None));
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Expired);
    assert_eq!(client.reap(&ticket.key).await, Err(Refusal::NotDue));
    assert!(client.due(DueKind::Window).await.items.is_empty());
    Ok(())
}

pub async fn a_tombstone_refuses_for_as_long_as_it_stands(bench: Bench) -> Checked {
    let client = bench.client();
    let (ticket, record) = completed(&client, 1, Windows { retention: SHORT, ..WINDOWS }).await;
    bench.reach(expires(&record)).await;
    assert_eq!(client.drop_answers(10).await, [expires(&record)]);
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Expired);
    assert_eq!(client.arrive(&other_payload(&request(1))).await.told().0, Arrived::KeyReused);
    assert_eq!(client.reap(&ticket.key).await, Err(Refusal::NotDue));
    Ok(())
}

pub async fn a_tombstone_for_ever_is_never_due(bench: Bench) -> Checked {
    let client = bench.client();
    let windows = Windows { retention: SHORT, body_retention: SHORT, tombstone: Duration::MAX };
    let (ticket, record) = completed(&client, 1, windows).await;
    assert_eq!(record.times.purge, None);
    bench.reach(expires(&record)).await;
    client.drop_answers(10).await;
    assert!(client.due(DueKind::Purge).await.items.is_empty());
    assert_eq!(client.reap(&ticket.key).await, Err(Refusal::NotDue));
    assert_eq!(client.record(&ticket.key).await.times.purge, None);
    Ok(())
}

pub async fn where_the_policy_says_so_an_expired_key_is_new_work(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.expired = Expired::New);
    let (first, record) = completed(&client, 1, Windows { retention: SHORT, ..WINDOWS }).await;
    bench.reach(expires(&record)).await;
    let second = client.arrive(&other_payload(&request(1))).await.executes();
    assert_ne!(first.claim.operation_id, second.claim.operation_id);
    assert_eq!(client.record(&first.key).await.attempt, 1);
    assert_eq!(client.find(first.claim.operation_id).await, None);
    Ok(())
}

pub async fn a_tombstone_whose_time_is_over_is_as_if_never_seen(bench: Bench) -> Checked {
    let client = bench.client();
    let windows = Windows { retention: SHORT, body_retention: SHORT, tombstone: Duration::ZERO };
    let (first, record) = completed(&client, 1, windows).await;
    bench.reach(record.times.purge.expect("its time ends")).await;
    let second = client.arrive(&other_payload(&request(1))).await.executes();
    assert_ne!(first.claim.operation_id, second.claim.operation_id);
    client.act(&second, complete("new work")).await.expect("the new owner completes");
    Ok(())
}
