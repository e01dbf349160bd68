//! Streams of HTTP/2 whose body is not as long as they say, on routes that are not protected.

use crate::support::http2::{Http2, whole};
use crate::support::{Client, Front, Service, Setting};
use bytes::Bytes;
use http::Request;
use std::time::Duration;
use tokio::net::TcpListener;

/// The first request that comes to a service, when its head is there.
async fn begun(listener: &TcpListener) -> (Client, String) {
    let mut connection = Client::of(listener.accept().await.unwrap().0);
    let head = connection.head_text().await;
    (connection, head)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_as_long_as_it_says_is_never_whole_to_the_service() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = Setting::default().before_port(listener.local_addr().unwrap().port()).await;
    let client = Http2::connect(front.address).await;
    let upload = |length: &str| {
        Request::put("http://shop.example/upload").header("content-length", length).body(()).unwrap()
    };
    // Said to be empty: nothing is sent on, so that what comes to the service first is the next request.
    let (answering, mut body) = client.begin(upload("0"), false).await;
    body.send_data(Bytes::from_static(b"hello"), true).unwrap();
    let refused = tokio::time::timeout(Duration::from_secs(20), answering).await.unwrap();
    assert!(refused.map_or(true, |answer| answer.status() == 400));
    for (first, rest) in [("hel", &["lo", "!"][..]), ("hel", &["lo!"]), ("he", &["ll"])] {
        let (answering, mut body) = client.begin(upload("5"), false).await;
        body.send_data(Bytes::from_static(first.as_bytes()), false).unwrap();
        let (mut connection, head) = begun(&listener).await;
        assert!(head.to_ascii_lowercase().contains("content-length: 5\r\n"), "{head}");
        connection.expect(first.as_bytes()).await;
        for (number, piece) in rest.iter().enumerate() {
            body.send_data(Bytes::from_static(piece.as_bytes()), number + 1 == rest.len()).unwrap();
        }
        let seen = connection.rest().await;
        assert!(first.len() + seen.len() < 5, "{first} {}", String::from_utf8_lossy(&seen));
        let refused = tokio::time::timeout(Duration::from_secs(20), answering).await.unwrap();
        assert!(refused.map_or(true, |answer| answer.status().as_u16() >= 400));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_the_length_that_it_says_passes_however_it_ends() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let client = Http2::connect(front.address).await;
    for (length, pieces) in
        [("0", &[""][..]), ("5", &["hello"]), ("5", &["hello", ""]), ("5", &["he", "", "llo", "", ""])]
    {
        for ends_with_trailers in [false, true] {
            let upload =
                Request::put("http://shop.example/").header("content-length", length).body(()).unwrap();
            let (answering, mut body) = client.begin(upload, false).await;
            for (number, piece) in pieces.iter().enumerate() {
                let ends = number + 1 == pieces.len() && !ends_with_trailers;
                body.send_data(Bytes::from_static(piece.as_bytes()), ends).unwrap();
            }
            if ends_with_trailers {
                body.send_trailers(http::HeaderMap::new()).unwrap();
            }
            let answer = whole(answering).await.0;
            assert_eq!(
                (answer.status, answer.json()["body"].as_str()),
                (201, Some(pieces.concat().as_str()))
            );
        }
    }
}
