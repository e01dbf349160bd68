//! Alive, and ready.

use crate::support::{AdminApi, Call, Fault, Opening, get};
use semel_gateway::admin::{self, Admin};
use semel_gateway::metrics::Metrics;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_store_that_hangs_makes_it_unready_in_time_and_leaves_it_alive() {
    let admin =
        AdminApi::with(Opening { store_timeout: Duration::from_millis(200), ..Opening::default() }).await;
    assert_eq!(get("/readyz").send(&admin.admin).await.json()["ready"], true);
    admin.store.always(Call::Read, Fault::Hang);
    let asked = Instant::now();
    let answer = get("/readyz").send(&admin.admin).await;
    assert!(asked.elapsed() < Duration::from_secs(8), "it does not hang along");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["why"], "the store is unavailable: see the log");
    assert_eq!(get("/healthz").send(&admin.admin).await.status, 200);
    admin.store.heal();
    assert_eq!(get("/readyz").send(&admin.admin).await.status, 200);
}

#[tokio::test]
async fn a_store_that_fails_makes_it_unready_and_what_failed_is_for_the_log() {
    let admin = AdminApi::open().await;
    admin.store.next(Call::Read, [Fault::Unavailable]);
    let answer = get("/readyz").send(&admin.admin).await;
    assert_eq!(answer.status, 503);
    let why = answer.json()["why"].as_str().unwrap().to_owned();
    assert!(why.contains("unavailable") && !why.contains("as told"), "{why}");
}

#[tokio::test]
async fn a_gateway_that_stops_is_not_ready_any_more() {
    let admin = AdminApi::open().await;
    admin.readiness.stopping();
    let answer = get("/readyz").send(&admin.admin).await;
    assert_eq!((answer.status, answer.json()["why"].as_str()), (503, Some("the process is stopping")));
    assert_eq!(get("/healthz").send(&admin.admin).await.status, 200);
}

#[tokio::test]
async fn the_listing_says_so_when_the_store_is_away() {
    let admin = AdminApi::open().await;
    admin.store.next(Call::Read, [Fault::Unavailable]);
    let answer = admin.get("/v1/operations").await;
    assert_eq!((answer.status, crate::support::problem(&answer)), (503, "admin_store_unavailable".into()));
    assert_eq!(answer.header("retry-after"), Some("1"));
}

/// A connection that has sent this.
async fn sent(admin: &AdminApi, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(admin.admin.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

#[tokio::test]
async fn half_sent_heads_keep_no_probe_from_its_answer() {
    let admin = AdminApi::open().await;
    let mut held = Vec::new();
    for round in 0..13 {
        // More than there is room for, again and again: without a word, in the middle of a head, and between two requests.
        for _ in 0..70 {
            held.push(sent(&admin, b"").await);
            held.push(sent(&admin, b"GET /healthz HTTP/1.1\r\nHost: loc").await);
            held.push(sent(&admin, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await);
        }
        assert_eq!(get("/healthz").send(&admin.admin).await.status, 200, "{round}");
        assert_eq!(get("/readyz").send(&admin.admin).await.status, 200, "{round}");
    }
}

#[tokio::test]
async fn work_that_does_not_end_keeps_no_probe_from_its_answer() {
    let admin = AdminApi::open().await;
    admin.store.always(Call::Read, Fault::Hang);
    let ask = format!(
        "GET /v1/operations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        crate::support::TOKEN
    );
    let mut asked = Vec::new();
    for _ in 0..70 {
        asked.push(sent(&admin, ask.as_bytes()).await);
    }
    for _ in 0..13 {
        assert_eq!(get("/healthz").send(&admin.admin).await.status, 200);
    }
    let answer = admin.get("/v1/operations").await;
    assert_eq!((answer.status, crate::support::problem(&answer)), (503, "admin_too_busy".into()));
    admin.store.heal();
}

#[tokio::test]
async fn it_stops_when_told_to_whoever_is_connected() {
    let engine = semel::Engine::new(semel::MemoryStore::new());
    let admin = Admin::new(engine, Arc::new(Metrics::new([])));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(admin::serve(listener, admin, async move { drop(stopped.await) }));
    // Somebody who says nothing, and somebody who keeps the line after an answer.
    let silent = TcpStream::connect(address).await.unwrap();
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    stop.send(()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), serving).await;
    ended.expect("it ends in bounded time").unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    drop((silent, idle));
}
