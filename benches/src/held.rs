//! Requests that are under way for as long as they are wanted to be.

use crate::caller::Caller;
use crate::load::{Answered, HELD, HELD_KEYS, Kind, Load, held_keys};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::post;
use std::io::{Error, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Where requests wait until they are let go.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// How many have come.
    arrived: Arc<watch::Sender<usize>>,
    /// How many of those, the first ones, may go.
    let_go: Arc<watch::Sender<usize>>,
}

/// An answer as a service gives it.
pub type Reply = (StatusCode, [(header::HeaderName, &'static str); 1], &'static str);

/// What all handlers answer: as much as the service behind the gateways does.
#[must_use]
pub fn reply() -> Reply {
    (
        StatusCode::CREATED,
        [(header::CONTENT_TYPE, "application/json")],
        r#"{"id":"pay_1","amount":"10.00","currency":"EUR","status":"created"}"#,
    )
}

impl Gate {
    /// A router with a handler at [`HELD`] that holds every request.
    pub fn router(&self) -> Router {
        let gate = self.clone();
        Router::new().route(
            HELD,
            post(async move || {
                let mut number = 0;
                gate.arrived.send_modify(|arrived| {
                    *arrived += 1;
                    number = *arrived;
                });
                // The sender is there for as long as this is.
                drop(gate.let_go.subscribe().wait_for(|gone| *gone >= number).await);
                reply()
            }),
        )
    }

    /// Serves that router on a socket of its own, for as long as the runtime lives.
    ///
    /// # Errors
    /// There is no socket to be had.
    pub fn serve(&self, runtime: &Runtime) -> Result<SocketAddr> {
        serve(runtime, self.router())
    }

    /// How many requests have come so far.
    #[must_use]
    pub fn arrivals(&self) -> usize {
        *self.arrived.borrow()
    }

    /// Lets all go that have come.
    pub fn let_all_go(&self) {
        self.let_go.send_replace(self.arrivals());
    }

    /// What came of requests with keys whose first requests are held meanwhile.
    ///
    /// # Errors
    /// The first requests did not arrive or did not end well, or the load's own.
    pub fn conflicts(&self, runtime: &Runtime, load: &Load, at: SocketAddr) -> Result<Answered> {
        let all = self.arrivals() + HELD_KEYS;
        let first: Vec<_> = held_keys(Load::next_run())
            .map(|key| thread::spawn(move || Caller::connect(at)?.call_at(HELD, Some(&key))))
            .collect();
        runtime.block_on(async {
            let mut arrived = self.arrived.subscribe();
            let arrived = arrived.wait_for(|arrived| *arrived >= all);
            tokio::time::timeout(Duration::from_secs(10), arrived).await.map(drop).map_err(|_| {
                Error::other("the requests that are to be held did not arrive within ten seconds")
            })
        })?;
        let answered = load.run(at, Kind::HeldKeys);
        self.let_all_go();
        for caller in first {
            caller.join().map_err(|_| Error::other("a caller panicked"))??;
        }
        answered
    }
}

/// Serves a router on a socket of its own, for as long as the runtime lives.
///
/// # Errors
/// There is no socket to be had.
pub fn serve(runtime: &Runtime, router: Router) -> Result<SocketAddr> {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    runtime.spawn(async { axum::serve(listener, router).await });
    Ok(address)
}
