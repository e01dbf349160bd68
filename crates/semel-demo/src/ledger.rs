//! The provider, seen from the demo: what its ledger says, and who is kept waiting there. Asked past service and gateway, for the
//! effect is counted where it happens.

use super::client::{Client, ClientError, Request};
use super::part::service;
use http::Method;
use serde_json::Value;
use std::net::SocketAddr;

#[derive(Clone, Copy)]
pub(super) struct Ledger {
    pub(super) address: SocketAddr,
}

/// A charge that is in the ledger.
pub(super) struct Charge {
    pub(super) id: String,
}

impl Ledger {
    /// How many charges were made in all.
    pub(super) async fn charges(self) -> Result<u64, ClientError> {
        let summary = self.ask(Method::GET, "/ledger/summary", String::new()).await?;
        summary["charges"].as_u64().ok_or_else(|| ClientError::Senseless(summary.to_string()))
    }

    /// The one charge of an operation; `None` for no charge and for several.
    pub(super) async fn charge_of(self, operation: &str) -> Result<Option<Charge>, ClientError> {
        let path = format!("/ledger/by-identity/{}", service::identity(operation));
        let deeds = self.ask(Method::GET, &path, String::new()).await?;
        let id = deeds["entries"][0]["id"].as_str().filter(|_| deeds["charges"] == 1);
        Ok(id.map(|id| Charge { id: id.to_owned() }))
    }

    /// Waits until a request is kept waiting at the provider: in the middle is then a fact, and not a guess about time.
    pub(super) async fn until_one_waits(self) -> Result<(), ClientError> {
        let waiting = self.ask(Method::GET, "/stalls?at_least=1", String::new()).await?;
        if waiting["after"].as_u64() >= Some(1) {
            return Ok(());
        }
        Err(ClientError::Senseless("no request has come to the provider".into()))
    }

    /// Lets go whoever is kept waiting.
    pub(super) async fn let_go(self) -> Result<(), ClientError> {
        self.ask(Method::DELETE, "/stalls", String::new()).await.map(drop)
    }

    /// From now on, whoever is kept waiting is so for this long.
    pub(super) async fn keep_waiting_for(self, duration: &str) -> Result<(), ClientError> {
        self.ask(Method::PUT, "/settings", format!(r#"{{"stall":"{duration}"}}"#)).await.map(drop)
    }

    async fn ask(self, method: Method, path: &str, body: String) -> Result<Value, ClientError> {
        let answer = Client { address: self.address }.send(&Request::plain(method, path, body)).await?;
        let document = serde_json::from_slice(&answer.body).ok().filter(|_| answer.status.is_success());
        document.ok_or_else(|| ClientError::Senseless(format!("{answer:?}")))
    }
}
