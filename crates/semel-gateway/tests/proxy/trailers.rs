//! Trailers, and with them gRPC, on routes that are not protected.

use crate::support::configured::Configured;
use crate::support::http2::{Http2, next, payment, whole};
use crate::support::{Client, Setting};
use bytes::Bytes;
use h2::server;
use http::{HeaderMap, Request, Response};
use tokio::net::TcpListener;

fn fields(name: &'static str, value: &'static str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(name, value.parse().unwrap());
    fields
}

/// Answers each message as it comes, and says at the end how it went: as gRPC does.
async fn serve_grpc(listener: TcpListener) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut connection = server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut answer))) = connection.accept().await {
        assert_eq!(request.headers()["te"], "trailers");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        tokio::spawn(async move {
            let mut messages = request.into_body();
            let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut answers = answer.send_response(head, false).unwrap();
            while let Some(message) = next(&mut messages).await {
                answers.send_data(message.to_ascii_uppercase().into(), false).unwrap();
            }
            let said = messages.trailers().await.unwrap().unwrap();
            assert_eq!(said["x-said"], "all");
            answers.send_trailers(fields("grpc-status", "0")).unwrap();
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_passes_both_ways_at_once_and_with_its_trailers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(serve_grpc(listener));
    let front = Setting::default().http2().before_port(port).await;
    let client = Http2::connect(front.address).await;
    let request = Request::post("http://shop.example/shop.Payments/Watch")
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let (answering, mut messages) = client.begin(request, false).await;
    let (_, mut answers) = answering.await.unwrap().into_parts();
    for message in ["first", "second"] {
        messages.send_data(Bytes::from_static(message.as_bytes()), false).unwrap();
        assert_eq!(
            next(&mut answers).await.unwrap(),
            message.to_ascii_uppercase(),
            "before the next is sent"
        );
    }
    messages.send_trailers(fields("x-said", "all")).unwrap();
    assert_eq!(next(&mut answers).await, None);
    assert_eq!(answers.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    serving.abort();
}

/// An answer of HTTP/1.1 with trailers: one of them is for the gateway alone, and it is of a kind that is not stored.
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: x-sum, semel-resource\r\n\
                  Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 2\r\nsemel-resource: payment/1\r\n\r\n";

/// A service of HTTP/1.1 that takes one request with trailers, and answers with its own. What it read.
async fn serve_http1(listener: TcpListener) -> String {
    let mut client = Client::of(listener.accept().await.unwrap().0);
    let mut head = client.head_text().await;
    while let Some(chunk) = client.chunk_or_trailers(&mut head).await {
        head.push_str(&String::from_utf8(chunk).unwrap());
    }
    client.write(ANSWER).await;
    head
}

/// The same for a request with a length.
async fn serve_http1_with_a_length(listener: TcpListener) {
    let mut client = Client::of(listener.accept().await.unwrap().0);
    client.head_text().await;
    client.write(ANSWER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_of_http_1_pass_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(serve_http1(listener));
    let front = Setting::default().before_port(port).await;
    let mut client = front.connect().await;
    client
        .write(
            "PUT /upload HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\nTrailer: x-said, semel-attempt, idempotency-key\r\n\
             Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nsemel-attempt: 7\r\nidempotency-key: another\r\nx-said: all\r\n\r\n",
        )
        .await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("trailer")), (200, Some("x-sum, semel-resource")));
    let mut trailers = String::new();
    assert_eq!(client.chunk_or_trailers(&mut trailers).await.as_deref(), Some(&b"hi"[..]));
    assert_eq!(client.chunk_or_trailers(&mut trailers).await, None);
    assert_eq!(trailers, "x-sum: 2\r\n");
    let seen = serving.await.unwrap().to_ascii_lowercase();
    assert!(seen.contains("te: trailers\r\n") && seen.contains("trailer: x-said, "), "{seen}");
    assert!(
        seen.ends_with("abcx-said: all\r\n"),
        "what could not be said in a header is not said here: {seen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_do_not_say_whose_request_it_is() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(serve_http1(listener));
    let scope = "[scope]\ntenant = [\"header:x-account-id\"]\n";
    let gateway = Configured::before_port(port, scope).await;
    let mut client = gateway.connect().await;
    client
        .write(
            "PUT /upload HTTP/1.1\r\nHost: a\r\nTrailer: x-account-id, x_account_id, authorization, x-real-ip, x-http-method-override, x-said\r\n\
             Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Account-Id: ann\r\n\
             x_account_id: ann\r\nAuthorization: Bearer a\r\nX-Real-IP: 203.0.113.9\r\nX-HTTP-Method-Override: POST\r\n\
             X-Said: all\r\n\r\n",
        )
        .await;
    assert_eq!(client.head().await.status, 200);
    let seen = serving.await.unwrap().to_ascii_lowercase();
    assert!(seen.ends_with("abcx-said: all\r\n"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_stored_has_no_trailers_either() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(serve_http1_with_a_length(listener));
    let front = Setting::default().before_port(port).await;
    let client = Http2::connect(front.address).await;
    let (parts, body) = payment().into_parts();
    let (answering, mut stream) = client.begin(Request::from_parts(parts, ()), false).await;
    stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
    let (answer, trailers) = whole(answering).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hi"[..]));
    assert_eq!(trailers, None);
    serving.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_change_protocols_on_the_way() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(serve_http1(listener));
    let front = Setting::default().before_port(port).await;
    let client = Http2::connect(front.address).await;
    let request = Request::put("http://a/upload").header("te", "trailers").header("trailer", "x-said");
    let (answering, mut body) = client.begin(request.body(()).unwrap(), false).await;
    body.send_data(Bytes::from_static(b"abc"), false).unwrap();
    body.send_trailers(fields("x-said", "all")).unwrap();
    let (answer, trailers) = whole(answering).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hi"[..]));
    assert_eq!(trailers.unwrap()["x-sum"], "2");
    assert!(serving.await.unwrap().ends_with("abcx-said: all\r\n"));
}
