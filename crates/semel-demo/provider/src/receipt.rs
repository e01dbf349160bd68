//! What the provider says of a charge or refund. It follows from the entry alone, and so is the same, byte for byte, however
//! often it is asked for.

use crate::entry::{Outcome, Terms, Transaction};
use serde::Serialize;

pub(crate) struct Receipt {
    pub(crate) status: u16,
    pub(crate) body: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(flatten)]
    terms: &'a Terms,
    identity: &'a str,
    attempt: u32,
}

impl Receipt {
    pub(crate) fn of(transaction: &Transaction, outcome: Outcome) -> serde_json::Result<Self> {
        let (http_status, status, code) = match outcome {
            Outcome::Succeeded => (201, "succeeded", None),
            Outcome::Declined => (402, "declined", Some("card_declined")),
        };
        let Transaction { id, identity, attempt, terms, .. } = transaction;
        let shown = Shown { id, status, code, terms, identity, attempt: *attempt };
        Ok(Self { status: http_status, body: serde_json::to_string(&shown)? })
    }
}
