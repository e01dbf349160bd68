//! The way to Redis, with a circuit breaker: what goes wrong costs one time-out, and then nothing until a probe has succeeded.

use crate::connection::{Connection, Put};
use crate::counts::Counts;
use crate::trouble::Trouble;
use crate::url::RedisUrl;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Between the breaker's opening and the first probe, and between two probes at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Once the breaker has been closed for this long, the next trouble is a new one.
const CALM: Duration = Duration::from_secs(10);
/// How long connecting may take, which no request waits for.
const CONNECTING: Duration = Duration::from_secs(2);
/// What probes write, for a second.
const PROBE: &[u8] = b"semel:probe";

pub(crate) struct Link {
    url: RedisUrl,
    ca: Option<Vec<u8>>,
    timeout: Duration,
    counts: Arc<Counts>,
    state: Mutex<State>,
    /// Whether a task probes.
    probing: AtomicBool,
}

struct State {
    /// Closed while this is there.
    usable: Option<Connection>,
    /// When the breaker closed last, and the pause before the next probe.
    closed: Option<Instant>,
    pause: Duration,
}

impl Link {
    pub(crate) fn new(
        url: RedisUrl,
        ca: Option<Vec<u8>>,
        timeout: Duration,
        counts: Arc<Counts>,
    ) -> Arc<Self> {
        counts.open.store(true, Ordering::Relaxed);
        let state = State { usable: None, closed: None, pause: Duration::ZERO };
        Arc::new(Self { url, ca, timeout, counts, state: Mutex::new(state), probing: AtomicBool::new(false) })
    }

    /// The values under these names; `None` without an answer in time.
    pub(crate) async fn read(self: &Arc<Self>, names: &[Vec<u8>]) -> Option<Vec<Option<Bytes>>> {
        let connection = self.usable()?;
        self.done(timeout(self.timeout, connection.read(names)).await)
    }

    /// Writes these values, if the breaker is closed. Returns within the time-out.
    pub(crate) async fn write(self: &Arc<Self>, puts: &[Put]) {
        let Some(connection) = self.usable() else { return };
        if self.done(timeout(self.timeout, connection.write(puts)).await).is_some() {
            self.counts.written.fetch_add(puts.len() as u64, Ordering::Relaxed);
        }
    }

    /// Whether Redis is used at present. If not, somebody probes, as far as there is a runtime to do so.
    pub(crate) fn is_used(self: &Arc<Self>) -> bool {
        self.usable().is_some()
    }

    fn usable(self: &Arc<Self>) -> Option<Connection> {
        let usable = self.lock().usable.clone();
        if usable.is_none() {
            self.probe(None);
        }
        usable
    }

    fn done<T, E>(self: &Arc<Self>, answer: Result<Result<T, Trouble>, E>) -> Option<T> {
        match answer {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(trouble)) => self.open(trouble),
            Err(_) => self.open(Trouble::Timeout),
        }
        None
    }

    fn open(self: &Arc<Self>, trouble: Trouble) {
        let connection = {
            let mut state = self.lock();
            // Of several that fail at once, one opens it.
            let Some(connection) = state.usable.take() else { return };
            let calm = state.closed.is_none_or(|closed| closed.elapsed() >= CALM);
            state.pause =
                if calm { FIRST_PAUSE } else { (state.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE) };
            connection
        };
        self.counts.open.store(true, Ordering::Relaxed);
        self.counts.troubles[trouble as usize].fetch_add(1, Ordering::Relaxed);
        tracing::warn!(redis = %self.url, trouble = trouble.as_str(), "Redis is not used for now; the store is asked");
        // A slow answer is no reason to reconnect.
        self.probe(matches!(trouble, Trouble::Timeout).then_some(connection));
    }

    fn probe(self: &Arc<Self>, connection: Option<Connection>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.probing.swap(true, Ordering::AcqRel) {
            return;
        }
        // Made before the task is: one that a runtime drops before it has begun counts as cut off, too.
        let turn = Turn(Arc::downgrade(self));
        runtime.spawn(async move { turn.run(connection).await });
    }

    async fn try_out(&self, connection: Option<Connection>) -> Result<Connection, Trouble> {
        let connection = match connection {
            Some(connection) => connection,
            None => Connection::connect(&self.url, self.ca.as_deref(), CONNECTING).await?,
        };
        let trying = timeout(self.timeout, connection.clone().try_out(PROBE));
        trying.await.unwrap_or(Err(Trouble::Timeout)).map(|()| connection)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that probes. Without it, the next request starts another one.
struct Turn(Weak<Link>);

impl Turn {
    async fn run(self, mut connection: Option<Connection>) {
        let mut said = None;
        loop {
            let Some(pause) = self.0.upgrade().map(|link| link.lock().pause) else { return };
            sleep(pause).await;
            let Some(link) = self.0.upgrade() else { return };
            match link.try_out(connection.take()).await {
                Ok(connection) => {
                    let mut state = link.lock();
                    state.usable = Some(connection);
                    state.closed = Some(Instant::now());
                    drop(state);
                    link.counts.open.store(false, Ordering::Relaxed);
                    tracing::info!(redis = %link.url, "Redis is used");
                    return;
                }
                Err(trouble) => {
                    if said != Some(trouble) {
                        tracing::warn!(redis = %link.url, trouble = trouble.as_str(), "Redis cannot be used; probing on");
                        link.counts.troubles[trouble as usize].fetch_add(1, Ordering::Relaxed);
                        said = Some(trouble);
                    }
                    let mut state = link.lock();
                    state.pause = (state.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                }
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(link) = self.0.upgrade() {
            link.probing.store(false, Ordering::Release);
        }
    }
}
