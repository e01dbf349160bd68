//! Limits on what is read and on what is stored, streams, and bodies that break off.

use crate::support::{Answer, Ask, KEY, Shop};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use http_body::Frame;
use semel::State;
use semel_tower::{BodyBudget, BoxError, Protection};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

/// A body that a test hands out piece by piece.
struct Pieces(mpsc::Receiver<Result<Bytes, BoxError>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

struct Streaming {
    shop: Shop,
    pieces: mpsc::Sender<Result<Bytes, BoxError>>,
    executions: Arc<AtomicU32>,
}

/// A shop whose one more route answers with what the test hands out.
async fn streaming(media_type: &'static str, protection: Protection) -> Streaming {
    let (pieces, body) = mpsc::channel(16);
    let executions = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&executions);
    let more = move |_: &_| {
        let body = Arc::new(Mutex::new(Some(Pieces(body))));
        let answer = async move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let body = body.lock().unwrap().take().expect("one execution");
            Response::builder().header("content-type", media_type).body(Body::new(body)).unwrap()
        };
        Router::new().route("/stream", post(answer))
    };
    let shop = Shop::built(|layer| layer.protect_writes(protection).unwrap(), more).await;
    Streaming { shop, pieces, executions }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_body_up_to_the_limit_is_read_and_one_byte_more_is_refused() {
    let shop = Shop::protected(Protection { max_request_body: 5000, ..Protection::default() }).await;
    let sized = |length: usize| Ask::new("POST", "/payments").key(KEY).body("x".repeat(length));
    for ask in [sized(5001), sized(5001).chunked(), sized(3_000_000), sized(3_000_000).chunked()] {
        let answer = shop.send(&ask).await;
        assert_eq!((answer.status, answer.code().as_str()), (413, "idempotency_request_too_large"));
        assert!(answer.json()["detail"].as_str().unwrap().contains("5000"));
    }
    assert_eq!((shop.till.requests(), shop.records().await.len()), (0, 0));
    assert_eq!(shop.send(&sized(5000)).await.text(), "effect 1");
    let chunked = shop.send(&sized(5000).chunked()).await;
    assert_eq!((chunked.text(), chunked.is_replay()), ("effect 1", true), "how it is framed does not matter");
    assert_eq!(shop.till.saw().get("content-length").unwrap(), "5000");
}

/// A server lets go of an answer a moment after its client has it.
async fn until_free(memory: &BodyBudget) {
    while memory.taken() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Not counted of each body.
const FREE: usize = 32 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_share_a_memory_and_ordinary_requests_never_wait_for_it() {
    let memory = BodyBudget::new(100_000);
    let shared = memory.clone();
    let shop = Shop::layered(move |layer| layer.body_budget(shared)).await;
    let sized = |key: &str, length: usize| Ask::new("POST", "/payments").key(key).body("x".repeat(length));
    let holding = sized(KEY, FREE + 60_000).held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    assert_eq!(memory.taken(), 60_000, "it is in the hands of the service");
    for large in
        [sized("large-key-0123456789", FREE + 40_001), sized("large-key-0123456789", FREE + 40_001).chunked()]
    {
        let refused = shop.send(&large).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(refused.json()["retryable"], true);
        assert_eq!(memory.taken(), 60_000, "what was read of it is gone");
    }
    assert_eq!(
        (shop.till.requests(), shop.records().await.len()),
        (1, 1),
        "nothing was executed or remembered"
    );
    assert_eq!(shop.send(&sized("small-key-0123456789", FREE)).await.status, 201, "the others go on");
    shop.till.gate.open();
    Answer::read(holding).await;
    let large = shop.send(&sized("large-key-0123456789", FREE + 40_001)).await;
    assert_eq!(large.text(), "effect 3", "it may come again");
    until_free(&memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_is_kept_whatever_it_takes_and_its_replay_waits_for_room() {
    let memory = BodyBudget::new(1000);
    let shared = memory.clone();
    let more = |_: &_| Router::new().route("/report", post(async || "r".repeat(FREE + 1001)));
    let shop = Shop::built(move |layer| layer.body_budget(shared), more).await;
    let report = Ask::new("POST", "/report").key(KEY);
    let first = shop.send(&report).await;
    assert_eq!((first.status, first.body.len()), (200, FREE + 1001), "what has begun is finished");
    until_free(&memory).await;
    let refused = shop.send(&report).await;
    assert_eq!((refused.status, refused.is_replay()), (503, false));
    memory.set_limit(1001);
    let replay = shop.send(&report).await;
    assert_eq!((replay.is_replay(), replay.body), (true, first.body));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_up_to_the_limit_is_stored() {
    let Streaming { shop, pieces, executions } =
        streaming("text/plain", Protection { max_stored_response: 3000, ..Protection::default() }).await;
    for _ in 0..3 {
        pieces.send(Ok(Bytes::from(vec![b'x'; 1000]))).await.unwrap();
    }
    drop(pieces);
    let ask = Ask::new("POST", "/stream").key(KEY);
    let (first, replay) = (shop.send(&ask).await, shop.send(&ask).await);
    assert_eq!((first.body.len(), &replay.body, replay.is_replay()), (3000, &first.body, true));
    assert_eq!(executions.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_over_the_limit_goes_whole_to_the_first_client_and_is_never_executed_again() {
    let Streaming { shop, pieces, executions } =
        streaming("text/plain", Protection { max_stored_response: 3000, ..Protection::default() }).await;
    let whole: Vec<u8> = (0..10_000_u32).map(|number| (number % 251) as u8).collect();
    for piece in whole.chunks(1000) {
        pieces.send(Ok(Bytes::copy_from_slice(piece))).await.unwrap();
    }
    drop(pieces);
    let ask = Ask::new("POST", "/stream").key(KEY);
    let first = shop.send(&ask).await;
    assert_eq!((first.status, &first.body[..]), (200, &whole[..]));
    for _ in 0..2 {
        let retry = shop.send(&ask).await;
        assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_response_not_stored"));
        assert_eq!(retry.operation_id(), first.operation_id());
        assert_eq!(retry.json()["upstream_status"], 200);
    }
    assert_eq!(executions.load(Ordering::SeqCst), 1);
    assert_eq!(shop.record().await.state, State::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_is_completed_first_and_passed_on_as_it_comes() {
    let Streaming { shop, pieces, executions } =
        streaming("text/event-stream; charset=utf-8", Protection::default()).await;
    let ask = Ask::new("POST", "/stream").key(KEY);
    let mut line = ask.begin(&shop.server).await;
    pieces.send(Ok(Bytes::from_static(b"data: one\n\n"))).await.unwrap();
    // The first event is there while the stream is still open.
    let mut read = Vec::new();
    while !read.windows(9).any(|window| window == b"data: one") {
        assert_ne!(line.read_buf(&mut read).await.unwrap(), 0, "the stream ended");
    }
    let retry = shop.send(&ask).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_response_not_stored"));
    pieces.send(Ok(Bytes::from_static(b"data: two\n\n"))).await.unwrap();
    drop(pieces);
    line.read_to_end(&mut read).await.unwrap();
    assert!(read.windows(9).any(|window| window == b"data: two"));
    assert_eq!(executions.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_breaks_off_is_unknown() {
    let Streaming { shop, pieces, executions } = streaming("text/plain", Protection::default()).await;
    let ask = Ask::new("POST", "/stream").key(KEY);
    let line = ask.begin(&shop.server).await;
    pieces.send(Ok(Bytes::from_static(b"half of"))).await.unwrap();
    pieces.send(Err("as told".into())).await.unwrap();
    let first = Answer::read(line).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    assert_eq!(first.json()["upstream_status"], 200);
    let retry = shop.send(&ask).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!(executions.load(Ordering::SeqCst), 1);
}
