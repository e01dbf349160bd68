//! An idempotent API with a switch for each fault that such APIs have. Without a fault it is correct.
//!
//! - `fault.rs`: the switches;
//! - `style.rs`: how a correct API answers;
//! - `keys.rs`: what is remembered of a key, and on disk;
//! - `request.rs`: who asks for what, under which key;
//! - `handle.rs`: the path of a request.
//!
//! `POST /payments`, `PUT /payments` and `POST /refunds` take `{"amount", "reference"}`; `GET /payments?reference=R` counts, and `GET /auth` tells a proxy
//! whose credential it has. `X-Delay: MS` makes it wait for a duplicate, a
//! quarter of so many milliseconds before the effect and the rest after it; `X-Fail: 1` makes it fail after the effect. The files `expired` and `revoked` in its directory expire all keys,
//! and revoke Alice's first token.

mod fault;
mod handle;
mod keys;
mod request;
mod style;

pub use fault::Fault;
pub use style::Style;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use keys::{Arrivals, Keys, Ledger};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

/// Alice's token, the one that it was refreshed to, and Bob's.
pub const TOKENS: [&str; 3] = ["alice-1", "alice-2", "bob-1"];

/// One node of the API.
struct Node {
    fault: Option<Fault>,
    style: Style,
    /// Held by the one request that is served, where only one is.
    turn: tokio::sync::Mutex<()>,
    keys: Keys,
    ledger: Arc<Ledger>,
    arrivals: Arrivals,
    /// How many requests came to all nodes.
    requests: Arc<AtomicUsize>,
    directory: PathBuf,
}

impl Node {
    /// How long the work takes before the effect, and after it.
    fn pause(&self) -> Duration {
        match (self.style, self.ledger.count(None)) {
            (Style::WarmsUp, 0) => Duration::from_secs(1),
            (Style::WarmsUp, _) => Duration::ZERO,
            _ => Duration::from_millis(3),
        }
    }
}

/// A running API, for as long as it lives.
pub struct FaultyApi {
    pub address: SocketAddr,
    /// A second node with the same keys.
    pub other: SocketAddr,
    requests: Arc<AtomicUsize>,
    serving: [AbortHandle; 2],
}

impl FaultyApi {
    /// Starts it at free ports, with its files in a directory.
    pub async fn start(fault: Option<Fault>, directory: &Path) -> Self {
        Self::at("127.0.0.1:0", fault, Style::Ietf, directory).await
    }

    /// Starts a correct one that answers in a style of its own.
    pub async fn in_style(style: Style, directory: &Path) -> Self {
        Self::at("127.0.0.1:0", None, style, directory).await
    }

    /// Starts it at an address; what is on disk from an earlier life is recovered.
    pub async fn at(address: &str, fault: Option<Fault>, style: Style, directory: &Path) -> Self {
        let ledger = Arc::new(Ledger::open(directory));
        let keys = Keys::open(fault, directory);
        let shared = if fault == Some(Fault::EachNodeItsOwnKeys) { Keys::default() } else { keys.clone() };
        let requests = Arc::new(AtomicUsize::new(0));
        let node = |keys| {
            Arc::new(Node {
                fault,
                style,
                turn: tokio::sync::Mutex::default(),
                keys,
                ledger: Arc::clone(&ledger),
                arrivals: Arrivals::default(),
                requests: Arc::clone(&requests),
                directory: directory.to_owned(),
            })
        };
        let (address, first) = serve(address, node(keys)).await;
        let (other, second) = serve("127.0.0.1:0", node(shared)).await;
        Self { address, other, requests, serving: [first, second] }
    }

    /// How many requests have come, whatever they asked for.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn serve(address: &str, node: Arc<Node>) -> (SocketAddr, AbortHandle) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut http = auto::Builder::new(TokioExecutor::new());
    if node.style == Style::OneStream {
        http.http2().max_concurrent_streams(1);
    }
    let service = TowerToHyperService::new(Router::new().fallback(handle::handle).with_state(node));
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (http, service) = (http.clone(), service.clone());
            connections.spawn(async move {
                // Clients hang up whenever they want.
                let _ended = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (address, serving.abort_handle())
}

impl Drop for FaultyApi {
    fn drop(&mut self) {
        self.serving.iter().for_each(AbortHandle::abort);
    }
}
