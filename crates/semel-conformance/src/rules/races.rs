//! Races: exactly one wins, and all others get the winner's record. All start behind a barrier.

use crate::samples::{
    LONG, SHORT, complete, doubt, it_happened, key, next, release, request, reserved, settlement,
};
use crate::{Bench, Came, Checked, Client};
use semel::transition::{Arrived, Polling, Refusal};
use semel::{Created, Owner, Settling, Stale, State, Swapped};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;

const CROWD: usize = 24;

/// Runs `what` this many times at once, each with its own number, and returns the results.
pub(crate) async fn at_once<T, F>(count: usize, what: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(count));
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let (barrier, what) = (barrier.clone(), what(number));
            tokio::spawn(async move {
                barrier.wait().await;
                what.await
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.expect("no task panics"));
    }
    outcomes
}

/// A key that is held by an open transaction is asked for again.
async fn created(client: &Client, draft: semel::Draft) -> Created {
    loop {
        match client.create(draft.clone()).await.1 {
            Created::Locked => tokio::time::sleep(Duration::from_millis(1)).await,
            Created::Damaged(why) => panic!("what is there is damaged: {why}"),
            other => return other,
        }
    }
}

async fn one_of_many_creates_wins(clients: Vec<Client>) {
    for round in 0..8 {
        let drafts: Vec<_> = (0..CROWD).map(|_| reserved(key(round))).collect();
        let outcomes = at_once(CROWD, |number| {
            let (client, draft) = (clients[number % clients.len()].clone(), drafts[number].clone());
            async move { created(&client, draft).await }
        })
        .await;
        let winners: Vec<usize> = (0..CROWD).filter(|at| outcomes[*at] == Created::Inserted).collect();
        assert_eq!(winners.len(), 1, "one create wins, not {winners:?}");
        let record = clients[0].record(&key(round)).await;
        assert_eq!(record.owner, drafts[winners[0]].owner);
        for outcome in outcomes.into_iter().filter(|outcome| *outcome != Created::Inserted) {
            assert_eq!(
                outcome,
                Created::Exists(Box::new(record.clone())),
                "the others see the winner's record"
            );
        }
    }
}

pub async fn of_many_creates_of_one_key_exactly_one_wins(bench: Bench) -> Checked {
    one_of_many_creates_wins(vec![bench.client()]).await;
    Ok(())
}

pub async fn of_many_creates_over_two_instances_exactly_one_wins(bench: Bench) -> Checked {
    one_of_many_creates_wins(vec![bench.client(), bench.another().await?]).await;
    Ok(())
}

async fn one_of_many_swaps_wins(clients: Vec<Client>) {
    for round in 0..8 {
        let record = clients[0].insert(reserved(key(round))).await;
        let drafts: Vec<_> = (0..CROWD)
            .map(|_| {
                let mut draft = next(&record);
                draft.owner = Owner::random();
                draft
            })
            .collect();
        let outcomes = at_once(CROWD, |number| {
            let (client, draft) = (clients[number % clients.len()].clone(), drafts[number].clone());
            let expected = record.expected();
            async move {
                loop {
                    match client.swap(expected.clone(), draft.clone(), None).await.1 {
                        Swapped::Locked => tokio::time::sleep(Duration::from_millis(1)).await,
                        Swapped::Damaged(why) => panic!("what is there is damaged: {why}"),
                        other => return other,
                    }
                }
            }
        })
        .await;
        let winners: Vec<usize> = (0..CROWD).filter(|at| outcomes[*at] == Swapped::Done).collect();
        assert_eq!(winners.len(), 1, "one swap wins, not {winners:?}");
        let record = clients[0].record(&key(round)).await;
        assert_eq!(record.owner, drafts[winners[0]].owner);
        for outcome in outcomes.into_iter().filter(|outcome| *outcome != Swapped::Done) {
            assert_eq!(
                outcome,
                Swapped::Changed(Box::new(record.clone())),
                "the others see the winner's record"
            );
        }
    }
}

pub async fn of_many_swaps_of_one_version_exactly_one_wins(bench: Bench) -> Checked {
    one_of_many_swaps_wins(vec![bench.client()]).await;
    Ok(())
}

pub async fn of_many_swaps_over_two_instances_exactly_one_wins(bench: Bench) -> Checked {
    one_of_many_swaps_wins(vec![bench.client(), bench.another().await?]).await;
    Ok(())
}

pub async fn of_many_removals_exactly_one_is_done(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let outcomes = at_once(CROWD, |_| {
        let (client, expected) = (client.clone(), record.expected());
        async move {
            loop {
                match client.remove(expected.clone()).await.1 {
                    Swapped::Locked => tokio::time::sleep(Duration::from_millis(1)).await,
                    Swapped::Damaged(why) => panic!("what is there is damaged: {why}"),
                    other => return other,
                }
            }
        }
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Swapped::Done).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Swapped::Missing).count(), CROWD - 1);
    Ok(())
}

async fn arrive_at_once(client: &Client) -> Vec<Came> {
    at_once(CROWD, |_| {
        let client = client.clone();
        async move { client.arrive(&request(1)).await }
    })
    .await
}

fn executing(outcomes: &[Came]) -> usize {
    outcomes.iter().filter(|came| matches!(came, Came::Executes(_))).count()
}

pub async fn of_many_first_requests_one_executes_and_the_others_are_told_in_progress(
    bench: Bench,
) -> Checked {
    let outcomes = arrive_at_once(&bench.client()).await;
    assert_eq!(executing(&outcomes), 1);
    for came in outcomes.into_iter().filter(|came| !matches!(came, Came::Executes(_))) {
        assert!(matches!(came.told().0, Arrived::InProgress { .. }));
    }
    Ok(())
}

pub async fn of_many_retries_of_a_retryable_failure_one_executes(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.arrive(&request(1)).await.executes();
    client.act(&first, crate::samples::retryable()).await.expect("the owner says so");
    assert_eq!(executing(&arrive_at_once(&client).await), 1);
    assert_eq!(client.record(&first.key).await.attempt, 2);
    Ok(())
}

pub async fn of_many_takeovers_of_a_lease_that_ran_out_one_executes(bench: Bench) -> Checked {
    for stale in [Stale::Resume, Stale::Rerun] {
        let bench = bench.fresh().await;
        let client = bench.client().with_policy(|policy| {
            policy.stale = stale;
            policy.lease = SHORT;
        });
        let first = client.arrive(&request(1)).await.executes();
        bench.reach(client.record(&first.key).await.times.lease).await;
        let patient = client.with_policy(|policy| policy.lease = LONG);
        assert_eq!(executing(&arrive_at_once(&patient).await), 1);
        assert_eq!(patient.record(&first.key).await.attempt, 2);
    }
    Ok(())
}

pub async fn of_many_requests_that_find_the_lease_over_none_executes_and_doubt_is_told_once(
    bench: Bench,
) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let first = client.arrive(&request(1)).await.executes();
    bench.reach(client.record(&first.key).await.times.lease).await;
    let outcomes = arrive_at_once(&client).await;
    assert_eq!(executing(&outcomes), 0);
    for came in outcomes {
        assert_eq!(came.told().0, Arrived::Unknown);
    }
    assert_eq!(client.history(first.claim.operation_id).await.len(), 1, "one doubt, one line");
    Ok(())
}

pub async fn of_many_reconcilers_one_asks(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    let settling = Settling::Poll { first: Duration::ZERO };
    client.act(&ticket, doubt(settling)).await.expect("the owner doubts");
    let polling = Polling { attempts: 12, next: LONG };
    let outcomes = at_once(CROWD, |_| {
        let (client, key) = (client.clone(), ticket.key.clone());
        async move { client.poll(&key, &polling).await }
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(client.record(&ticket.key).await.reconcile_attempts, 1);
    Ok(())
}

pub async fn a_settlement_and_a_late_owner_race_and_one_of_them_has_the_word(bench: Bench) -> Checked {
    let client = bench.client();
    for round in 0..12 {
        let ticket = client.arrive(&request(round)).await.executes();
        client.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner doubts");
        let outcomes = at_once(2, |number| {
            let (client, ticket) = (client.clone(), ticket.clone());
            async move {
                if number == 0 {
                    client.act(&ticket, complete("by the owner")).await
                } else {
                    client.settle(&ticket, &settlement(it_happened("by the bank"))).await
                }
            }
        })
        .await;
        let record = client.record(&ticket.key).await;
        let body = record.response.expect("an answer is kept").body;
        match outcomes[..] {
            [Ok(()), Err(Refusal::NotUnknown)] => {
                assert_eq!(body, crate::samples::response("by the owner").body)
            }
            [Err(Refusal::Fenced), Ok(())] => assert_eq!(body, crate::samples::response("by the bank").body),
            _ => panic!("both had the word, or neither: {outcomes:?}"),
        }
        assert_eq!(record.version, 3, "one write each for reserving, doubting and the last word");
    }
    Ok(())
}

pub async fn a_completion_gets_through_a_crowd_of_heartbeats(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    let outcomes = at_once(CROWD, |number| {
        let (client, ticket) = (client.clone(), ticket.clone());
        async move {
            if number == 0 {
                client.act(&ticket, complete("done")).await
            } else {
                client.act(&ticket, semel::transition::Act::Extend { lease: LONG }).await
            }
        }
    })
    .await;
    assert_eq!(outcomes[0], Ok(()), "a swap lost to a heartbeat is decided again");
    assert_eq!(client.record(&ticket.key).await.state, State::Completed);
    Ok(())
}

pub async fn a_release_among_requests_lets_at_most_one_execute(bench: Bench) -> Checked {
    let client = bench.client();
    for round in 0..8 {
        let ticket = client.arrive(&request(round)).await.executes();
        let outcomes = at_once(CROWD, |number| {
            let (client, ticket) = (client.clone(), ticket.clone());
            async move {
                if number == 0 {
                    client.act(&ticket, release()).await.expect("a first attempt may be released");
                    return None;
                }
                Some(client.arrive(&request(round)).await)
            }
        })
        .await;
        let outcomes: Vec<Came> = outcomes.into_iter().flatten().collect();
        assert!(executing(&outcomes) <= 1);
        for came in outcomes.into_iter().filter(|came| !matches!(came, Came::Executes(_))) {
            assert!(matches!(came.told().0, Arrived::InProgress { .. }));
        }
    }
    Ok(())
}
