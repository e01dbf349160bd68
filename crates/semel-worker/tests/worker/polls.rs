//! Polls over real sockets.

use crate::support::key;
use http::header::HeaderMap;
use semel::{Body, OperationId, Resource};
use semel_http::tls::ClientTlsFiles;
use semel_testing::tls::{Authority, HttpsServer};
use semel_worker::{Finding, HttpPoll, InvalidPoll, PollOptions, Question, Reconcile as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

/// A service that says the same to everybody, and remembers what it was asked.
struct Service {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn service(answer: Vec<u8>) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let book = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            book.lock().await.push(String::from_utf8(request).unwrap());
            // Whoever has heard enough may hang up.
            let _ = stream.write_all(&answer).await;
        }
    });
    Service { address, asked }
}

fn http(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn question() -> Question {
    Question {
        operation_id: OperationId::from_u128(7),
        attempt: 3,
        key: key(1),
        resource: None,
        recovery_point: None,
        checkpoint: None,
        number: 1,
    }
}

async fn ask(service: &Service, absence_is_proof: bool) -> Finding {
    let url = format!("http://{}/operations/{{operation_id}}?again={{operation_id}}", service.address);
    poll(&PollOptions { absence_is_proof, ..PollOptions::new(url) }).await
}

async fn poll(options: &PollOptions) -> Finding {
    HttpPoll::new(options).unwrap().ask(question()).await
}

#[tokio::test]
async fn a_poll_names_the_operation_and_the_attempt_and_nothing_of_the_client() {
    let service = service(http("200 OK", r#"{"status":201,"body":"paid"}"#)).await;
    ask(&service, false).await;
    let asked = service.asked.lock().await.remove(0);
    let id = question().operation_id;
    let mut lines = asked.split("\r\n");
    assert_eq!(lines.next().unwrap(), format!("GET /operations/{id}?again={id} HTTP/1.1"));
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        headers.insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    assert_eq!(headers["semel-operation-id"], id.to_string().as_str());
    assert_eq!(headers["semel-attempt"], "3");
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["host"], service.address.as_str());
    assert!(!asked.contains(&*question().key.key));
}

#[tokio::test]
async fn a_response_document_settles_as_its_status_says() {
    let answered = service(http("200 OK", r#"{"status":201,"headers":{"etag":"\"1\""},"body":"paid","resource":{"type":"payment","id":"pay_1"}}"#)).await;
    let Finding::Completed { response: Some(response), resource } = ask(&answered, false).await else {
        panic!("it happened")
    };
    assert_eq!((response.status, response.body), (201, Body::Stored("paid".into())));
    assert_eq!(response.headers, [("etag".to_owned(), bytes::Bytes::from("\"1\""))]);
    assert_eq!(resource, Some(Resource { kind: "payment".into(), id: "pay_1".into() }));
}

#[tokio::test]
async fn a_refusal_settles_the_attempt_that_was_asked_about_and_no_other() {
    let (id, body) = (question().operation_id, r#"{"status":402,"body":"no funds"}"#);
    let of = |attempt: u32| {
        let named = format!("semel-operation-id: {id}\r\nsemel-attempt: {attempt}\r\n");
        format!("HTTP/1.1 200 OK\r\n{named}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    assert!(matches!(ask(&service(of(3)).await, false).await, Finding::Failed { .. }));
    let unclear = |code: &str| Finding::Unclear(code.into());
    assert_eq!(ask(&service(of(1)).await, false).await, unclear("poll_other_attempt"));
    let bare = service(http("200 OK", body)).await;
    assert_eq!(ask(&bare, false).await, unclear("poll_refusal_without_operation_id"));
    let document = |attempt: u32| {
        let document = format!(r#"{{"outcome":"failed","operation_id":"{id}","attempt":{attempt}}}"#);
        http("200 OK", &document)
    };
    assert!(matches!(ask(&service(document(3)).await, false).await, Finding::Failed { .. }));
    assert_eq!(ask(&service(document(1)).await, false).await, unclear("poll_other_attempt"));
}

#[tokio::test]
async fn no_trace_of_it_counts_only_if_that_is_promised() {
    let named = format!("semel-operation-id: {}\r\nsemel-attempt: 3", question().operation_id);
    let head =
        format!("HTTP/1.1 404 Not Found\r\nsemel-outcome: not_executed\r\n{named}\r\ncontent-length: 0");
    let named = service(format!("{head}\r\n\r\n").into_bytes()).await;
    assert_eq!(ask(&named, true).await, Finding::Absent);
    assert_eq!(ask(&named, false).await, Finding::Unclear("poll_absent".into()));
    let document =
        format!(r#"{{"outcome":"not_executed","operation_id":"{}","attempt":3}}"#, question().operation_id);
    for status in ["200 OK", "404 Not Found"] {
        assert_eq!(ask(&service(http(status, &document)).await, true).await, Finding::Absent, "{status}");
    }
    let cached = service(format!("{head}\r\nage: 0\r\n\r\n").into_bytes()).await;
    assert_eq!(ask(&cached, true).await, Finding::Unclear("poll_cached".into()));
}

#[tokio::test]
async fn a_404_of_whoever_does_not_know_the_operation_is_no_proof() {
    let page = "<html><head><title>404 Not Found</title></head><body>nginx</body></html>";
    for body in ["", page, r#"{"status":404,"error":"Not Found"}"#, r#"{"outcome":"completed"}"#] {
        let stranger = service(http("404 Not Found", body)).await;
        let found = ask(&stranger, true).await;
        assert_eq!(found, Finding::Unclear("poll_absence_without_outcome".into()), "{body}");
        assert_eq!(ask(&stranger, false).await, Finding::Unclear("poll_status_404".into()));
    }
}

#[tokio::test]
async fn anything_else_leaves_it_unknown() {
    let elsewhere = service(http("200 OK", r#"{"status":201}"#)).await;
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{}/x\r\ncontent-length: 0\r\n\r\n",
        elsewhere.address
    );
    let long = format!(r#"{{"status":201,"body":"{}"}}"#, "x".repeat(5 * 1024 * 1024));
    for (answer, code) in [
        (http("500 Internal Server Error", r#"{"status":201}"#), "poll_status_500"),
        (http("204 No Content", ""), "poll_status_204"),
        (http("410 Gone", ""), "poll_status_410"),
        (redirect.into_bytes(), "poll_status_302"),
        (http("200 OK", ""), "poll_answer_not_understood"),
        (http("200 OK", r#"{"outcome":"pending"}"#), "poll_outcome_open"),
        (http("200 OK", &long), "poll_answer_too_long_or_broken_off"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"status\":201}".to_vec(),
            "poll_answer_too_long_or_broken_off",
        ),
        (b"what?\r\n\r\n".to_vec(), "poll_broken_off"),
        (Vec::new(), "poll_broken_off"),
    ] {
        let service = service(answer).await;
        assert_eq!(ask(&service, true).await, Finding::Unclear(code.into()));
        assert_eq!(service.asked.lock().await.len(), 1, "it is asked once");
    }
    assert!(elsewhere.asked.lock().await.is_empty(), "redirects are not followed");
    // Nobody listens any more.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = Service { address: listener.local_addr().unwrap().to_string(), asked: Arc::default() };
    drop(listener);
    assert_eq!(ask(&gone, true).await, Finding::Unclear("poll_unreachable".into()));
}

#[test]
fn options_are_rules_or_say_what_is_wrong() {
    let options = PollOptions { attempts: 3, ..PollOptions::new("http://127.0.0.1:9/{operation_id}") };
    let asking = options.asking().unwrap();
    assert_eq!((asking.attempts, asking.every, asking.deadline), (3, options.every, options.deadline));
    let wrong = PollOptions::new("ftp://127.0.0.1:9/{operation_id}");
    assert!(matches!(wrong.asking(), Err(InvalidPoll::Url(_))));
    let tls = ClientTlsFiles { ca: Some("/nonexistent.pem".into()), ..ClientTlsFiles::default() };
    let wrong = PollOptions { tls, ..PollOptions::new("https://127.0.0.1:9/{operation_id}") };
    assert!(matches!(wrong.asking(), Err(InvalidPoll::Tls(_))));
}

/// Polls a server over TLS, trusting one authority.
fn over_tls(server: &HttpsServer, authority: &Authority) -> PollOptions {
    let tls = ClientTlsFiles { ca: Some(authority.ca()), ..ClientTlsFiles::default() };
    let url = format!("https://localhost:{}/operations/{{operation_id}}", server.port());
    PollOptions { tls, ..PollOptions::new(url) }
}

fn completed() -> String {
    String::from_utf8(http("200 OK", r#"{"status":201,"body":"paid"}"#)).unwrap()
}

#[tokio::test]
async fn a_poll_over_tls_settles_as_one_in_the_clear() {
    let authority = Authority::new();
    let server = HttpsServer::start(&authority.issue("bank", &["localhost"]), None, completed()).await;
    let found = poll(&over_tls(&server, &authority)).await;
    assert!(matches!(found, Finding::Completed { .. }), "{found:?}");
    assert!(server.requests()[0].contains("semel-attempt: 3"), "{:?}", server.requests());
}

#[tokio::test]
async fn what_a_server_says_that_cannot_be_trusted_settles_nothing() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for (certificate, what) in [
        (stranger.issue("bank", &["localhost"]), "of another authority"),
        (authority.issue_expired("expired", &["localhost"]), "expired"),
        (authority.issue("other", &["other.example"]), "of another host"),
    ] {
        let server = HttpsServer::start(&certificate, None, completed()).await;
        let found = poll(&over_tls(&server, &authority)).await;
        assert_eq!(found, Finding::Unclear("poll_unreachable".into()), "{what}");
        assert!(server.requests().is_empty(), "{what}");
    }
}

#[tokio::test]
async fn a_poll_shows_its_certificate_where_one_is_required() {
    let authority = Authority::new();
    let own = authority.issue("bank", &["localhost"]);
    let server = HttpsServer::start(&own, Some(&authority), completed()).await;
    let mut options = over_tls(&server, &authority);
    let found = poll(&options).await;
    assert!(matches!(found, Finding::Unclear(_)), "without a certificate: {found:?}");
    let shown = authority.issue("gateway", &["gateway.example"]);
    options.tls.certificate = Some((shown.certificate, shown.key));
    let found = poll(&options).await;
    assert!(matches!(found, Finding::Completed { .. }), "{found:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_holds_its_answer_back_is_given_up_at_the_deadline() {
    let authority = Authority::new();
    let own = authority.issue("bank", &["localhost"]);
    let server = HttpsServer::start(&own, None, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").await;
    let options = PollOptions { deadline: Duration::from_millis(300), ..over_tls(&server, &authority) };
    assert_eq!(poll(&options).await, Finding::Unclear("deadline".into()));
}
