//! The HTTP sink, against a real server.

use crate::subject::{PATIENCE, Subject, numbered};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use semel_events::message::Event;
use semel_events::sink::{Sink, Undelivered, Webhook};
use semel_http::tls::ClientTlsFiles;
use semel_http::webhook::WebhookSecret;
use semel_testing::tls::{Authority, HttpsServer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Somebody else's server.
struct Partner {
    address: SocketAddr,
    /// What it answers.
    status: Arc<Mutex<StatusCode>>,
    got: watch::Receiver<Vec<(HeaderMap, Bytes)>>,
    connections: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Partner {
    async fn new() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap()).await
    }

    async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let status = Arc::new(Mutex::new(StatusCode::NO_CONTENT));
        let connections = Arc::new(AtomicUsize::new(0));
        let (record, got) = watch::channel(Vec::new());
        let record = Arc::new(record);
        let serving = tokio::spawn({
            let (status, connections) = (status.clone(), connections.clone());
            async move {
                // Dropped with the task: the connections end with the server.
                let mut open = tokio::task::JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    connections.fetch_add(1, Ordering::SeqCst);
                    let (status, record) = (status.clone(), record.clone());
                    let answer = service_fn(move |request: Request<Incoming>| {
                        let (status, record) = (*status.lock().unwrap(), record.clone());
                        async move {
                            assert_eq!(
                                (request.method().as_str(), request.uri().path()),
                                ("POST", "/events")
                            );
                            let (head, body) = request.into_parts();
                            let body = body.collect().await.unwrap().to_bytes();
                            record.send_modify(|got| got.push((head.headers, body)));
                            let answer =
                                Response::builder().status(status).body(Full::new(Bytes::from("noted")));
                            Ok::<_, Infallible>(answer.unwrap())
                        }
                    });
                    open.spawn(async move {
                        drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await)
                    });
                }
            }
        });
        Self { address, status, got, connections, serving }
    }

    fn sink(&self) -> Webhook {
        Webhook::new(&format!("http://{}/events", self.address), WebhookSecret::parse(SECRET).unwrap())
            .unwrap()
    }

    fn answers(&self, status: u16) {
        *self.status.lock().unwrap() = StatusCode::from_u16(status).unwrap();
    }

    /// Ends, with everything that is open.
    async fn end(self) -> SocketAddr {
        self.serving.abort();
        let _cancelled = self.serving.await;
        self.address
    }
}

fn event() -> Event {
    Event::json("payment/pay_1", "PaymentCreated", r#"{"amount":"10.00"}"#)
}

#[tokio::test]
async fn a_webhook_says_what_it_is_and_who_sent_it() {
    let partner = Partner::new().await;
    let event = event();
    partner.sink().publish(&event).await.unwrap();
    let got = partner.got.borrow().clone();
    let [(headers, body)] = got.as_slice() else { panic!("it came once") };
    assert_eq!(*body, event.payload);
    let id = event.id.to_string();
    for (name, value) in [
        ("webhook-id", id.as_str()),
        ("content-type", "application/json"),
        ("semel-aggregate", "payment/pay_1"),
        ("semel-kind", "PaymentCreated"),
    ] {
        assert_eq!(headers[name], value);
    }
    assert!(headers["webhook-signature"].to_str().unwrap().starts_with("v1,"));
    let sent: i64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
    assert!(sent > 1_700_000_000);
}

/// The intake of `semel-worker` accepts it: the signature is valid.
#[tokio::test]
async fn whoever_knows_the_secret_believes_it() {
    let partner = Partner::new().await;
    partner.sink().publish(&event()).await.unwrap();
    let (headers, body) = partner.got.borrow()[0].clone();
    let engine = semel::Engine::new(semel::MemoryStore::new());
    let rules: semel_worker::Rules = Arc::new(|_| None);
    let intake = semel_worker::WebhookIntake::new(engine, rules)
        .source("shop", [WebhookSecret::parse(SECRET).unwrap()]);
    let answer = intake.handle("shop", &headers, body).await;
    assert_eq!(answer.result, semel_worker::WebhookResult::Ignored, "it is genuine, and about no operation");
    let answer = intake.handle("shop", &headers, Bytes::from("{}")).await;
    assert_eq!(answer.result, semel_worker::WebhookResult::BadSignature);
}

#[tokio::test]
async fn the_status_says_whose_fault_it_is() {
    let partner = Partner::new().await;
    let sink = partner.sink();
    for (status, confirmed, refused) in [
        (200, true, false),
        (202, true, false),
        (400, false, true),
        (404, false, true),
        (410, false, true),
        (422, false, true),
        (301, false, false),
        (408, false, false),
        (429, false, false),
        (500, false, false),
        (503, false, false),
    ] {
        partner.answers(status);
        let answer = sink.publish(&event()).await;
        assert_eq!(answer.is_ok(), confirmed, "{status}: {answer:?}");
        assert_eq!(matches!(answer, Err(Undelivered::Refused(_))), refused, "{status}: {answer:?}");
    }
    assert_eq!(partner.connections.load(Ordering::SeqCst), 1, "one connection was enough");
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_replaced_unnoticed() {
    let partner = Partner::new().await;
    let sink = partner.sink();
    sink.publish(&event()).await.unwrap();
    let address = partner.end().await;
    assert!(matches!(sink.publish(&event()).await, Err(Undelivered::Unreachable(_))));
    let partner = Partner::at(address).await;
    sink.publish(&event()).await.unwrap();
    assert_eq!(partner.got.borrow().len(), 1);
}

#[tokio::test]
async fn a_receiver_that_holds_the_rest_of_its_answer_back_has_confirmed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/events", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
            open.push(stream);
        }
    });
    let sink = Webhook::new(&url, WebhookSecret::parse(SECRET).unwrap()).unwrap();
    // The second time over another connection: the first one's answer has not ended.
    for _ in 0..2 {
        let event = event();
        let answer = tokio::time::timeout(PATIENCE, sink.publish(&event)).await;
        answer.expect("the head of the answer is enough").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outbox_reaches_its_receiver_by_http() {
    let outbox = Subject::sqlite().await;
    let partner = Partner::new().await;
    for aggregate in 0..10 {
        outbox.append(numbered(&format!("order/{aggregate}"), 0..10)).await;
    }
    let running = outbox.publish(partner.sink());
    outbox.until_left(0).await;
    running.stop().await;
    let got = partner.got.borrow().clone();
    assert_eq!(got.len(), 100);
    for aggregate in 0..10 {
        let name = format!("order/{aggregate}");
        let numbers: Vec<_> = got
            .iter()
            .filter(|(headers, _)| headers["semel-aggregate"] == name)
            .map(|(_, body)| body.clone())
            .collect();
        assert_eq!(numbers, (0..10).map(|number| Bytes::from(number.to_string())).collect::<Vec<_>>());
    }
}

const ACCEPTED: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Publishes at an https server, trusting one authority.
fn over_tls(server: &HttpsServer, tls: ClientTlsFiles) -> Webhook {
    let url = format!("https://localhost:{}/events", server.port());
    Webhook::with_tls(&url, WebhookSecret::parse(SECRET).unwrap(), tls).unwrap()
}

fn trusting(authority: &Authority) -> ClientTlsFiles {
    ClientTlsFiles { ca: Some(authority.ca()), ..ClientTlsFiles::default() }
}

#[tokio::test]
async fn events_go_over_tls_to_whom_the_authority_vouches_for() {
    let authority = Authority::new();
    let server = HttpsServer::start(&authority.issue("partner", &["localhost"]), None, ACCEPTED).await;
    let sink = over_tls(&server, trusting(&authority));
    for _ in 0..3 {
        sink.publish(&event()).await.unwrap();
    }
    assert_eq!(server.requests().len(), 3);
    assert!(server.requests()[0].contains("webhook-signature: v1,"), "{:?}", server.requests());
}

#[tokio::test]
async fn a_receiver_that_cannot_be_trusted_gets_no_event() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for (certificate, what) in [
        (stranger.issue("partner", &["localhost"]), "of another authority"),
        (authority.issue_expired("expired", &["localhost"]), "expired"),
        (authority.issue("other", &["other.example"]), "of another host"),
    ] {
        let server = HttpsServer::start(&certificate, None, ACCEPTED).await;
        let error = over_tls(&server, trusting(&authority)).publish(&event()).await.unwrap_err();
        let Undelivered::Unreachable(said) = &error else { panic!("{what}: {error}") };
        assert!(said.contains("localhost") && !said.contains("10.00") && !said.contains(SECRET), "{said}");
        assert!(server.requests().is_empty(), "{what}");
    }
}

#[tokio::test]
async fn a_receiver_that_requires_a_certificate_gets_one() {
    let authority = Authority::new();
    let own = authority.issue("partner", &["localhost"]);
    let server = HttpsServer::start(&own, Some(&authority), ACCEPTED).await;
    let refused = over_tls(&server, trusting(&authority)).publish(&event()).await;
    assert!(matches!(refused, Err(Undelivered::Unreachable(_))), "{refused:?}");
    let shown = authority.issue("shop", &["shop.example"]);
    let tls = ClientTlsFiles { certificate: Some((shown.certificate, shown.key)), ..trusting(&authority) };
    over_tls(&server, tls).publish(&event()).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}
