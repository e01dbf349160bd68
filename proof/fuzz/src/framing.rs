//! The framing of HTTP/1.1: what the gateway's guard lets through, and what the HTTP library makes of that.
//!
//! The first byte of the input is the size of the pieces in which the rest comes in.

use crate::independent::framing::{Connection, End, read};
use crate::under_test::framing::{Framing, Position, Violation};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Short enough to be met, long enough for every request that means something.
const LONGEST_LINE: usize = 300;

/// As the gateway's socket ends a head that is refused.
const POISON: &[u8] = b"\0\r\n\r\n";

/// The verdict does not depend on how the bytes come in, it is that of a strict reading, and the HTTP library finds no request but those
/// of the strict reading in what is let through.
pub fn target(data: &[u8]) {
    let Some((size, bytes)) = data.split_first() else { return };
    let size = usize::from(*size).max(1);
    let strict = read(bytes, LONGEST_LINE);
    let (end, passing) = guarded(bytes, size);
    let shown = || String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(end, strict.end, "in pieces of {size}: {:?}", shown());
    assert_eq!(guarded(bytes, bytes.len().max(1)).0, strict.end, "in one piece: {:?}", shown());
    if bytes.len() <= 200 {
        assert_eq!(guarded(bytes, 1).0, strict.end, "byte by byte: {:?}", shown());
    }
    assert!(passing <= bytes.len());
    understood(&strict, &bytes[..passing], size);
}

/// How the guard finds the bytes to end, and how many it lets through.
fn guarded(bytes: &[u8], size: usize) -> (End, usize) {
    let mut framing = Framing::new(LONGEST_LINE);
    let mut passing = 0;
    for piece in bytes.chunks(size) {
        if let Err(refused) = framing.inspect(piece) {
            assert!(refused.passing <= piece.len());
            return (End::Refused(rule(refused.violation)), passing + refused.passing);
        }
        passing += piece.len();
    }
    let end = match framing.position() {
        Position::Boundary => End::Boundary,
        Position::Head => End::Head,
        Position::Body => End::Body,
    };
    (end, passing)
}

fn rule(violation: Violation) -> &'static str {
    match violation {
        Violation::LineEnd => "line end",
        Violation::LineLength => "line length",
        Violation::EmptyLines => "empty lines",
        Violation::Fragment => "fragment",
        Violation::Folded => "folded",
        Violation::Length => "length",
        Violation::SeveralLengths => "several lengths",
        Violation::LengthAndEncoding => "length and encoding",
        Violation::Encoding => "encoding",
        Violation::EncodingInHttp10 => "encoding in 1.0",
        Violation::ChunkSize => "chunk size",
        Violation::ChunkEnd => "chunk end",
    }
}

/// A request as the HTTP library hands it out.
struct Seen {
    method: String,
    target: String,
    /// None: it broke off.
    body: Option<Bytes>,
}

fn understood(strict: &Connection, passing: &[u8], size: usize) {
    let broken_off = strict.requests.last().is_some_and(|request| !request.complete);
    let mut input = passing.to_vec();
    if matches!(strict.end, End::Refused(_)) && !broken_off {
        input.extend_from_slice(POISON);
    }
    let seen = served(input, size);
    assert!(seen.len() <= strict.requests.len(), "something was taken for a request: {}", seen.len());
    for (seen, request) in seen.iter().zip(&strict.requests) {
        let line = String::from_utf8_lossy(&request.line);
        let asked = line.split(' ').collect::<Vec<_>>();
        assert_eq!(asked.len(), 3, "{line:?} was read as a request line");
        assert_eq!(seen.method, asked[0], "the method of {line:?}");
        assert_eq!(seen.target, path_and_query(asked[1]), "the target of {line:?}");
        if let Some(body) = &seen.body {
            assert!(request.complete, "{line:?}: half a body was taken for a whole one");
            assert_eq!(body, &request.body, "{line:?}");
        }
    }
}

/// What a service is asked for by a request's target (RFC 9112, 3.2). A whole URI without a path asks for `/`; an authority by itself has
/// neither path nor query.
fn path_and_query(target: &str) -> String {
    if target.starts_with('/') || target == "*" {
        return target.to_owned();
    }
    let Some((_, rest)) = target.split_once("://") else { return String::new() };
    match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('?') => format!("/{}", &rest[at..]),
        Some(at) => rest[at..].to_owned(),
        None => "/".to_owned(),
    }
}

/// The requests that the HTTP library finds.
fn served(input: Vec<u8>, size: usize) -> Vec<Seen> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let service = service_fn(|request: Request<Incoming>| {
        let seen = Rc::clone(&seen);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.ok().map(|body| body.to_bytes());
            let target = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
            seen.borrow_mut().push(Seen { method: parts.method.to_string(), target, body });
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let mut http = http1::Builder::new();
    http.header_read_timeout(None);
    let mut connection = pin!(http.serve_connection(Wire { input, at: 0, size }, service));
    let mut context = Context::from_waker(Waker::noop());
    // The wire is always ready: the connection only pauses to let others have their turn.
    for _ in 0..10_000 {
        if connection.as_mut().poll(&mut context).is_ready() {
            break;
        }
    }
    seen.take()
}

/// Bytes that come in pieces, and a place for those that nobody reads.
struct Wire {
    input: Vec<u8>,
    at: usize,
    size: usize,
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let end = self.input.len().min(self.at + self.size.min(buffer.remaining()));
        buffer.put_slice(&self.input[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
