//! What a protected request takes of the memory: how many allocations, and how often a body is copied.
//!
//! Alone in a process, since it counts every allocation of it: the layer's, the engine's and those of the SQLite store's threads. What
//! SQLite itself allocates is C, and not counted.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail the test, and what was counted is printed"
)]

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use semel::{Engine, EngineOptions};
use semel_sqlite::SqliteOptions;
use semel_tower::{Body, Idempotency, IdempotencyLayer};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::{Layer as _, Service, ServiceExt as _};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SMALL: usize = 1 << 10;
const LARGE: usize = 100 << 10;
/// As much as hyper reads at once, at most.
const FRAME: usize = 16 << 10;

/// How many requests are counted together, so that a table that grows now and then weighs little.
const REQUESTS: usize = 64;

/// What a new operation and a replay may take, with a small body each: some more than they do. Whoever needs more finds out here, and
/// says what for.
const MOST_ALLOCATIONS: (usize, usize) = (78, 47);

/// What may be allocated beside a body, over and above what a request with a small one takes.
const BESIDE: usize = 8 << 10;

/// What one request takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    allocations: usize,
    bytes: usize,
}

/// A service whose answer is there already.
#[derive(Clone)]
struct Answering(Bytes);

impl Service<Request<Body>> for Answering {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let response = Response::builder().status(201).header("content-type", "application/json");
        std::future::ready(Ok(response.body(Body::from(self.0.clone())).unwrap()))
    }
}

/// A body as it comes from a connection: in pieces, each of which was allocated by whoever read it.
struct Pieces(VecDeque<Bytes>);

impl Pieces {
    fn of(body: &Bytes) -> Self {
        Self((0..body.len()).step_by(FRAME).map(|at| body.slice(at..body.len().min(at + FRAME))).collect())
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

fn request(key: usize, body: &Bytes) -> Request<Body> {
    Request::post("/payments")
        .header("idempotency-key", format!("key-of-a-payment-{key:08}"))
        .header("content-type", "application/json")
        .body(if body.len() > FRAME { Body::stream(Pieces::of(body)) } else { Body::from(body.clone()) })
        .unwrap()
}

/// A JSON text of about this length: an array of amounts.
fn json(length: usize) -> Bytes {
    let mut text = String::from("{\"amounts\":[\"10.00\"");
    while text.len() + 10 < length {
        text.push_str(",\"10.00\"");
    }
    (text + "]}").into()
}

struct Shop {
    layer: IdempotencyLayer,
    keys: usize,
}

impl Shop {
    /// What each of these requests takes, made and answered beforehand and afterwards as far as that is the network's business.
    async fn taken(&self, requests: Vec<Request<Body>>, answer: &Bytes) -> Taken {
        let service: Idempotency<Answering> = self.layer.layer(Answering(answer.clone()));
        let count = requests.len();
        let mut answers = Vec::with_capacity(count);
        let region = Region::new(ALLOCATOR);
        for request in requests {
            answers.push(service.clone().oneshot(request).await.unwrap());
        }
        let taken = region.change();
        for response in answers {
            assert_eq!(response.status(), 201);
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), *answer);
        }
        let grown = usize::try_from(taken.bytes_reallocated).unwrap_or(0);
        Taken { allocations: taken.allocations / count, bytes: (taken.bytes_allocated + grown) / count }
    }

    /// What a new operation takes, and what its retry does.
    async fn operation(&mut self, body: &Bytes, answer: &Bytes) -> (Taken, Taken) {
        self.keys += REQUESTS;
        let requests = || (0..REQUESTS).map(|number| request(self.keys + number, body)).collect();
        let new = self.taken(requests(), answer).await;
        (new, self.taken(requests(), answer).await)
    }
}

#[tokio::test]
async fn a_body_is_copied_once_at_most_and_a_request_allocates_little() {
    let directory = tempfile::tempdir().unwrap();
    // How long the disk takes has nothing to do with what is counted.
    let options = SqliteOptions::new().dangerously_without_fsync();
    let store = options.open(directory.path().join("semel.db")).await.unwrap();
    let options = EngineOptions { store_timeout: Duration::from_secs(60), ..EngineOptions::default() };
    let engine = Engine::with_options(Arc::new(store), options);
    let mut shop = Shop { layer: IdempotencyLayer::with_engine(engine), keys: 0 };
    let (small, large) = (json(SMALL), json(LARGE));
    // Tables have grown and statements are prepared after these.
    shop.operation(&small, &small).await;

    let (new, replay) = shop.operation(&small, &small).await;
    println!("1 KB asked and answered: new {new:?}, replay {replay:?}");
    assert!(new.allocations <= MOST_ALLOCATIONS.0, "a new operation: {new:?}");
    assert!(replay.allocations <= MOST_ALLOCATIONS.1, "a replay: {replay:?}");

    let (asked, again) = shop.operation(&large, &small).await;
    println!("100 KB asked: new {asked:?}, replay {again:?}");
    for (taken, small) in [(asked, new), (again, replay)] {
        // It comes in pieces and is hashed in one: that is the copy. It is neither spelt out nor copied to be hashed or passed on.
        let more = taken.bytes - small.bytes;
        assert!((LARGE - SMALL - BESIDE..LARGE + BESIDE).contains(&more), "a request of 100 KB: {taken:?}");
    }

    let (answered, replayed) = shop.operation(&small, &large).await;
    println!("100 KB answered: new {answered:?}, replay {replayed:?}");
    // What the service answered is stored and passed on as it is.
    assert!(answered.bytes < new.bytes + BESIDE, "an answer of 100 KB: {answered:?}");
    // A replay is copied out of the store, once.
    assert!(replayed.bytes < replay.bytes + LARGE + BESIDE, "a replay of 100 KB: {replayed:?}");
}
