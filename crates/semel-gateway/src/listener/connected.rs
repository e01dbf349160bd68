//! A client's connection among all of them: it may have to make room for others.

use super::request_state::RequestState;
use super::streams::Streams;
use crate::capacity::Holder;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// What is known of a connection from outside. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Connected(Arc<Shared>);

#[derive(Default)]
struct Shared {
    requests: OnceLock<Requests>,
    closed: Notify,
}

/// Where the requests of a connection are known.
enum Requests {
    Http1(RequestState),
    Http2(Arc<Streams>),
}

impl Connected {
    pub(super) fn speaks_http1(&self, state: &RequestState) {
        let _known = self.0.requests.set(Requests::Http1(state.clone()));
    }

    pub(super) fn speaks_http2(&self, streams: &Arc<Streams>) {
        let _known = self.0.requests.set(Requests::Http2(Arc::clone(streams)));
    }

    /// Waits until it has to make room for another.
    pub(super) async fn makes_room(&self) {
        self.0.closed.notified().await;
    }
}

impl Holder for Connected {
    /// A connection without a request: it is idle, or its head has not arrived.
    fn is_revocable(&self) -> bool {
        match self.0.requests.get() {
            None => true,
            Some(Requests::Http1(state)) => !state.is_under_way(),
            Some(Requests::Http2(streams)) => streams.is_idle(),
        }
    }

    fn revoke(&self) {
        self.0.closed.notify_one();
    }
}
