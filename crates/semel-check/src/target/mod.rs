//! The API under check: connections, pace, and limits on harm.
//!
//! - `connection.rs`: TCP, TLS, HTTP/1.1 or HTTP/2;
//! - `held.rs`: a body whose last byte waits for a gate;
//! - `race.rs`: many requests whose last bytes go out together.

mod connection;
mod held;
mod race;

pub(crate) use held::Partly;
pub(crate) use race::Raced;

use crate::answer::{NoAnswer, Reply};
use crate::request::Request;
use crate::settings::Settings;
use connection::{Connection, Dialer};
use semel_http::tls::TlsError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Sends requests, within the plan's limits.
pub(crate) struct Target {
    dialer: Dialer,
    timeout: Duration,
    pace: Mutex<Instant>,
    between: Duration,
    writes: AtomicUsize,
}

impl Target {
    /// # Errors
    /// The files for TLS cannot be used.
    pub(crate) fn new(plan: &Settings) -> Result<Self, TlsError> {
        Ok(Self {
            dialer: Dialer::new(plan)?,
            timeout: plan.timeout,
            pace: Mutex::new(Instant::now()),
            between: Duration::from_secs(1) / plan.rps,
            writes: AtomicUsize::new(0),
        })
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn send(&self, request: &Request) -> Reply {
        self.pace(1).await;
        let sending = async {
            let mut connection = self.dialer.open(request.node).await?;
            connection.send(request, None).await
        };
        tokio::time::timeout(self.timeout, sending)
            .await
            .unwrap_or(Err(NoAnswer::TimedOut(self.timeout.as_secs())))
    }

    /// Opens a connection, sends the request or a part of it, and keeps the connection for the caller to drop.
    pub(crate) async fn begin(&self, request: &Request, how_much: Partly) -> Result<Connection, NoAnswer> {
        self.pace(1).await;
        let mut connection = self.dialer.open(request.node).await?;
        connection.begin(request, how_much).await?;
        Ok(connection)
    }

    /// Whether somebody accepts connections.
    pub(crate) async fn accepts(&self) -> bool {
        self.dialer.accepts().await
    }

    /// How many requests were sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// Waits until so many more requests may be sent.
    async fn pace(&self, requests: usize) {
        self.writes.fetch_add(requests, Ordering::Relaxed);
        let count = u32::try_from(requests).unwrap_or(u32::MAX);
        let due = {
            let mut next = self.pace.lock().await;
            let due = (*next).max(Instant::now());
            *next = due + self.between * count;
            due
        };
        tokio::time::sleep_until(due.into()).await;
    }
}
