//! Services that speak HTTP/2: what a stream's end says of its request.

use crate::support::frames::{
    CANCEL, DATA, END_HEADERS, HEADERS, INTERNAL_ERROR, NO_ERROR, OK, REFUSED_STREAM, Scripted, answer,
    frame, goes_away, reset,
};
use crate::support::{Ask, Setting};
use semel::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test(flavor = "multi_thread")]
async fn what_the_service_refuses_is_retryable_and_executes_once() {
    for way in 0..3 {
        let service = Scripted::start(move |number, stream| match (number, way) {
            (1, 0) => (reset(stream, REFUSED_STREAM), false),
            // It goes away, and says that it has not looked at this one; at once, or after having said that it will.
            (1, 1) => (goes_away(stream - 1, NO_ERROR), true),
            (1, _) => {
                ([goes_away(u32::MAX >> 1, NO_ERROR), goes_away(stream - 1, INTERNAL_ERROR)].concat(), true)
            }
            _ => (answer(stream, b"done"), false),
        })
        .await;
        let front = Setting::default().http2().before_port(service.port).await;
        let first = front.send(&Ask::payment()).await;
        assert_eq!((first.status, first.code().as_str()), (502, "idempotency_upstream_unreachable"), "{way}");
        assert_eq!(first.json()["retryable"], true);
        assert_eq!(front.record().await.state, State::FailedRetryable);
        let second = front.send(&Ask::payment()).await;
        assert_eq!((second.status, second.body.as_slice()), (200, &b"done"[..]), "{way}");
        let third = front.send(&Ask::payment()).await;
        assert!(third.is_replay() && third.body == second.body);
        assert_eq!(service.requests(), 2, "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_carried_out_is_unknown_and_never_sent_again() {
    let half =
        |stream| [frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, 0, stream, b"half of it")].concat();
    for way in 0..8 {
        let service = Scripted::start(move |_, stream| match way {
            0 => (reset(stream, CANCEL), false),
            1 => (reset(stream, INTERNAL_ERROR), false),
            2 => (reset(stream, NO_ERROR), false),
            3 => (goes_away(stream, NO_ERROR), true),
            4 => (Vec::new(), true),
            // It had begun to answer.
            5 => ([half(stream), reset(stream, REFUSED_STREAM)].concat(), false),
            6 => ([half(stream), reset(stream, NO_ERROR)].concat(), false),
            _ => (half(stream), true),
        })
        .await;
        let front = Setting::default().http2().before_port(service.port).await;
        let first = front.send(&Ask::payment()).await;
        assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"), "{way}");
        assert_eq!(front.record().await.state, State::Unknown, "{way}");
        let second = front.send(&Ask::payment()).await;
        assert_eq!((second.status, second.code().as_str()), (409, "idempotency_outcome_unknown"), "{way}");
        assert_eq!(service.requests(), 1, "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_goes_away_is_replaced_without_doubt() {
    // Every connection takes one request and says so in its answer.
    let service =
        Scripted::start(|_, stream| ([goes_away(stream, NO_ERROR), answer(stream, b"done")].concat(), true))
            .await;
    let front = Setting::default().http2().before_port(service.port).await;
    for number in 0..20 {
        let sent = front.send(&Ask::payment().key(&format!("key-of-number-{number:04}"))).await;
        assert_eq!(sent.status, 200, "{number}: {sent:?}");
    }
    assert_eq!(service.requests(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_speak_it_is_sent_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = tokio::spawn(async move {
        let mut seen = Vec::new();
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_buf(&mut seen).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await.unwrap();
        drop(stream);
        seen
    });
    let front = Setting::default().http2().before_port(port).await;
    let answer = front.send(&Ask::payment()).await;
    assert_eq!((answer.status, answer.code().as_str()), (502, "idempotency_upstream_unreachable"));
    assert_eq!(front.record().await.state, State::FailedRetryable);
    let seen = seen.await.unwrap();
    assert!(seen.starts_with(b"PRI ") && !String::from_utf8_lossy(&seen).contains("payments"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_finds_no_room_in_time_is_told_so_and_never_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    // Every connection takes its time, and then one request, which it holds.
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(400)).await;
                let handshake = h2::server::Builder::new().max_concurrent_streams(1).handshake(stream);
                let mut connection: h2::server::Connection<_, bytes::Bytes> = handshake.await.unwrap();
                let mut held = Vec::new();
                while let Some(Ok(request)) = connection.accept().await {
                    counted.fetch_add(1, SeqCst);
                    held.push(request);
                }
            });
        }
    });
    let setting = Setting::default().limits(|limits| limits.connect_timeout = Duration::from_millis(500));
    let front = Arc::new(setting.timeout(Duration::from_secs(3)).http2().before_port(port).await);
    let clients: Vec<_> = (0..8)
        .map(|number| {
            let front = Arc::clone(&front);
            tokio::spawn(async move {
                front.send(&Ask::payment().key(&format!("key-of-number-{number:04}"))).await.status
            })
        })
        .collect();
    let mut answers = Vec::new();
    for client in clients {
        answers.push(client.await.unwrap());
    }
    let count = |status| answers.iter().filter(|answer| **answer == status).count();
    assert!(count(502) > 0 && count(502) + count(504) == 8, "{answers:?}");
    // Those who were not told that nothing was sent are those who were sent, then and later.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(requests.load(SeqCst), count(504), "{answers:?}");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_time_share_a_connection() {
    use h2::server;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = server::handshake(stream).await.unwrap();
        let mut waiting = Vec::new();
        // Answers none before all are there.
        while waiting.len() < 10 {
            let (request, answer) = connection.accept().await.unwrap().unwrap();
            let uri = request.uri().clone();
            assert_eq!(uri.authority().unwrap(), "shop.example");
            waiting.push((request, answer));
        }
        for (_, mut answer) in waiting {
            answer.send_response(http::Response::new(()), true).unwrap();
        }
        // Goes on until the gateway has gone.
        while connection.accept().await.is_some() {}
        drop(listener);
    });
    let front = std::sync::Arc::new(Setting::default().http2().before_port(port).await);
    let clients: Vec<_> = (0..10)
        .map(|number| {
            let front = std::sync::Arc::clone(&front);
            tokio::spawn(async move {
                front.send(&Ask::payment().key(&format!("key-of-number-{number:04}"))).await.status
            })
        })
        .collect();
    for client in clients {
        assert_eq!(client.await.unwrap(), 200);
    }
    drop(front);
    serving.abort();
}
