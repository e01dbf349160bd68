//! What the ledger holds, one entry per line.

use crate::money::{Amount, Currency};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One line of the ledger.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Entries are numbered from 1 without a gap: a line that is missing is noticed.
    pub(crate) sequence: u64,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    #[serde(flatten)]
    pub(crate) fact: Fact,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Fact {
    /// Money was taken.
    Charge(Transaction),
    /// Money was given back.
    Refund(Transaction),
    /// Nothing was moved, and that is the answer from now on.
    Declined(Transaction),
    /// It was said that nothing is known of this identity: attempts up to this one have no effect any more.
    Sealed { object: Object, identity: String, attempt: u32 },
    /// The webhook of this entry was taken.
    Delivered { entry: u64 },
}

/// What an identity stands for. The same identity may name a charge and a refund, and these are two things.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Object {
    Charge,
    Refund,
}

/// A charge or a refund, made or declined.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) id: String,
    pub(crate) identity: String,
    pub(crate) attempt: u32,
    #[serde(flatten)]
    pub(crate) terms: Terms,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) operation_id: Option<String>,
    /// Whether a webhook is to be sent: there was one configured when this happened.
    #[serde(default)]
    pub(crate) notify: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_response: Option<WebhookResponse>,
}

impl Transaction {
    pub(crate) fn object(&self) -> Object {
        if self.terms.charge_id.is_some() { Object::Refund } else { Object::Charge }
    }
}

/// What two requests must agree in to be the same one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// The charge to give back; a charge itself has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) charge_id: Option<String>,
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
    pub(crate) reference: String,
}

/// What whoever ordered this would have its own client be told. The provider cannot know that, and hands on what it was given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookResponse {
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Succeeded,
    Declined,
}

impl Entry {
    /// The charge or refund that this entry is about, if it is.
    pub(crate) fn transaction(&self) -> Option<(&Transaction, Outcome)> {
        match &self.fact {
            Fact::Charge(transaction) | Fact::Refund(transaction) => Some((transaction, Outcome::Succeeded)),
            Fact::Declined(transaction) => Some((transaction, Outcome::Declined)),
            Fact::Sealed { .. } | Fact::Delivered { .. } => None,
        }
    }

    /// As a line of the ledger, with its end.
    pub(crate) fn line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Shows entries that are shared.
pub(crate) fn shared<S: Serializer>(entries: &[Arc<Entry>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(entries.iter().map(Arc::as_ref))
}
