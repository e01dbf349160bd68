//! The client against real sockets, over plain TCP and TLS.
#![allow(clippy::unwrap_used, reason = "what goes wrong here is a failed test")]

use bytes::Bytes;
use semel_http::tls::{ClientTlsFiles, TlsError};
use semel_http::{Client, Endpoint, Error, Options, Resend};
use semel_testing::tls::{Authority, HttpsServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Reads one request without a body; false at the end of the connection.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), body: &str) {
    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn client(port: u16, options: Options) -> (Endpoint, Client) {
    let endpoint = Endpoint::parse(&format!("http://127.0.0.1:{port}/status")).unwrap();
    let client = Client::new(&endpoint, ClientTlsFiles::default(), options).unwrap();
    (endpoint, client)
}

async fn get(endpoint: &Endpoint, client: &Client) -> Result<Bytes, Error> {
    let request = endpoint.get(endpoint.path()).body(Bytes::new()).unwrap();
    client.send(request).await.map(http::Response::into_body)
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let (listener, port) = listener().await;
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, SeqCst);
            tokio::spawn(async move {
                while request(&mut stream).await {
                    answer(&mut stream, "hello").await;
                }
            });
        }
    });
    let (endpoint, client) = client(port, Options::default());
    for _ in 0..10 {
        assert_eq!(get(&endpoint, &client).await.unwrap(), "hello");
    }
    assert_eq!(connections.load(SeqCst), 1);
}

/// Closes its first connection in the middle of the first request, and answers on all others.
async fn breaks_once() -> (u16, Arc<AtomicUsize>) {
    let (listener, port) = listener().await;
    let received = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if request(&mut stream).await && counted.fetch_add(1, SeqCst) > 0 {
                answer(&mut stream, "hello").await;
            }
        }
    });
    (port, received)
}

#[tokio::test]
async fn a_broken_request_is_sent_again_only_where_that_is_asked_for() {
    let (port, received) = breaks_once().await;
    let (endpoint, once) = client(port, Options::default());
    let error = get(&endpoint, &once).await.unwrap_err();
    assert!(matches!(error, Error::Broken { .. }) && !error.nothing_sent(), "{error}");
    assert_eq!(received.load(SeqCst), 1);

    let (port, received) = breaks_once().await;
    let (endpoint, twice) = client(port, Options { resend: Resend::Once, ..Options::default() });
    assert_eq!(get(&endpoint, &twice).await.unwrap(), "hello");
    assert_eq!(received.load(SeqCst), 2);
}

#[tokio::test]
async fn a_closed_port_is_named_and_nothing_was_sent() {
    let (listener, port) = listener().await;
    drop(listener);
    let (endpoint, client) = client(port, Options::default());
    let error = get(&endpoint, &client).await.unwrap_err();
    assert!(error.nothing_sent());
    assert_eq!(error.to_string(), format!("connection refused: 127.0.0.1:{port}"));
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_too_late_is_an_error() {
    let (listener, port) = listener().await;
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            request(&mut stream).await;
            match kept.len() {
                0 => answer(&mut stream, "longer than four").await,
                _ => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab").await.unwrap(),
            }
            kept.push(stream);
        }
    });
    let options = Options { longest_answer: 4, deadline: Duration::from_millis(300), ..Options::default() };
    let (endpoint, client) = client(port, options);
    let error = get(&endpoint, &client).await.unwrap_err();
    assert!(matches!(error, Error::TooLong { limit: 4, .. }), "{error}");
    let error = get(&endpoint, &client).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn the_head_counts_while_the_rest_is_held_back() {
    let (listener, port) = listener().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nx-tenant: acme\r\ncontent-length: 9\r\n\r\nno").await.unwrap();
        std::future::pending::<()>().await;
    });
    let (endpoint, client) = client(port, Options::default());
    let request = endpoint.get("/auth").body(Bytes::new()).unwrap();
    let head = client.send_for_head(request).await.unwrap();
    assert_eq!((head.status.as_u16(), head.headers["x-tenant"].to_str().unwrap()), (200, "acme"));
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nover TLS";

fn trusting(authority: &Authority) -> ClientTlsFiles {
    ClientTlsFiles { ca: Some(authority.ca()), ..ClientTlsFiles::default() }
}

async fn get_over_tls(server: &HttpsServer, tls: ClientTlsFiles) -> Result<Bytes, Error> {
    let endpoint = Endpoint::parse(&format!("https://localhost:{}/status", server.port())).unwrap();
    get(&endpoint, &Client::new(&endpoint, tls, Options::default()).unwrap()).await
}

#[tokio::test]
async fn over_tls_the_server_is_who_the_authority_says() {
    let authority = Authority::new();
    let server = HttpsServer::start(&authority.issue("server", &["localhost"]), None, ANSWER).await;
    assert_eq!(get_over_tls(&server, trusting(&authority)).await.unwrap(), "over TLS");
}

#[tokio::test]
async fn a_server_that_cannot_be_trusted_gets_nothing() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for (certificate, what) in [
        (stranger.issue("server", &["localhost"]), "of another authority"),
        (authority.issue_expired("expired", &["localhost"]), "expired"),
        (authority.issue("other", &["other.example"]), "of another host"),
    ] {
        let server = HttpsServer::start(&certificate, None, ANSWER).await;
        let error = get_over_tls(&server, trusting(&authority)).await.unwrap_err();
        assert!(error.nothing_sent(), "{what}: {error}");
        assert!(server.requests().is_empty(), "{what}");
    }
}

#[tokio::test]
async fn a_server_that_requires_a_certificate_of_clients_gets_it() {
    let authority = Authority::new();
    let own = authority.issue("server", &["localhost"]);
    let server = HttpsServer::start(&own, Some(&authority), ANSWER).await;
    get_over_tls(&server, trusting(&authority)).await.unwrap_err();
    let shown = authority.issue("client", &["client.example"]);
    let tls = ClientTlsFiles { certificate: Some((shown.certificate, shown.key)), ..trusting(&authority) };
    assert_eq!(get_over_tls(&server, tls).await.unwrap(), "over TLS");
    let other = Authority::new();
    let shown = other.issue("client", &["client.example"]);
    let tls = ClientTlsFiles { certificate: Some((shown.certificate, shown.key)), ..trusting(&authority) };
    get_over_tls(&server, tls).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn time_outs_and_limits_hold_over_tls() {
    let authority = Authority::new();
    let own = authority.issue("server", &["localhost"]);
    let never_ends = HttpsServer::start(&own, None, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab").await;
    let long = HttpsServer::start(&own, None, ANSWER).await;
    let options = Options { longest_answer: 4, deadline: Duration::from_millis(500), ..Options::default() };
    let answered = async |server: &HttpsServer| {
        let endpoint = Endpoint::parse(&format!("https://localhost:{}/", server.port())).unwrap();
        get(&endpoint, &Client::new(&endpoint, trusting(&authority), options).unwrap()).await.unwrap_err()
    };
    assert!(matches!(answered(&never_ends).await, Error::Timeout { .. }));
    assert!(matches!(answered(&long).await, Error::TooLong { limit: 4, .. }));
    // One that accepts connections and never says anything, not even in TLS.
    let (_silent, port) = listener().await;
    let endpoint = Endpoint::parse(&format!("https://localhost:{port}/")).unwrap();
    let client = Client::new(&endpoint, trusting(&authority), options).unwrap();
    assert!(matches!(get(&endpoint, &client).await.unwrap_err(), Error::Timeout { .. }));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_an_error_before_anything_is_sent() {
    let endpoint = Endpoint::parse("https://localhost:1/").unwrap();
    let files = ClientTlsFiles { ca: Some("/nonexistent.pem".into()), ..ClientTlsFiles::default() };
    let error = Client::new(&endpoint, files, Options::default()).unwrap_err();
    assert!(matches!(error, TlsError::Unreadable { .. }), "{error}");
}
