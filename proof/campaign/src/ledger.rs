//! The provider's ledger: what was done.

use crate::client::get;
use crate::outcome::Outcome;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What was done.
#[derive(Default)]
pub(crate) struct Ledger {
    /// How often each reference was charged.
    pub(crate) charged: BTreeMap<String, u32>,
    /// By which attempts of each operation, whose id is in hexadecimal digits alone.
    pub(crate) attempts: BTreeMap<String, Vec<i64>>,
}

impl Ledger {
    pub(crate) fn add(&mut self, reference: &str, operation_id: &str, attempt: i64) {
        *self.charged.entry(reference.to_owned()).or_default() += 1;
        self.attempts.entry(operation_id.replace('-', "")).or_default().push(attempt);
    }

    /// What the provider has in it.
    pub(crate) async fn of(provider: SocketAddr) -> Outcome<Self> {
        let mut ledger = Self::default();
        let mut after = 0;
        loop {
            let page = page(provider, after).await?;
            for entry in
                page["entries"].as_array().into_iter().flatten().filter(|entry| entry["kind"] == "charge")
            {
                let text = |member: &str| entry[member].as_str().unwrap_or_default();
                ledger.add(
                    text("reference"),
                    text("identity"),
                    entry["attempt"].as_i64().unwrap_or_default(),
                );
            }
            match page["next"].as_u64() {
                Some(next) => after = next,
                None => return Ok(ledger),
            }
        }
    }
}

/// Part of the provider's ledger, from the entry after this one on.
pub(crate) async fn page(provider: SocketAddr, after: u64) -> Outcome<Value> {
    get(provider, &format!("/ledger?after={after}")).await
}
