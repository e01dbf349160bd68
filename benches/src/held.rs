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
use tokio::sync::Semaphore;

/// Where requests wait until they are let go.
#[derive(Clone, Debug)]
pub struct Gate {
    arrived: Arc<Semaphore>,
    let_go: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { arrived: Arc::new(Semaphore::new(0)), let_go: Arc::new(Semaphore::new(0)) }
    }
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
                gate.arrived.add_permits(1);
                if let Ok(permit) = gate.let_go.acquire().await {
                    permit.forget();
                }
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

    /// What came of requests with keys whose first requests are held meanwhile.
    ///
    /// # Errors
    /// The first requests did not arrive or did not end well, or the load's own.
    pub fn conflicts(&self, runtime: &Runtime, load: &Load, at: SocketAddr) -> Result<Answered> {
        let first: Vec<_> = held_keys(Load::next_run())
            .map(|key| thread::spawn(move || Caller::connect(at)?.call_at(HELD, Some(&key))))
            .collect();
        runtime.block_on(async {
            let arrived =
                tokio::time::timeout(Duration::from_secs(10), self.arrived.acquire_many(HELD_KEYS as u32));
            match arrived.await {
                Ok(Ok(permits)) => {
                    permits.forget();
                    Ok(())
                }
                _ => Err(Error::other("the requests that are to be held did not arrive within ten seconds")),
            }
        })?;
        let answered = load.run(at, Kind::HeldKeys);
        self.let_go.add_permits(HELD_KEYS);
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
