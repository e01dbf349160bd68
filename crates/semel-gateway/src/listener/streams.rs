//! The streams of one HTTP/2 connection, and for how long it has been waited for its client.

use super::pace::{Pace, Patience};
use crate::limits::Limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often it is looked whether the other streams of a connection that is to end have ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is known of a connection's streams.
pub(super) struct Streams {
    state: Mutex<State>,
    /// Some answer is given up before its time.
    given_up: Notify,
}

struct State {
    under_way: usize,
    /// When the number last changed.
    since: Instant,
    had_any: bool,
    number: u64,
    /// Pieces of answers that were handed out, and after which no more was asked for yet.
    not_taken: HashMap<u64, NotTaken>,
}

#[derive(Clone, Copy)]
struct NotTaken {
    since: Instant,
    /// Until when it has to be taken.
    until: Instant,
}

/// Why a connection is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Overdue {
    /// No request came for too long.
    Idle,
    /// A client asks for an answer and does not take it.
    NotTaken,
}

impl Streams {
    /// Of a connection that began at `begun`.
    pub(super) fn new(begun: Instant) -> Arc<Self> {
        let state =
            State { under_way: 0, since: begun, had_any: false, number: 0, not_taken: HashMap::new() };
        Arc::new(Self { state: Mutex::new(state), given_up: Notify::new() })
    }

    /// A stream begins; it ends when what is returned is dropped.
    pub(super) fn begin(self: &Arc<Self>, pace: Pace) -> OpenStream {
        let mut state = self.state();
        state.under_way += 1;
        state.had_any = true;
        state.number += 1;
        OpenStream {
            streams: Arc::clone(self),
            number: state.number,
            patience: Patience::new(pace),
            length: 0,
        }
    }

    /// Waits until the client has let the connection wait for too long.
    pub(super) async fn overdue(&self, limits: &Limits) -> Overdue {
        // A wait that begins while this sleeps cannot be over before it wakes.
        let shortest = limits.header_timeout.min(limits.idle_timeout).min(limits.body_timeout);
        loop {
            let now = Instant::now();
            let next = self.next_due(limits);
            if let Some((due, overdue)) = next
                && due <= now
            {
                return overdue;
            }
            let due = next.map_or(now + shortest, |(due, _)| due.min(now + shortest));
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = self.given_up.notified() => {}
            }
        }
    }

    /// Whether no request is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.state().under_way == 0
    }

    /// Waits until nothing is under way but answers that are not taken; no longer than a stop would.
    pub(super) async fn others_have_ended(&self, limits: &Limits) {
        let until = Instant::now() + limits.drain;
        while Instant::now() < until {
            {
                let state = self.state();
                let now = Instant::now();
                let stuck = state.not_taken.values().filter(|not_taken| not_taken.until <= now);
                if state.under_way <= stuck.count() {
                    return;
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn next_due(&self, limits: &Limits) -> Option<(Instant, Overdue)> {
        let state = self.state();
        let patience = if state.had_any { limits.idle_timeout } else { limits.header_timeout };
        let idle = (state.under_way == 0).then(|| (state.since + patience, Overdue::Idle));
        let first = state.not_taken.values().map(|not_taken| not_taken.until).min();
        let not_taken = first.map(|until| (until, Overdue::NotTaken));
        idle.into_iter().chain(not_taken).min_by_key(|(due, _)| *due)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers and moments are set under the lock: a poisoned one is as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream among those of its connection.
pub(super) struct OpenStream {
    streams: Arc<Streams>,
    number: u64,
    patience: Patience,
    /// Of the piece that was handed out last.
    length: usize,
}

impl OpenStream {
    /// A piece of the answer was handed out. The next one is asked for when the client has room for it.
    pub(super) fn handed_out(&mut self, length: usize) {
        self.length = length;
        let not_taken = NotTaken { since: Instant::now(), until: self.patience.wait() };
        self.streams.state().not_taken.insert(self.number, not_taken);
    }

    /// The next piece is asked for.
    pub(super) fn taken(&mut self) {
        self.patience.moved(std::mem::take(&mut self.length));
        self.streams.state().not_taken.remove(&self.number);
    }

    pub(super) fn handle(&self) -> StreamHandle {
        StreamHandle { streams: Arc::clone(&self.streams), number: self.number }
    }
}

/// A stream, for whoever may want it to end.
pub(super) struct StreamHandle {
    streams: Arc<Streams>,
    number: u64,
}

impl StreamHandle {
    /// Whether its answer has not been taken for so long.
    pub(super) fn is_stalled(&self, long: Duration) -> bool {
        let not_taken = self.streams.state().not_taken.get(&self.number).copied();
        not_taken.is_some_and(|not_taken| not_taken.since.elapsed() >= long)
    }

    /// The client's time is over for everything on this connection that it has not taken for so long, now or soon. The library has no way
    /// to end one stream: the connection is to end, and waits for nothing else that stands still.
    pub(super) fn give_up(&self, long: Duration) {
        let mut state = self.streams.state();
        for not_taken in state.not_taken.values_mut() {
            not_taken.until = not_taken.until.min(not_taken.since + long);
        }
        drop(state);
        self.streams.given_up.notify_one();
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        state.not_taken.remove(&self.number);
        state.under_way -= 1;
        state.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(30),
            ..Limits::default()
        }
    }

    fn pace() -> Pace {
        Pace::of(&limits())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_is_waited_for_less_than_the_next() {
        let start = Instant::now();
        let streams = Streams::new(start);
        assert_eq!(streams.overdue(&limits()).await, Overdue::Idle);
        assert_eq!(start.elapsed().as_secs(), 10);
        drop(streams.begin(pace()));
        assert_eq!(streams.overdue(&limits()).await, Overdue::Idle);
        assert_eq!(start.elapsed().as_secs(), 85);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_be_waited_for_but_has_to_be_taken() {
        let (start, limits) = (Instant::now(), limits());
        let streams = Streams::new(start);
        let (mut slow, mut other) = (streams.begin(pace()), streams.begin(pace()));
        let waiting = tokio::time::timeout(Duration::from_secs(1000), streams.overdue(&limits));
        assert!(waiting.await.is_err(), "the service may take its time");
        other.handed_out(1);
        tokio::time::sleep(Duration::from_secs(29)).await;
        other.taken();
        slow.handed_out(1);
        assert_eq!(streams.overdue(&limits).await, Overdue::NotTaken);
        assert_eq!(start.elapsed().as_secs(), 1000 + 29 + 30);
    }

    #[tokio::test(start_paused = true)]
    async fn the_others_may_end_but_not_for_ever() {
        let (start, limits) = (Instant::now(), limits());
        let streams = Streams::new(start);
        let (mut stuck, other) = (streams.begin(pace()), streams.begin(pace()));
        stuck.handed_out(1);
        assert_eq!(streams.overdue(&limits).await, Overdue::NotTaken);
        let waiting = tokio::time::timeout(Duration::from_secs(5), streams.others_have_ended(&limits));
        assert!(waiting.await.is_err(), "one is under way");
        drop(other);
        streams.others_have_ended(&limits).await;
        let _endless = streams.begin(pace());
        let since = Instant::now();
        streams.others_have_ended(&limits).await;
        assert!(since.elapsed() >= limits.drain);
    }
}
