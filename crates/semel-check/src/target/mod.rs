//! The API under check: connections, pace, and limits on harm.
//!
//! - `connection.rs`: TCP, TLS, HTTP/1.1 or HTTP/2;
//! - `written.rs`: when bytes leave a connection;
//! - `held.rs`: a body whose last byte waits for a gate;
//! - `race.rs`: many requests whose last bytes go out together;
//! - `limits.rs`: how much may be sent, and how fast.

mod connection;
mod held;
mod limits;
mod race;
mod written;

pub(crate) use connection::Begun;
pub(crate) use held::Partly;
pub(crate) use limits::{Limits, Pace};
pub(crate) use race::Raced;

use crate::answer::{NoAnswer, Reply};
use crate::request::Request;
use crate::settings::Settings;
use connection::Dialer;
use semel_http::tls::TlsError;
use std::sync::Arc;
use std::time::Duration;

/// Sends requests, within the plan's limits.
pub(crate) struct Target {
    dialer: Dialer,
    timeout: Duration,
    pace: Arc<Pace>,
    pub(crate) limits: Arc<Limits>,
}

impl Target {
    /// # Errors
    /// The files for TLS cannot be used.
    pub(crate) fn new(plan: &Settings, pace: Arc<Pace>, limits: Arc<Limits>) -> Result<Self, TlsError> {
        Ok(Self { dialer: Dialer::new(plan)?, timeout: plan.timeout, pace, limits })
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn send(&self, request: &Request) -> Reply {
        self.take(std::slice::from_ref(request)).await?;
        self.send_now(request).await
    }

    async fn send_now(&self, request: &Request) -> Reply {
        let sending = async {
            let mut connection = self.dialer.open(request.node).await?;
            connection.send(request, None).await
        };
        tokio::time::timeout(self.timeout, sending)
            .await
            .unwrap_or(Err(NoAnswer::TimedOut(self.timeout.as_secs())))
    }

    /// Asks whether the API is ready. That is no part of the check, and it is asked even when nothing more is sent.
    pub(crate) async fn ask(&self, request: &Request) -> Reply {
        self.pace.wait(1).await;
        self.send_now(request).await
    }

    /// Opens a connection, sends the request or a part of it, and keeps the connection for the caller to drop.
    pub(crate) async fn begin(&self, request: &Request, how_much: Partly) -> Result<Begun, NoAnswer> {
        self.take(std::slice::from_ref(request)).await?;
        self.dialer.open(request.node).await?.begin(request, how_much).await
    }

    /// Whether the port accepts connections.
    pub(crate) async fn accepts(&self) -> bool {
        self.dialer.accepts().await
    }

    /// Waits until these requests may be sent, if they may.
    async fn take(&self, requests: &[Request]) -> Result<(), NoAnswer> {
        let writes = requests.iter().filter(|request| !request.method.is_safe()).count();
        self.limits.take(requests.len(), writes)?;
        self.pace.wait(requests.len()).await;
        Ok(())
    }
}
