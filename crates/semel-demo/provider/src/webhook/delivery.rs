//! Delivers what the ledger owes.

use super::client::post;
use super::message::Message;
use super::schedule::{Job, Schedule};
use crate::settings::Webhook;
use crate::state::ProviderState;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Delivers until it is dropped, or until the ledger cannot be written.
pub(crate) async fn deliver(shared: Arc<ProviderState>) {
    let mut durable = shared.ledger.durable();
    let mut changes = shared.settings.subscribe();
    let mut schedule = Schedule::default();
    let mut tries: JoinSet<(Job, bool)> = JoinSet::new();
    // Entries up to this one are scheduled, or nothing is owed for them.
    let mut seen = 0;
    loop {
        let (webhook, seed) = {
            let settings = changes.borrow_and_update();
            (settings.webhook.clone(), settings.seed)
        };
        let Ok(last) = durable.borrow_and_update().clone() else { return };
        // Without a webhook what is owed stays owed, until there is one again.
        if let Some(webhook) = &webhook {
            let Ok(owed) = shared.ledger.peek(|book| book.owed(seen, last)) else { return };
            seen = last;
            let now = Instant::now();
            owed.into_iter().for_each(|entry| schedule.add(entry, webhook, seed, now));
            while tries.len() < webhook.concurrent
                && let Some(job) = schedule.next(webhook, seed, now)
            {
                tries.spawn(attempt(Arc::clone(&shared), webhook.clone(), job));
            }
        }
        let room = webhook.as_ref().is_some_and(|webhook| tries.len() < webhook.concurrent);
        let due = schedule.due().filter(|_| room);
        tokio::select! {
            Ok(()) = durable.changed() => {}
            Ok(()) = changes.changed() => {}
            Some(tried) = tries.join_next() => {
                if let (Ok((job, taken)), Some(webhook)) = (tried, &webhook) {
                    conclude(&mut schedule, job, taken, webhook, seed);
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

fn conclude(schedule: &mut Schedule, job: Job, taken: bool, webhook: &Webhook, seed: u64) {
    let now = Instant::now();
    if taken {
        schedule.taken(job, webhook, seed, now);
    } else if !schedule.not_taken(job, webhook, now) {
        tracing::warn!(entry = job.entry, "a webhook was not accepted, and is kept for the next start");
    }
}

/// Tries once, and notes it in the ledger if the message was taken.
async fn attempt(shared: Arc<ProviderState>, webhook: Webhook, job: Job) -> (Job, bool) {
    let message = shared.ledger.peek(|book| book.entry(job.entry).and_then(|entry| Message::of(entry)));
    let Ok(Some(Ok(message))) = message else {
        tracing::error!(entry = job.entry, "an entry that nothing can be told of");
        return (job, false);
    };
    if let Err(error) = post(&webhook, message).await {
        tracing::debug!(entry = job.entry, tried = job.tried, %error, "a webhook was not accepted");
        return (job, false);
    }
    // A kill before this is on disk delivers it once more; that is what the webhook-id is for.
    let noted = shared.ledger.decide(|book, now| book.delivered(job.entry, now)).await;
    (job, noted.is_ok())
}
