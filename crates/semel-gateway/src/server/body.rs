//! The bodies of a request and of its answer.

use super::link::{BodyFailure, Link, UnderWay};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use semel_tower::BoxError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A request's body: as it comes in, or as the layer has read it.
pub struct RequestBody(Kind);

enum Kind {
    Incoming {
        body: Incoming,
        /// How much more may come.
        left: Option<u64>,
        link: Link,
    },
    Whole(Option<Bytes>),
}

/// A body that is passed on unprotected got too long.
#[derive(Debug, thiserror::Error)]
#[error("the request body is longer than what is passed on")]
struct TooLong;

impl RequestBody {
    pub(crate) fn incoming(body: Incoming, link: Link) -> Self {
        // hyper knows of bodies that are none: they need no following.
        Self(if body.is_end_stream() { Kind::Whole(None) } else { Kind::Incoming { body, left: None, link } })
    }

    /// Says how long it may be. What the layer has read has a limit of its own.
    pub(crate) fn limit(&mut self, most: Option<u64>) {
        if let Kind::Incoming { left, .. } = &mut self.0 {
            *left = most;
        }
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Incoming { body, left, link } => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                if let (Some(left), Some(Ok(frame))) = (left, &frame)
                    && let Some(bytes) = frame.data_ref()
                {
                    let Some(rest) = left.checked_sub(bytes.len() as u64) else {
                        link.fail(BodyFailure::TooLong);
                        return Poll::Ready(Some(Err(TooLong.into())));
                    };
                    *left = rest;
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Incoming { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Incoming { body, .. } => body.size_hint(),
        }
    }
}

/// An answer's body. The request is under way until it is gone.
pub(crate) struct AnswerBody {
    body: semel_tower::Body,
    _under_way: UnderWay,
}

impl AnswerBody {
    pub(crate) fn new(body: semel_tower::Body, under_way: UnderWay) -> Self {
        under_way.answered();
        Self { body, _under_way: under_way }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
