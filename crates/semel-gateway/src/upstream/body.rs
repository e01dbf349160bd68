//! The body of an answer of the service's.

use super::http1::{Connection, Pool};
use super::http2::StreamBody;
use crate::headers::clean_answered_trailers;
use crate::listener::InFlight;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use semel_tower::BoxError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of an answer: the service's as it comes, or one of the gateway's own.
pub struct UpstreamBody {
    kind: Source,
    /// Whether trailers that are for us alone stay in it.
    keeps_ours: bool,
    _in_flight: Option<Arc<InFlight>>,
}

enum Source {
    Whole(Option<Bytes>),
    /// Nothing more has to be read for it.
    Received(Incoming),
    /// Its connection has more to read. Dropped with it, unless it ends well.
    Coming(Incoming, Option<Box<Connection>>, Arc<Pool>),
    /// Over a stream among others.
    Stream(Box<StreamBody>),
}

impl UpstreamBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self {
            kind: Source::Whole((!bytes.is_empty()).then_some(bytes)),
            keeps_ours: false,
            _in_flight: None,
        }
    }

    pub(super) fn stream(body: StreamBody, in_flight: Option<Arc<InFlight>>) -> Self {
        Self { kind: Source::Stream(Box::new(body)), keeps_ours: false, _in_flight: in_flight }
    }

    pub(super) fn coming(
        body: Incoming,
        mut connection: Box<Connection>,
        pool: &Arc<Pool>,
        in_flight: Option<Arc<InFlight>>,
    ) -> Self {
        let kind = if connection.is_idle() {
            pool.keep(connection);
            Source::Received(body)
        } else {
            Source::Coming(body, Some(connection), Arc::clone(pool))
        };
        Self { kind, keeps_ours: false, _in_flight: in_flight }
    }

    /// Leaves trailers that are for us alone to whoever reads it.
    pub(super) fn keep_ours(&mut self) {
        self.keeps_ours = true;
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut frame = ready!(self.as_mut().poll_any(context));
        if let Some(Ok(frame)) = &mut frame
            && !self.keeps_ours
            && let Some(trailers) = frame.trailers_mut()
        {
            clean_answered_trailers(trailers);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Source::Whole(bytes) => bytes.is_none(),
            Source::Received(body) | Source::Coming(body, ..) => body.is_end_stream(),
            Source::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Source::Received(body) | Source::Coming(body, ..) => body.size_hint(),
            Source::Stream(body) => body.size_hint(),
        }
    }
}

impl UpstreamBody {
    fn poll_any(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.kind {
            Source::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Source::Received(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Source::Stream(body) => Pin::new(&mut **body).poll_frame(context),
            Source::Coming(body, connection, pool) => {
                if let Some(connection) = connection {
                    connection.drive(context);
                }
                let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
                    return match connection {
                        Some(silent) => silent.poll_silence(context).map(|gave_up| Some(Err(gave_up.into()))),
                        None => Poll::Pending,
                    };
                };
                let has_ended = frame.is_none() || body.is_end_stream();
                if has_ended && let Some(connection) = connection.take() {
                    pool.put(connection);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }
}
