//! Signs of life for all tickets that are out: one task, however many there are.
//!
//! Most operations end long before their first sign of life is due. A ticket therefore only leaves a note of when it will be, and the
//! task looks at the notes when the earliest one is due: nothing is spawned and no timer is set per operation.

use super::Shared;
use super::owner_write::{Written, write};
use super::right::Seen;
use crate::transition::{Act, Claim};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// When each ticket's next heartbeat is due, and the task that sends them.
#[derive(Default)]
pub(super) struct Heartbeats {
    notes: Mutex<Notes>,
    /// Something is due earlier than the task thinks.
    earlier: Arc<Notify>,
}

#[derive(Default)]
struct Notes {
    tickets: HashMap<u64, Note>,
    /// When each is due; a ticket whose sign of life is being written is not in it.
    order: BTreeSet<(Instant, u64)>,
    next_number: u64,
    /// Until when the task sleeps; `None` while no task runs.
    sleeps_until: Option<Instant>,
}

#[derive(Clone)]
struct Note {
    claim: Claim,
    seen: Arc<Seen>,
    lease: Duration,
    due: Instant,
}

/// Keeps a lease alive for as long as it lives itself.
pub(super) struct Heartbeat {
    shared: Arc<Shared>,
    number: u64,
}

impl Heartbeat {
    /// Extends the lease of this ownership at every third of it, until it is dropped or refused.
    pub(super) fn start(shared: &Arc<Shared>, claim: Claim, seen: Arc<Seen>, lease: Duration) -> Self {
        let due = Instant::now() + lease / 3;
        let (number, nobody_watches) = {
            let mut notes = shared.heartbeats.notes();
            let number = notes.next_number;
            notes.next_number += 1;
            notes.tickets.insert(number, Note { claim, seen, lease, due });
            notes.order.insert((due, number));
            let nobody_watches = notes.sleeps_until.is_none();
            if nobody_watches {
                notes.sleeps_until = Some(due);
            } else if notes.sleeps_until.is_some_and(|until| due < until) {
                shared.heartbeats.earlier.notify_one();
            }
            (number, nobody_watches)
        };
        if nobody_watches {
            // A runtime that is going down drops it here and now, and it takes the lock then.
            tokio::spawn(beat(Watching { shared: Arc::downgrade(shared), has_ended: false }));
        }
        Self { shared: Arc::clone(shared), number }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        let mut notes = self.shared.heartbeats.notes();
        if let Some(note) = notes.tickets.remove(&self.number) {
            notes.order.remove(&(note.due, self.number));
        }
    }
}

impl Heartbeats {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Both collections are changed together under the lock by code that does not panic in between.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task's hold on the engine. If its runtime ends, the next ticket starts another task.
struct Watching {
    shared: Weak<Shared>,
    /// It ended by itself, and said so: whatever the notes say by now is another's.
    has_ended: bool,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade()
            && !self.has_ended
        {
            shared.heartbeats.notes().sleeps_until = None;
        }
    }
}

/// Writes every sign of life that is due, then sleeps until the next; ends when no ticket is out.
async fn beat(mut watching: Watching) {
    while let Some(shared) = watching.shared.upgrade() {
        let now = Instant::now();
        let (due, until) = {
            let mut notes = shared.heartbeats.notes();
            let mut due = Vec::new();
            while let Some(&(at, number)) = notes.order.first()
                && at <= now
            {
                notes.order.pop_first();
                due.push(number);
            }
            if notes.tickets.is_empty() {
                // Before anybody else can look: a ticket that comes now is to start another task.
                notes.sleeps_until = None;
                watching.has_ended = true;
                return;
            }
            // Where all that are out are being written, the one that is written first says when to look again.
            let until = notes.order.first().map_or(now + Duration::from_secs(60), |(at, _)| *at);
            notes.sleeps_until = Some(until);
            (due, until)
        };
        for number in due {
            // Side by side, so that they share a batch and none waits for another's.
            tokio::spawn(extend(Arc::clone(&shared), number));
        }
        let earlier = Arc::clone(&shared.heartbeats.earlier);
        // Asleep it holds nothing of the engine, which may be dropped meanwhile.
        drop(shared);
        let _ = tokio::time::timeout_at(until, earlier.notified()).await;
    }
}

/// One sign of life. A store that does not answer does not end it: it may be back before the lease is over.
async fn extend(shared: Arc<Shared>, number: u64) {
    let Some(Note { claim, seen, lease, .. }) = shared.heartbeats.notes().tickets.get(&number).cloned()
    else {
        return;
    };
    let pause = match write(&shared, &claim, &seen, &Act::Extend { lease }).await {
        Ok(Written::Done) => lease / 3,
        Ok(Written::Refused(refusal, _)) => {
            tracing::warn!(operation_id = %claim.operation_id, ?refusal, "the lease cannot be extended");
            shared.heartbeats.notes().tickets.remove(&number);
            return;
        }
        Err(error) => {
            tracing::warn!(operation_id = %claim.operation_id, %error, "the heartbeat failed; retrying");
            // The lease keeps running out: wake those who wait for its end.
            let _ = seen.check();
            lease / 10
        }
    };
    let due = Instant::now() + pause;
    let mut notes = shared.heartbeats.notes();
    // Not if the ticket was finished meanwhile.
    if let Some(note) = notes.tickets.get_mut(&number) {
        note.due = due;
        notes.order.insert((due, number));
        if notes.sleeps_until.is_some_and(|until| due < until) {
            shared.heartbeats.earlier.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::environment::Environment;
    use crate::identity::{Fingerprint, OperationId, Owner, RecipeId, RecordKey};
    use crate::policy::Policy;
    use crate::store::MemoryStore;
    use crate::time::Timestamp;
    use crate::transition::{Reservation, reserve};

    #[test]
    fn a_ticket_on_a_runtime_that_is_going_down_holds_nobody_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _inside = handle.enter();
            let reservation = Reservation {
                key: RecordKey::new("acme", "create_payment", "key"),
                operation_id: OperationId::random(),
                fingerprint: Fingerprint([7; 32]),
                recipe: RecipeId([9; 16]),
                owner: Owner::random(),
            };
            let record = reserve(reservation, &Policy::default()).at(Timestamp::from_millis(0));
            let engine = Engine::new(MemoryStore::new());
            let claim = Claim::of(&record);
            let seen = Arc::new(Seen::new(record, Environment::default(), Duration::from_secs(30)));
            drop(Heartbeat::start(&engine.shared, claim, seen, Duration::from_secs(30)));
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(30)).expect("it waits for nobody, and not for itself");
    }
}
