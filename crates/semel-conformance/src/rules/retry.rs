//! Attempts that follow one that is proved to have done nothing.

use crate::samples::{SHORT, WINDOWS, advance, complete, release, request, retryable};
use crate::{Bench, Checked, Client, Ticket};
use semel::transition::{Act, Arrived, Refusal, Windows};
use semel::{Happening, Origin, Stale, State};

async fn told(client: &Client, ticket: &Ticket) -> Vec<Happening> {
    client.history(ticket.claim.operation_id).await.into_iter().map(|line| line.entry.happening).collect()
}

pub async fn a_retry_executes_as_a_new_owner_of_the_same_operation(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.arrive(&request(1)).await.executes();
    client.act(&first, retryable()).await.expect("nothing happened");
    let failed = client.record(&first.key).await;
    assert_eq!((failed.state, failed.response.clone()), (State::FailedRetryable, None));
    assert_eq!(failed.last_error.as_deref(), Some("upstream_unreachable"));
    let second = client.arrive(&request(1)).await.executes();
    assert_eq!(second.claim.operation_id, first.claim.operation_id);
    assert_eq!(second.claim.attempt, 2);
    assert_ne!(second.claim.owner, first.claim.owner);
    let record = client.record(&first.key).await;
    assert_eq!((record.state, record.origin), (State::InProgress, Origin::Retry));
    assert_eq!((record.times.expires, record.times.purge), (None, None), "at work again: no window runs");
    client.act(&second, complete("at last")).await.expect("the new owner completes");
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Replay);
    assert_eq!(told(&client, &first).await, [Happening::FailedRetryable, Happening::Retried]);
    Ok(())
}

pub async fn a_later_attempt_that_is_released_goes_back_to_retryable(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.arrive(&request(1)).await.executes();
    client.act(&first, retryable()).await.expect("nothing happened");
    let second = client.arrive(&request(1)).await.executes();
    client.act(&second, release()).await.expect("called off");
    let record = client.record(&first.key).await;
    assert_eq!((record.state, record.operation_id), (State::FailedRetryable, first.claim.operation_id));
    assert_eq!(client.arrive(&request(1)).await.executes().claim.attempt, 3);
    let expected = [Happening::FailedRetryable, Happening::Retried, Happening::Released, Happening::Retried];
    assert_eq!(told(&client, &first).await, expected);
    Ok(())
}

pub async fn an_attempt_that_took_over_doubt_never_ends_in_released_or_retryable(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| {
        policy.lease = SHORT;
        policy.stale = Stale::Rerun;
    });
    let first = client.arrive(&request(1)).await.executes();
    bench.reach(client.record(&first.key).await.times.lease).await;
    let second = client.arrive(&request(1)).await.executes();
    for act in [retryable(), release()] {
        assert_eq!(client.act(&second, act).await, Err(Refusal::TookOverDoubt));
    }
    client.act(&second, complete("done")).await.expect("it ends in completed");
    Ok(())
}

pub async fn past_a_recovery_point_nothing_is_made_unseen(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, advance("charged")).await.expect("a recovery point");
    assert_eq!(client.act(&ticket, release()).await, Err(Refusal::PastRecoveryPoint));
    assert_eq!(client.record(&ticket.key).await.state, State::InProgress);
    Ok(())
}

pub async fn a_retryable_failure_expires_like_any_other_end(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    let windows = Windows { retention: SHORT, ..WINDOWS };
    let act = Act::Retryable { error: "upstream_unreachable".into(), windows };
    client.act(&ticket, act).await.expect("nothing happened");
    let expires = client.record(&ticket.key).await.times.expires.expect("its window runs");
    bench.reach(expires).await;
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Expired);
    Ok(())
}
