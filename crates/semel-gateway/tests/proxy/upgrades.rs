//! WebSocket and other protocols that a connection may be switched to.

use crate::support::{Ask, Client, Setting};
use semel_gateway::Stopped;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

/// A service that switches if it is asked to, and then says everything again. What it was asked.
async fn serve(listener: TcpListener) -> String {
    let mut client = Client::of(listener.accept().await.unwrap().0);
    let head = client.head_text().await;
    if !head.to_ascii_lowercase().contains("upgrade: websocket\r\n") {
        client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno").await;
        return head;
    }
    // Its first words come along with the answer.
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nhello ";
    client.write(answer).await;
    let mut piece = [0; 1024];
    loop {
        match client.stream.read(&mut piece).await {
            Ok(0) | Err(_) => return head,
            Ok(count) => client.write(&piece[..count]).await,
        }
    }
}

fn ask() -> Ask {
    Ask::new("GET /chat").field("Connection: keep-alive, Upgrade").field("Upgrade: websocket")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_goes_both_ways_until_its_client_ends_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(serve(listener));
    let front = Setting::default().before_port(port).await;
    let mut client = front.connect().await;
    client.write(ask().bytes()).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("upgrade")), (101, Some("websocket")));
    assert_eq!(head.header("connection"), Some("upgrade"));
    assert_eq!(head.header("sec-websocket-accept"), Some("x"));
    client.expect(b"hello ").await;
    // Nothing that HTTP would understand, or that the guard would let pass.
    for words in [&b"\x81\x05hello"[..], b"POST / HTTP/1.1\nContent-Length: x\n\n", &[0xff; 100_000]] {
        client.write(words).await;
        client.expect(words).await;
    }
    drop(client);
    let asked = serving.await.unwrap();
    assert!(asked.to_ascii_lowercase().contains("connection: upgrade\r\n"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_counts_as_a_connection_and_ends_with_the_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(serve(listener));
    let setting = Setting::default().limits(|limits| limits.drain = Duration::from_millis(800));
    let mut front = setting.before_port(port).await;
    let mut client = front.connect().await;
    client.write(ask().bytes()).await;
    assert_eq!(client.head().await.status, 101);
    client.expect(b"hello ").await;
    front.stop();
    client.write("still there?").await;
    client.expect(b"still there?").await;
    assert_eq!(client.rest().await, b"", "it is closed once its time is over");
    assert_eq!(front.stopped().await, Stopped::Drained);
    serving.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_pass_the_gateway_by_is_not_asked_for() {
    for ask in [
        // A protected request.
        Ask::payment().field("Connection: Upgrade").field("Upgrade: websocket"),
        // Another HTTP, in which nobody would look at the requests.
        Ask::new("GET /").field("Connection: Upgrade, HTTP2-Settings").field("Upgrade: h2c"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(serve(listener));
        let front = Setting::default().before_port(port).await;
        assert_eq!(front.send(&ask).await.status, 200);
        let asked = serving.await.unwrap().to_ascii_lowercase();
        assert!(!asked.contains("upgrade"), "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_switches_to_something_else_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut client = Client::of(listener.accept().await.unwrap().0);
        client.head_text().await;
        client.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n").await;
        client.rest().await;
    });
    let front = Setting::default().before_port(port).await;
    assert_eq!(front.send(&ask()).await.status, 502);
}
