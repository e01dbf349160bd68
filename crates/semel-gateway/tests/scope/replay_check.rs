//! A revoked credential finds its operation as before. Where somebody is asked before every replay, it does not get the answer.

use crate::support::{Answer, Shop, serve};
use axum::Router;
use axum::extract::{Request, State};
use http::{HeaderMap, Response, StatusCode};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

const KEY: &str = "0a4f6c1e-8f5e-4c3a-9d57";

/// Somebody who knows which credentials count.
#[derive(Clone)]
struct Authority {
    revoked: Arc<Mutex<HashSet<String>>>,
    questions: Arc<AtomicUsize>,
    /// Answers take a permit each.
    answers: Arc<Semaphore>,
}

impl Default for Authority {
    fn default() -> Self {
        Self { revoked: Arc::default(), questions: Arc::default(), answers: Arc::new(Semaphore::new(1000)) }
    }
}

impl Authority {
    async fn open(&self) -> SocketAddr {
        serve(Router::new().fallback(decide).with_state(self.clone())).await
    }

    fn revokes(&self, token: &str) {
        self.revoked.lock().unwrap().insert(format!("Bearer {token}"));
    }

    fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

async fn decide(State(authority): State<Authority>, request: Request) -> Response<String> {
    authority.questions.fetch_add(1, Ordering::SeqCst);
    authority.answers.acquire().await.unwrap().forget();
    let headers: &HeaderMap = request.headers();
    assert_eq!(headers["x-forwarded-uri"], "/payments");
    let token = headers.get("authorization").map_or("", |token| token.to_str().unwrap());
    let answer = Response::builder().header("x-account", "ann");
    let answer = match authority.revoked.lock().unwrap().contains(token) {
        false if token == "Bearer odd" => answer.status(StatusCode::FOUND).header("location", "/login"),
        false => answer,
        true => answer
            .status(StatusCode::UNAUTHORIZED)
            .header("www-authenticate", "Bearer error=\"invalid_token\"")
            .header("set-cookie", "secret=1"),
    };
    answer.body("not for clients".into()).unwrap()
}

fn by_url(authority: SocketAddr) -> String {
    format!("[scope]\nreplay_check = \"http://{authority}/auth\"\n")
}

#[track_caller]
fn is_withheld(answer: &Answer, operation: &str) {
    answer.is_refused();
    assert_eq!(answer.all("www-authenticate"), ["Bearer error=\"invalid_token\""]);
    assert!(!answer.is_replay() && answer.all("set-cookie").is_empty());
    assert!(!format!("{answer:?}").contains(operation), "nothing of the operation is told");
}

#[tokio::test]
async fn a_revoked_credential_gets_replays_unless_somebody_is_asked() {
    let unasked = Shop::open("").await;
    assert_eq!(unasked.pay_with(KEY, "ann").await.executed(), 1);
    assert!(unasked.pay_with(KEY, "ann").await.is_replay());

    let authority = Authority::default();
    let shop = Shop::open(&by_url(authority.open().await)).await;
    let first = shop.pay_with(KEY, "ann").await;
    assert_eq!((first.executed(), authority.questions()), (1, 0), "an execution is the service's to refuse");
    assert!(shop.pay_with(KEY, "ann").await.is_replay());
    authority.revokes("ann");
    let operation = first.all("semel-operation-id")[0].to_owned();
    for _ in 0..2 {
        is_withheld(&shop.pay_with(KEY, "ann").await, &operation);
    }
    assert_eq!((shop.executions(), authority.questions()), (1, 3));
}

#[tokio::test]
async fn an_answer_that_was_not_stored_is_not_talked_about_either() {
    let authority = Authority::default();
    let routes =
        "[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\nstore_response = \"reference\"\n";
    let shop = Shop::open(&format!("{}{routes}", by_url(authority.open().await))).await;
    let first = shop.pay_with(KEY, "ann").await;
    assert_eq!(first.executed(), 1);
    let known = shop.pay_with(KEY, "ann").await;
    assert_eq!((known.status, known.problem().0.as_str()), (409, "idempotency_response_not_stored"));
    authority.revokes("ann");
    is_withheld(&shop.pay_with(KEY, "ann").await, first.all("semel-operation-id")[0]);
}

#[tokio::test]
async fn forward_auth_is_asked_again_whatever_it_has_answered_before() {
    let authority = Authority::default();
    let address = authority.open().await;
    let scope = format!(
        "[scope]\ntenant = [\"forward-auth\"]\nreplay_check = \"forward-auth\"\n[scope.forward_auth]\n\
         url = \"http://{address}/auth\"\ntenant_header = \"x-account\"\ncache = \"1h\"\n"
    );
    let shop = Shop::open(&scope).await;
    let first = shop.pay_with(KEY, "ann").await;
    assert_eq!((first.executed(), authority.questions()), (1, 1));
    authority.revokes("ann");
    is_withheld(&shop.pay_with(KEY, "ann").await, first.all("semel-operation-id")[0]);
    assert_eq!(authority.questions(), 2, "the tenant is remembered, the right to a replay is not");
}

#[tokio::test]
async fn without_a_clear_word_nothing_is_replayed_and_the_same_can_be_sent_again() {
    let authority = Authority::default();
    let address = authority.open().await;
    let shop = Shop::open(&by_url(address)).await;
    assert_eq!(shop.pay_with(KEY, "odd").await.executed(), 1);
    shop.pay_with(KEY, "odd").await.is_undecided();

    let down = Shop::open("[scope]\nreplay_check = \"http://127.0.0.1:1/auth\"\n").await;
    assert_eq!(down.pay_with(KEY, "ann").await.executed(), 1);
    down.pay_with(KEY, "ann").await.is_undecided();
    assert_eq!(down.pay_with("another-key-0123456789", "ann").await.executed(), 2, "new work goes on");

    let slow = Authority { answers: Arc::new(Semaphore::new(0)), ..Authority::default() };
    let scope = format!(
        "[scope]\nreplay_check = \"forward-auth\"\n[scope.forward_auth]\nurl = \"http://{}/auth\"\n\
         tenant_header = \"x-account\"\ndeadline = \"100ms\"\n",
        slow.open().await
    );
    let shop = Shop::open(&scope).await;
    assert_eq!(shop.pay_with(KEY, "ann").await.executed(), 1);
    shop.pay_with(KEY, "ann").await.is_undecided();
    slow.answers.add_permits(1000);
    assert!(shop.pay_with(KEY, "ann").await.is_replay());
    assert_eq!(shop.executions(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_each_is_asked_about() {
    const AT_ONCE: usize = 50;
    let authority = Authority { answers: Arc::new(Semaphore::new(0)), ..Authority::default() };
    let shop = Arc::new(Shop::open(&by_url(authority.open().await)).await);
    for token in ["ann", "bob"] {
        shop.pay_with(KEY, token).await.executed();
    }
    let retries: Vec<_> = (0..AT_ONCE)
        .map(|number| {
            let shop = Arc::clone(&shop);
            let token = if number % 2 == 0 { "ann" } else { "bob" };
            tokio::spawn(async move { (token, shop.pay_with(KEY, token).await) })
        })
        .collect();
    while authority.questions() < AT_ONCE {
        tokio::task::yield_now().await;
    }
    // All of them wait for their answers: what is revoked now is revoked for all.
    authority.revokes("bob");
    authority.answers.add_permits(AT_ONCE);
    for retry in retries {
        let (token, answer) = retry.await.unwrap();
        assert_eq!(
            (answer.is_replay(), answer.status == 401),
            (token == "ann", token == "bob"),
            "{answer:?}"
        );
    }
    assert_eq!((shop.executions(), authority.questions()), (2, AT_ONCE));
}
