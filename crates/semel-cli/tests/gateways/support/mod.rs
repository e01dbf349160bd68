//! The gateway as a process, a database of its own for each test, and a way to it that can be cut.

mod gateway;

pub(crate) use gateway::{Gateway, TOKEN, configuration, semel};
pub(crate) use semel_testing::database::{Database, Passing, Way};
pub(crate) use semel_testing::http::Service;
pub(crate) use semel_testing::http::connection::{Answer, Ask, Client, try_send};

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whatever of a client's must be in no log has one of these in it: keys, bodies, credentials, tokens.
const SECRET: [&str; 4] = ["k3y-", "b0dy-", "cr3d-", "t0ken-"];

/// A route for payments. The key is required: a test that forgets it is to fail.
pub(crate) const PAYMENTS: &str = r#"
[[route]]
operation = "create_payment"
match = "POST /payments"
key = "required"
"#;

/// The key of that name.
pub(crate) fn key(name: &str) -> String {
    format!("k3y-of-the-{name}")
}

/// A payment under the key of that name.
pub(crate) fn payment(name: &str) -> Ask {
    post("/payments", name)
}

/// A request under the key of that name.
pub(crate) fn post(target: &str, name: &str) -> Ask {
    Ask::new(&format!("POST {target}")).key(&key(name)).body(r#"{"note":"b0dy-of-a-payment"}"#)
}

/// Sends a request over a connection of its own.
pub(crate) async fn send(address: SocketAddr, ask: &Ask) -> Answer {
    Client::connect(address).await.send(ask).await
}

/// Sends until the answer is one that says more than that it is too early to tell: that the store is not available, or that the
/// first request is still under way.
pub(crate) async fn send_until_settled(address: SocketAddr, ask: &Ask) -> Answer {
    let early = ["idempotency_store_unavailable", "idempotency_key_in_progress"];
    send_until(address, ask, |answer| {
        ![503, 409].contains(&answer.status) || !early.contains(&answer.code().as_str())
    })
    .await
}

/// Sends until the answer is the one that is waited for.
pub(crate) async fn send_until(address: SocketAddr, ask: &Ask, is_it: impl Fn(&Answer) -> bool) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = send(address, ask).await;
        if is_it(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "it stays so: {answer:?}");
        pause().await;
    }
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: never");
        pause().await;
    }
}

/// Between two looks at what cannot be waited for.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
