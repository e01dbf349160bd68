//! Answers of several messages, or too long to be stored: the client has the messages as they come, and the end of the call once its
//! outcome is stored.

use crate::body::{Body, BoxError};
use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::{mpsc, oneshot};

/// How many pieces wait for a client that is slow.
const WAITING: usize = 4;

/// The service's side of an answer that is passed on.
pub(crate) struct Passing {
    pieces: mpsc::Sender<Bytes>,
    end: oneshot::Sender<HeaderMap>,
}

/// The client's side of it.
struct Passed {
    pieces: mpsc::Receiver<Bytes>,
    end: Option<oneshot::Receiver<HeaderMap>>,
}

/// Both sides of an answer that is passed on.
pub(crate) fn passing() -> (Passing, Body) {
    let (pieces, next) = mpsc::channel(WAITING);
    let (end, ended) = oneshot::channel();
    (Passing { pieces, end }, Body::stream(Passed { pieces: next, end: Some(ended) }))
}

/// Reads a body to its end, and returns its trailers. Its pieces go to the client until the client hangs up; then they are dropped.
///
/// # Errors
/// It broke off.
pub(crate) async fn pass_on(
    body: &mut Body,
    mut client: Option<&Passing>,
) -> Result<Option<Box<HeaderMap>>, BoxError> {
    let mut trailers = None;
    while let Some(frame) = body.frame().await.transpose()? {
        match frame.into_data() {
            Ok(bytes) => {
                if let Some(to) = client
                    && to.pieces.send(bytes).await.is_err()
                {
                    // How the call ends is wanted all the same.
                    client = None;
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok().map(Box::new),
        }
    }
    Ok(trailers)
}

impl Passing {
    /// Ends the client's answer as this one does, which has nothing but its end: trailers, or a head that says it all.
    pub(crate) async fn end(self, response: Response<Body>) {
        let (head, body) = response.into_parts();
        let trailers = match body.collect().await {
            Ok(collected) => collected.trailers().cloned(),
            Err(_) => None,
        };
        // A client that has hung up gets the same when it comes back.
        let _ = self.end.send(trailers.unwrap_or(head.headers));
    }
}

impl http_body::Body for Passed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(bytes) = ready!(self.pieces.poll_recv(context)) {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some(end) = &mut self.end else { return Poll::Ready(None) };
        let ended = ready!(Pin::new(end).poll(context));
        self.end = None;
        // Without a word of how it ended, it broke off.
        Poll::Ready(Some(ended.map(Frame::trailers).map_err(Into::into)))
    }
}
