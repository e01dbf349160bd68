//! Fencing: writes name what they expect, owners name themselves, and an owner that was fenced changes nothing.

use crate::samples::{
    LONG, SHORT, advance, complete, doubt, every_act, fail, it_happened, key, next, request, reserved,
    response, retryable, settlement,
};
use crate::{Bench, Checked};
use semel::transition::{Act, Refusal};
use semel::{Actor, Happening, HistoryEntry, Settling, Stale, State, StoreError, Swapped};

fn a_line() -> Option<HistoryEntry> {
    Some(HistoryEntry { happening: Happening::Remarked, actor: Actor::Owner, attempt: 1, note: None })
}

pub async fn a_swap_of_an_old_version_changes_nothing_and_is_told_what_is_there(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.insert(reserved(key(1))).await;
    let (now, swapped) = client.swap(first.expected(), next(&first), None).await;
    assert_eq!(swapped, Swapped::Done);
    let second = next(&first).at(now);
    let mut late = next(&first);
    late.last_error = Some("late".into());
    let (_, swapped) = client.swap(first.expected(), late, a_line()).await;
    assert_eq!(swapped, Swapped::Changed(Box::new(second.clone())));
    assert_eq!(client.record(&key(1)).await, second);
    assert_eq!(client.history(first.operation_id).await, [], "a swap that loses tells no story");
    Ok(())
}

pub async fn a_swap_of_a_version_to_come_changes_nothing(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let mut expected = record.expected();
    expected.version += 1;
    let draft = semel::Draft { version: expected.version + 1, ..next(&record) };
    let (_, swapped) = client.swap(expected, draft, a_line()).await;
    assert_eq!(swapped, Swapped::Changed(Box::new(record.clone())));
    assert_eq!(client.record(&key(1)).await, record);
    Ok(())
}

pub async fn a_swap_of_an_operation_that_came_before_changes_nothing(bench: Bench) -> Checked {
    let client = bench.client();
    // The same key and the same version, but another operation: what a purge and a new request leave behind.
    let old = client.insert(reserved(key(1))).await;
    assert_eq!(client.remove(old.expected()).await.1, Swapped::Done);
    let new = client.insert(reserved(key(1))).await;
    assert_eq!(old.version, new.version);
    let (_, swapped) = client.swap(old.expected(), next(&old), a_line()).await;
    assert_eq!(swapped, Swapped::Changed(Box::new(new.clone())));
    let (_, removed) = client.remove(old.expected()).await;
    assert_eq!(removed, Swapped::Changed(Box::new(new.clone())));
    assert_eq!(client.record(&key(1)).await, new);
    assert_eq!(client.find(old.operation_id).await, None);
    assert_eq!(client.history(new.operation_id).await, []);
    Ok(())
}

pub async fn a_swap_of_what_is_not_there_is_told_so(bench: Bench) -> Checked {
    let client = bench.client();
    let never = reserved(key(1)).at(client.now().await);
    let (_, swapped) = client.swap(never.expected(), next(&never), a_line()).await;
    assert_eq!(swapped, Swapped::Missing);
    assert_eq!(client.remove(never.expected()).await.1, Swapped::Missing);
    assert_eq!(client.read(&key(1)).await, None, "a swap never inserts");
    assert_eq!(client.history(never.operation_id).await, []);
    Ok(())
}

pub async fn a_removal_of_an_old_version_changes_nothing(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.insert(reserved(key(1))).await;
    let (now, _) = client.swap(first.expected(), next(&first), None).await;
    let second = next(&first).at(now);
    assert_eq!(client.remove(first.expected()).await.1, Swapped::Changed(Box::new(second.clone())));
    assert_eq!(client.record(&key(1)).await, second);
    Ok(())
}

pub async fn a_swap_lost_to_a_heartbeat_is_decided_again_on_what_came_back(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    let before = client.record(&ticket.key).await;
    client.act(&ticket, Act::Extend { lease: LONG }).await.expect("a heartbeat");
    let (_, swapped) = client.swap(before.expected(), next(&before), None).await;
    let Swapped::Changed(found) = swapped else { panic!("the heartbeat went by: {swapped:?}") };
    // Fencing is by owner: the version moved, the ownership did not.
    assert!(ticket.claim.holds(&found));
    client.act(&ticket, complete("done")).await.expect("still the owner");
    Ok(())
}

pub async fn an_owner_may_finish_after_its_lease_ran_out(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    for (number, act, state) in
        [(1, complete("late"), State::Completed), (2, fail("late"), State::FailedReplayable)]
    {
        let ticket = client.arrive(&request(number)).await.executes();
        bench.reach(client.record(&ticket.key).await.times.lease).await;
        client.act(&ticket, act).await.expect("its word is the best evidence there is");
        let record = client.record(&ticket.key).await;
        assert_eq!((record.state, record.response), (state, Some(response("late"))));
    }
    Ok(())
}

pub async fn an_owner_may_finish_what_has_become_unknown(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, act, state) in
        [(1, complete("late"), State::Completed), (2, fail("late"), State::FailedReplayable)]
    {
        let ticket = client.arrive(&request(number)).await.executes();
        client.act(&ticket, doubt(Settling::Operator)).await.expect("the owner doubts");
        client.act(&ticket, act).await.expect("its word is the best evidence there is");
        let record = client.record(&ticket.key).await;
        assert_eq!((record.state, record.dead_letter), (state, false));
        let told: Vec<Happening> =
            client.history(record.operation_id).await.into_iter().map(|line| line.entry.happening).collect();
        assert_eq!(told, [Happening::Doubted, Happening::FinishedLate]);
    }
    Ok(())
}

pub async fn an_owner_in_doubt_may_do_nothing_but_finish(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner doubts");
    let before = client.record(&ticket.key).await;
    for act in every_act() {
        if !matches!(act, Act::Complete { .. } | Act::Fail { .. }) {
            assert_eq!(client.act(&ticket, act).await, Err(Refusal::InDoubt));
        }
    }
    assert_eq!(client.record(&ticket.key).await, before);
    Ok(())
}

pub async fn an_owner_that_was_taken_over_changes_nothing_any_more(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| {
        policy.lease = SHORT;
        policy.stale = Stale::Resume;
    });
    let old = client.arrive(&request(1)).await.executes();
    bench.reach(client.record(&old.key).await.times.lease).await;
    let new = client.arrive(&request(1)).await.executes();
    let before = client.record(&old.key).await;
    assert!(new.claim.holds(&before) && !old.claim.holds(&before));
    let story = client.history(before.operation_id).await;
    for act in every_act() {
        assert_eq!(client.act(&old, act).await, Err(Refusal::Fenced));
    }
    assert_eq!(client.record(&old.key).await, before);
    assert_eq!(client.history(before.operation_id).await, story);
    client.act(&new, complete("by the new owner")).await.expect("the new owner has the word");
    Ok(())
}

pub async fn an_owner_changes_nothing_after_the_outcome_was_settled(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner doubts");
    client.settle(&ticket, &settlement(it_happened("by the bank"))).await.expect("evidence settles");
    let before = client.record(&ticket.key).await;
    for act in every_act() {
        assert_eq!(client.act(&ticket, act).await, Err(Refusal::Fenced));
    }
    assert_eq!(client.record(&ticket.key).await, before);
    Ok(())
}

pub async fn an_owner_changes_nothing_after_a_retry_took_its_failure(bench: Bench) -> Checked {
    let client = bench.client();
    let old = client.arrive(&request(1)).await.executes();
    client.act(&old, retryable()).await.expect("the owner says that nothing happened");
    client.arrive(&request(1)).await.executes();
    for act in every_act() {
        assert_eq!(client.act(&old, act).await, Err(Refusal::Fenced));
    }
    Ok(())
}

pub async fn a_last_word_is_said_once(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, complete("done")).await.expect("the owner completes");
    let before = client.record(&ticket.key).await;
    for act in every_act() {
        assert_eq!(client.act(&ticket, act).await, Err(Refusal::Finished));
    }
    assert_eq!(client.record(&ticket.key).await, before);
    Ok(())
}

pub async fn an_owner_of_a_removed_record_is_fenced(bench: Bench) -> Checked {
    let client = bench.client();
    let old = client.arrive(&request(1)).await.executes();
    client.act(&old, crate::samples::release()).await.expect("a first attempt may be released");
    let new = client.arrive(&request(1)).await.executes();
    for act in every_act() {
        assert_eq!(client.act(&old, act).await, Err(Refusal::Fenced));
    }
    client.act(&new, advance("charged")).await.expect("the new owner is untouched");
    Ok(())
}

pub async fn a_swap_that_would_make_another_operation_of_it_is_refused(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let sound = next(&record);
    let twisted = [
        semel::Draft { version: record.version, ..sound.clone() },
        semel::Draft { operation_id: semel::OperationId::random(), ..sound.clone() },
        semel::Draft { key: key(2), ..sound },
    ];
    for draft in twisted {
        let swap = semel::Swap { expected: record.expected(), next: Box::new(draft), history: a_line() };
        let swapped = client.store.swap(vec![swap]).await;
        assert!(matches!(swapped, Err(StoreError::Unavailable(_))), "{swapped:?}");
    }
    assert_eq!(client.record(&key(1)).await, record);
    assert_eq!(client.read(&key(2)).await, None);
    assert_eq!(client.history(record.operation_id).await, []);
    Ok(())
}
