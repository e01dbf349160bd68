//! The connections to a service that speaks HTTP/2.

use super::request_body::Piece;
use crate::limits::Limits;
use crate::upstream::dial::Dial;
use crate::upstream::socket::Traffic;
use h2::client::{Builder, SendRequest};
use h2::{Ping, PingPong};
use semel_tower::BoxError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Streams on one connection at most, even if the service would take more: past that another connection shares the load.
const STREAMS: usize = 100;
/// What the service may send before it is read, on one stream and on all together.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The largest head of an answer.
const HEADER_BYTES: u32 = 256 * 1024;
/// How often it is looked at a connection; how long the service may take to give a sign of life if nothing else came from it.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How many connections may turn out to be over before a request is given up on, of which nothing was sent.
const TRIES: usize = 3;

/// All connections.
pub(in crate::upstream) struct Http2Pool {
    dial: Dial,
    idle_timeout: Duration,
    give_up: Duration,
    open: Mutex<Vec<Arc<Http2Connection>>>,
    /// One connects for all who want to; when and why it failed last.
    connecting: tokio::sync::Mutex<Option<(Instant, Arc<str>)>>,
}

/// One connection.
struct Http2Connection {
    sender: SendRequest<Piece>,
    traffic: Arc<Traffic>,
    /// No more streams are to begin on it.
    is_over: AtomicBool,
    load: Mutex<Load>,
}

struct Load {
    streams: usize,
    /// When the last stream ended.
    idle_since: Instant,
}

/// One stream's place on a connection.
pub(super) struct StreamPermit(Arc<Http2Connection>);

impl Http2Pool {
    pub(in crate::upstream) fn new(dial: Dial, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            dial,
            idle_timeout: limits.upstream_idle_timeout,
            give_up: limits.upstream_give_up,
            open: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn give_up(&self) -> Duration {
        self.give_up
    }

    /// A place on a connection that was used within `freshness`, or on a new one. Whoever has none in time is sent nowhere: after that
    /// its operation may be in doubt, and somebody about to settle it as never executed.
    pub(super) async fn place(
        self: &Arc<Self>,
        freshness: Duration,
    ) -> Result<(SendRequest<Piece>, StreamPermit), BoxError> {
        // As long as connecting may take, by which the configuration measures the time that operations have.
        tokio::time::timeout(2 * self.dial.timeout, self.find_stream(freshness)).await.unwrap_or_else(|_| {
            Err("all connections to the service are full, and opening new ones takes too long".into())
        })
    }

    async fn find_stream(
        self: &Arc<Self>,
        freshness: Duration,
    ) -> Result<(SendRequest<Piece>, StreamPermit), BoxError> {
        let arrived = Instant::now();
        for _ in 0..TRIES {
            let place = match self.reserve(freshness) {
                Some(place) => place,
                None => {
                    let mut failed = self.connecting.lock().await;
                    match (self.reserve(freshness), &*failed) {
                        (Some(place), _) => place,
                        // Whoever went before has tried meanwhile: trying once more for each would take for ever.
                        (None, Some((when, error))) if *when > arrived => return Err((**error).into()),
                        (None, _) => match self.connect().await {
                            Ok(place) => place,
                            Err(error) => {
                                *failed = Some((Instant::now(), error.to_string().into()));
                                return Err(error);
                            }
                        },
                    }
                }
            };
            match place.0.sender.clone().ready().await {
                Ok(sender) => return Ok((sender, place)),
                // The service closes it: it is over for new streams, and nothing was sent.
                Err(error) => {
                    tracing::debug!(%error, "connection to the service closed");
                    place.leave();
                }
            }
        }
        Err("the service closes new connections".into())
    }

    fn reserve(&self, freshness: Duration) -> Option<StreamPermit> {
        let mut open = self.open();
        open.retain(|connection| {
            !connection.is_over.load(Relaxed) && !connection.has_expired(self.idle_timeout)
        });
        open.iter().find_map(|connection| {
            let mut load = connection.load();
            let most = connection.sender.current_max_send_streams().min(STREAMS);
            let is_fresh = load.streams > 0 || load.idle_since.elapsed() <= freshness;
            (is_fresh && load.streams < most).then(|| {
                load.streams += 1;
                StreamPermit(Arc::clone(connection))
            })
        })
    }

    /// Opens a connection, with a place on it.
    async fn connect(self: &Arc<Self>) -> Result<StreamPermit, BoxError> {
        let (stream, traffic) = self.dial.connect().await?;
        let handshake = Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_BYTES)
            .handshake(stream);
        let (sender, mut driver) = handshake.await?;
        let mut pings = driver.ping_pong();
        let connection = Arc::new(Http2Connection {
            sender,
            traffic,
            is_over: AtomicBool::new(false),
            load: Mutex::new(Load { streams: 1, idle_since: Instant::now() }),
        });
        let driven = Arc::downgrade(&connection);
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection to the service ended");
            }
            if let Some(connection) = driven.upgrade() {
                connection.is_over.store(true, Relaxed);
            }
        });
        // Whoever answers speaks HTTP/2. Requests sent to somebody else would be in doubt, each of them.
        if let Some(pings) = &mut pings {
            tokio::time::timeout(self.dial.timeout, pings.ping(Ping::opaque()))
                .await
                .map_err(|_| "the service does not answer in HTTP/2")??;
        }
        tokio::spawn(watch(Arc::downgrade(self), Arc::downgrade(&connection), pings));
        self.open().push(Arc::clone(&connection));
        Ok(StreamPermit(connection))
    }

    fn tidy(&self) {
        let over: Vec<_> = {
            let mut open = self.open();
            let (over, kept) = open.drain(..).partition(|connection| {
                connection.is_over.load(Relaxed) || connection.has_expired(self.idle_timeout)
            });
            *open = kept;
            over
        };
        // Closing takes a moment, and nobody else is to wait for it.
        drop(over);
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Http2Connection>>> {
        // Connections are only moved under the lock: a poisoned one is as good as any.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Http2Connection {
    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_expired(&self, after: Duration) -> bool {
        let load = self.load();
        load.streams == 0 && load.idle_since.elapsed() > after
    }
}

impl StreamPermit {
    /// How many bytes the system has taken of what goes over the connection.
    pub(super) fn written(&self) -> u64 {
        self.0.traffic.written()
    }

    /// Ready while the system takes what goes over the connection.
    pub(super) fn poll_flowing(&self, context: &mut Context<'_>) -> Poll<()> {
        self.0.traffic.poll_flowing(context)
    }

    /// Leaves a connection that is over.
    pub(super) fn leave(self) {
        self.0.is_over.store(true, Relaxed);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut load = self.0.load();
        load.streams -= 1;
        load.idle_since = Instant::now();
    }
}

/// Looks at a connection every so often. On one whose service is silent nothing more is begun; what is there may still be answered.
async fn watch(lines: Weak<Http2Pool>, connection: Weak<Http2Connection>, mut pings: Option<PingPong>) {
    let mut read = 0;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(lines) = lines.upgrade() else { return };
        lines.tidy();
        drop(lines);
        let Some(used) = connection.upgrade() else { return };
        let (now, is_used) = (used.traffic.read(), used.load().streams > 0);
        drop(used);
        if is_used && now == read {
            let Some(pings) = &mut pings else { continue };
            let answered = tokio::time::timeout(LOOK_EVERY, pings.ping(Ping::opaque())).await;
            if answered.is_err()
                && let Some(silent) = connection.upgrade()
            {
                tracing::warn!("HTTP/2 PING to the service timed out; new requests use other connections");
                silent.is_over.store(true, Relaxed);
            }
        }
        read = now;
    }
}
