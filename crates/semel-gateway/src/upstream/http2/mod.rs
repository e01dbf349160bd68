//! HTTP/2 to the service: many requests on one connection, each a stream of its own.
//!
//! The library of hyper is used without hyper: hyper tells of an error, but not always of which stream. Here what became of a stream
//! decides whether its request can have been carried out.
//!
//! - `pool.rs`: the connections, and how many streams are on each;
//! - `request_body.rs`: a request's body on its way;
//! - `response_body.rs`: an answer as it comes.

mod pool;
mod request_body;
mod response_body;

pub(super) use pool::Http2Pool;
pub(super) use response_body::StreamBody;

use super::failure::{Failure, GaveUp};
use super::while_it_lasts;
use crate::deadline_timer::DeadlineTimer;
use crate::listener::RequestBody;
use h2::Reason;
use http::{Request, Response};
use http_body::Body as _;
use pool::StreamPermit;
use request_body::Sending;
use semel::Right;
use semel_tower::BoxError;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

impl Http2Pool {
    /// Sends a request on a connection that was used within `freshness`, or a new one, and waits for the head of its answer. By a right that
    /// ends on the way, what is left of it is not sent.
    pub(super) async fn send(
        self: &Arc<Self>,
        request: Request<RequestBody>,
        freshness: Duration,
        right: Option<&Right>,
    ) -> Result<Response<StreamBody>, Failure> {
        let placing = while_it_lasts(right, Box::pin(self.place(freshness)));
        let (mut sender, place) = placing.await.map_err(Failure::NotSent)?;
        if let Some(right) = right {
            // What is sent on a connection that takes nothing waits in a queue, out of reach of who has the right to send it.
            let flowing = poll_fn(|context| place.poll_flowing(context).map(Ok));
            while_it_lasts(Some(right), flowing).await.map_err(Failure::NotSent)?;
            right.check().map_err(|ended| Failure::NotSent(ended.into()))?;
        }
        let before = place.written();
        let (parts, mut body) = request.into_parts();
        let pieces = Arc::new(AtomicU64::new(0));
        body.count(&pieces);
        let ends_with_head = body.is_end_stream();
        let request = Request::from_parts(parts, ());
        let (mut response, stream) = match sender.send_request(request, ends_with_head) {
            Ok(begun) => begun,
            // It never became a stream.
            Err(error) => {
                place.leave();
                return Err(Failure::NotSent(error.into()));
            }
        };
        let mut sending = Sending::new(body, stream, ends_with_head, right);
        let mut silence = Silence::new(pieces, self.give_up());
        let answered = poll_fn(|context| {
            if let Poll::Ready(Err(error)) = sending.poll(context) {
                return Poll::Ready(Err(Failure::Sent(error)));
            }
            if let Poll::Ready(answer) = Pin::new(&mut response).poll(context) {
                return Poll::Ready(answer.map_err(|error| what_became_of_it(&place, before, error)));
            }
            silence.poll(context).map(|gave_up| Err(Failure::Sent(gave_up.into())))
        });
        let answer = answered.await?;
        Ok(answer.map(|body| StreamBody::new(body, sending, silence, place)))
    }
}

/// Whether a request can have been carried out whose stream ended so.
fn what_became_of_it(place: &StreamPermit, before: u64, error: h2::Error) -> Failure {
    // RFC 9113, section 8.7: a server that refuses a stream, or goes away and names an earlier one as its last, has not done
    // anything with it. The library gives the latter error to the streams after that one alone.
    let was_refused = error.is_remote()
        && (error.is_go_away() || (error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM)));
    let error: BoxError = error.into();
    if was_refused || place.written() == before { Failure::NotSent(error) } else { Failure::Sent(error) }
}

/// How long nothing of an exchange has passed.
struct Silence {
    /// Goes up with every piece of the request.
    pieces: Arc<AtomicU64>,
    seen: u64,
    since: Instant,
    timer: DeadlineTimer,
    give_up: Duration,
}

impl Silence {
    fn new(pieces: Arc<AtomicU64>, give_up: Duration) -> Self {
        Self { pieces, seen: 0, since: Instant::now(), timer: DeadlineTimer::default(), give_up }
    }

    /// Something came.
    fn broken(&mut self) {
        self.since = Instant::now();
    }

    /// Ready once it has lasted too long.
    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<GaveUp> {
        let pieces = self.pieces.load(std::sync::atomic::Ordering::Relaxed);
        if self.seen != pieces {
            self.seen = pieces;
            self.broken();
        }
        self.timer.poll_until(context, self.since + self.give_up).map(|()| GaveUp(self.give_up))
    }
}
