//! Forward-auth: the authority accepts, refuses, or does not answer.

use crate::support::{Answer, Shop, serve};
use axum::Router;
use axum::extract::{Request, State};
use http::{HeaderMap, Response, StatusCode};
use semel_testing::tls::{self, HttpsServer};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

const KEY: &str = "0a4f6c1e-8f5e-4c3a-9d57";

/// Somebody who knows callers by their API keys, and keeps what it was asked.
#[derive(Clone, Default)]
struct Authority {
    asked: Arc<Mutex<Vec<HeaderMap>>>,
    /// Never answers until then.
    silent: Option<Arc<Notify>>,
}

impl Authority {
    async fn open(self) -> SocketAddr {
        serve(Router::new().fallback(decide).with_state(self)).await
    }

    fn questions(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn last(&self, name: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let values = asked.last().unwrap().get_all(name).iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect()
    }
}

async fn decide(State(authority): State<Authority>, request: Request) -> Response<String> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("GET", "/auth"));
    let headers = request.headers().clone();
    authority.asked.lock().unwrap().push(headers.clone());
    if let Some(silent) = &authority.silent {
        silent.notified().await;
    }
    let caller = headers.get("x-api-key").map_or("", |key| key.to_str().unwrap());
    let answer = Response::builder();
    let answer = match caller {
        "of-ann" => answer.header("x-account", "ann"),
        "of-bob" => answer.status(StatusCode::NO_CONTENT).header("x-account", "bob"),
        "of-nobody" => answer,
        "of-two" => answer.header("x-account", "ann").header("x-account", "bob"),
        "of-none" => answer.header("x-account", "an n"),
        "banned" => answer.status(StatusCode::FORBIDDEN).header("set-cookie", "secret=1"),
        "to-login" => {
            answer.status(StatusCode::FOUND).header("location", "/login").header("x-account", "ann")
        }
        "broken" => answer.status(StatusCode::INTERNAL_SERVER_ERROR).header("x-account", "ann"),
        _ => answer
            .status(StatusCode::UNAUTHORIZED)
            .header("www-authenticate", "Bearer realm=\"shop\"")
            .header("www-authenticate", "Basic realm=\"shop\"")
            .header("x-account", "ann"),
    };
    answer.body("not for clients".into()).unwrap()
}

fn scope(authority: SocketAddr, more: &str) -> String {
    format!(
        "[scope]\ntenant = [\"forward-auth\"]\n[scope.forward_auth]\nurl = \"http://{authority}/auth\"\n\
         tenant_header = \"x-account\"\ndeadline = \"20s\"\n{more}"
    )
}

async fn pay(shop: &Shop, caller: &str) -> Answer {
    shop.pay(KEY, &[("X-Api-Key", caller)]).await
}

#[tokio::test]
async fn the_answers_header_names_the_tenant_on_replays_too() {
    let authority = Authority::default();
    let shop = Shop::open(&scope(authority.clone().open().await, "")).await;
    assert_eq!(pay(&shop, "of-ann").await.executed(), 1);
    assert_eq!(pay(&shop, "of-bob").await.executed(), 2);
    assert!(pay(&shop, "of-ann").await.is_replay());
    assert_eq!(authority.questions(), 3);
}

#[tokio::test]
async fn the_question_tells_the_credentials_and_what_they_are_to_be_good_for() {
    let authority = Authority::default();
    let shop = Shop::open(&scope(authority.clone().open().await, "")).await;
    let fields = [
        ("X-Api-Key", "of-ann"),
        ("Authorization", "Bearer 1"),
        ("Cookie", "session=1"),
        ("X-Other", "not sent"),
        ("X-Account", "bob"),
        ("X-Forwarded-For", "192.0.2.9"),
        ("X-Forwarded-Method", "GET"),
        ("X-Forwarded-Uri", "/free"),
    ];
    assert_eq!(shop.pay_at("/payments?a=1", KEY, &fields).await.executed(), 1);
    for (name, values) in [
        ("x-api-key", &["of-ann"][..]),
        ("authorization", &["Bearer 1"]),
        ("cookie", &["session=1"]),
        ("x-other", &[]),
        ("x-account", &[]),
        ("idempotency-key", &[]),
        ("content-length", &[]),
        ("x-forwarded-method", &["POST"]),
        ("x-forwarded-uri", &["/payments?a=1"]),
        ("x-forwarded-host", &["shop.example"]),
        ("x-forwarded-proto", &["http"]),
        // The peer is trusted, as it is on this machine: what it says of those before it is kept.
        ("x-forwarded-for", &["192.0.2.9, 127.0.0.1"]),
    ] {
        assert_eq!(authority.last(name), values, "{name}");
    }
}

#[tokio::test]
async fn its_no_is_passed_on_with_its_challenges_alone() {
    let authority = Authority::default();
    let shop = Shop::open(&scope(authority.open().await, "")).await;
    let unknown = shop.pay(KEY, &[]).await;
    unknown.is_refused();
    assert_eq!(unknown.all("www-authenticate"), ["Bearer realm=\"shop\"", "Basic realm=\"shop\""]);
    let banned = pay(&shop, "banned").await;
    banned.is_refused();
    assert_eq!(banned.all("www-authenticate"), ["Bearer"]);
    for answer in [unknown, banned] {
        assert!(answer.all("set-cookie").is_empty() && answer.all("x-account").is_empty());
    }
    assert_eq!(shop.executions(), 0);
}

#[tokio::test]
async fn an_answer_that_is_neither_yes_nor_no_executes_nothing() {
    let authority = Authority::default();
    let shop = Shop::open(&scope(authority.open().await, "")).await;
    for caller in ["of-nobody", "of-two", "of-none", "to-login", "broken"] {
        pay(&shop, caller).await.is_undecided();
    }
    assert_eq!(shop.executions(), 0);
    assert_eq!(pay(&shop, "of-ann").await.executed(), 1, "the next one is asked about afresh");
}

#[tokio::test]
async fn without_an_answer_nothing_is_executed() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unreachable = nobody.local_addr().unwrap();
    drop(nobody);
    let shop = Shop::open(&scope(unreachable, "")).await;
    pay(&shop, "of-ann").await.is_undecided();
    assert_eq!(shop.executions(), 0);

    let silent = Authority { silent: Some(Arc::default()), ..Authority::default() };
    let scope = scope(silent.clone().open().await, "").replace("20s", "50ms");
    let shop = Shop::open(&scope).await;
    pay(&shop, "of-ann").await.is_undecided();
    assert_eq!((silent.questions(), shop.executions()), (1, 0));
}

#[tokio::test]
async fn an_answer_is_used_again_only_if_told_so_and_only_for_the_very_same_question() {
    let authority = Authority::default();
    let shop = Shop::open(&scope(authority.clone().open().await, "cache = \"1h\"\n")).await;
    for _ in 0..3 {
        assert_eq!(pay(&shop, "of-ann").await.executed(), 1);
    }
    assert_eq!(authority.questions(), 1);
    // Other credentials, or the same for something else, are other questions.
    assert_eq!(pay(&shop, "of-bob").await.executed(), 2);
    shop.pay(KEY, &[]).await.is_refused();
    shop.pay(KEY, &[("Authorization", "of-ann")]).await.is_refused();
    let with_cookie = [("X-Api-Key", "of-ann"), ("Cookie", "a=1")];
    assert_eq!(shop.pay(KEY, &with_cookie).await.executed(), 1);
    shop.pay_at("/payments?a=1", KEY, &[("X-Api-Key", "of-ann")]).await;
    assert_eq!(authority.questions(), 6);
    // What is no yes is asked again.
    pay(&shop, "broken").await.is_undecided();
    pay(&shop, "broken").await.is_undecided();
    shop.pay(KEY, &[]).await.is_refused();
    assert_eq!((authority.questions(), shop.executions()), (9, 2));
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_no_answer_lost() {
    // Answers one question for each connection, and hangs up without a word about it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _read = stream.read(&mut [0; 4096]).await;
            let _written = stream.write_all(b"HTTP/1.1 204 No Content\r\nX-Account: ann\r\n\r\n").await;
        }
    });
    let shop = Shop::open(&scope(address, "")).await;
    for _ in 0..5 {
        assert_eq!(pay(&shop, "of-ann").await.executed(), 1);
    }
}

#[tokio::test]
async fn an_answer_whose_body_never_comes_is_believed_and_its_connection_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let shop = Shop::open(&scope(listener.local_addr().unwrap(), "")).await;
    let authority = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nX-Account: ann\r\nContent-Length: 5\r\n\r\n").await.unwrap();
        stream
    };
    let (answer, mut stream) = tokio::join!(pay(&shop, "of-ann"), authority);
    assert_eq!(answer.executed(), 1);
    let closed = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut [0; 16])).await;
    assert_eq!(closed.expect("it is closed").unwrap(), 0);
}

#[tokio::test]
async fn over_tls_it_has_to_be_who_the_ca_file_says() {
    let (authority, stranger) = (tls::Authority::new(), tls::Authority::new());
    let of_ann = "HTTP/1.1 200 OK\r\nx-account: ann\r\ncontent-length: 0\r\n\r\n";
    let server = HttpsServer::start(&authority.issue("auth", &["localhost"]), None, of_ann).await;
    let asked = |ca: &tls::Authority| {
        let (port, ca) = (server.port(), ca.ca());
        format!(
            "[scope]\ntenant = [\"forward-auth\"]\n[scope.forward_auth]\nurl = \"https://localhost:{port}/auth\"\ntenant_header = \"x-account\"\ntls = {{ ca = \"{}\" }}\n",
            ca.display()
        )
    };
    let shop = Shop::open(&asked(&authority)).await;
    assert_eq!(shop.pay(KEY, &[("x-api-key", "of-ann")]).await.executed(), 1);
    let shop = Shop::open(&asked(&stranger)).await;
    shop.pay(KEY, &[("x-api-key", "of-ann")]).await.is_undecided();
    assert_eq!(shop.executions(), 0);
}

#[tokio::test]
async fn it_may_require_a_client_certificate() {
    let (authority, clients) = (tls::Authority::new(), tls::Authority::new());
    let of_ann = "HTTP/1.1 200 OK\r\nx-account: ann\r\ncontent-length: 0\r\n\r\n";
    let certificate = authority.issue("auth", &["localhost"]);
    let server = HttpsServer::start(&certificate, Some(&clients), of_ann).await;
    let asked = |client: &str| {
        let (port, ca) = (server.port(), authority.ca());
        format!(
            "[scope]\ntenant = [\"forward-auth\"]\n[scope.forward_auth]\nurl = \"https://localhost:{port}/auth\"\ntenant_header = \"x-account\"\ntls = {{ ca = \"{}\"{client} }}\n",
            ca.display()
        )
    };
    let shop = Shop::open(&asked("")).await;
    shop.pay(KEY, &[("x-api-key", "of-ann")]).await.is_undecided();
    assert_eq!((shop.executions(), server.requests().len()), (0, 0));
    let shown = clients.issue("gateway", &["gateway.example"]);
    let (certificate, key) = (shown.certificate.display(), shown.key.display());
    let shop = Shop::open(&asked(&format!(", certificate = \"{certificate}\", key = \"{key}\""))).await;
    assert_eq!(shop.pay(KEY, &[("x-api-key", "of-ann")]).await.executed(), 1);
}
