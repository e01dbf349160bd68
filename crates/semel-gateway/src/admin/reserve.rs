//! The connections of the admin listener, some of which nothing but a probe can take.
//!
//! A half-sent head cannot be told from a probe until it is complete. So every connection is accepted, and when there are too many, one that has no
//! work to do is closed: of the client that has most of them, the oldest. Work is anything but a probe, and there is never so much of it that no
//! connection could be closed.

use crate::capacity::Party;
use crate::capacity::{Holder, Permit, Refused, Shares};
use axum::body::{Body, Bytes};
use http::Response;
use http_body::{Frame, SizeHint};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Connections at once. It serves a few people, probes and scrapers.
const CONNECTIONS: usize = 64;

/// Requests at once that are not probes. The other connections are there for probes.
const WORK: usize = 48;

/// The connections, and what is done on them.
pub(super) struct Reserve {
    connections: Arc<Shares<Arc<State>>>,
    work: Arc<Semaphore>,
}

/// A connection, until it is dropped. Clones are the same.
#[derive(Clone)]
pub(super) struct Connection {
    state: Arc<State>,
    work: Arc<Semaphore>,
    _permit: Arc<Permit<Arc<State>>>,
}

#[derive(Default)]
pub(super) struct State {
    works: AtomicBool,
    closed: Notify,
}

impl Holder for Arc<State> {
    fn is_revocable(&self) -> bool {
        !self.works.load(SeqCst)
    }

    fn revoke(&self) {
        self.closed.notify_one();
    }
}

impl Reserve {
    pub(super) fn new() -> Self {
        Self { connections: Shares::new(CONNECTIONS), work: Arc::new(Semaphore::new(WORK)) }
    }

    /// A place for a connection.
    pub(super) fn open(&self, peer: SocketAddr) -> Result<Connection, Refused> {
        let state = Arc::new(State::default());
        let permit = self.connections.take_or_replace(Party::of(peer.ip()), Arc::clone(&state))?;
        Ok(Connection { state, work: Arc::clone(&self.work), _permit: Arc::new(permit) })
    }
}

impl Connection {
    /// Waits until the connection has to make room for another.
    pub(super) async fn makes_room(&self) {
        self.state.closed.notified().await;
    }

    /// Work begins on it; `None` where there is too much of it already.
    pub(super) fn work(&self) -> Option<Work> {
        let permit = Arc::clone(&self.work).try_acquire_owned().ok()?;
        self.state.works.store(true, SeqCst);
        Some(Work { state: Arc::clone(&self.state), _permit: permit })
    }
}

/// Work on a connection, until it is dropped.
pub(super) struct Work {
    state: Arc<State>,
    _permit: OwnedSemaphorePermit,
}

impl Work {
    /// It lasts until the answer is sent.
    pub(super) fn until_sent(self, answer: Response<Body>) -> Response<Body> {
        answer.map(|body| Body::new(Sent { body, _work: self }))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.state.works.store(false, SeqCst);
    }
}

struct Sent {
    body: Body,
    _work: Work,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
