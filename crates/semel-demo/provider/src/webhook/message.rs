//! What a webhook says.

use crate::entry::{Entry, Object, Outcome, WebhookResponse};
use crate::receipt::Receipt;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) struct Message {
    /// The same for every delivery of this entry.
    pub(super) id: String,
    pub(super) body: String,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<&'a str>,
    attempt: u32,
    outcome: &'static str,
    response: WebhookResponse,
    #[serde(rename = "type")]
    kind: &'static str,
    data: Value,
}

impl Message {
    /// The message of an entry; none for those that are about no charge or refund.
    pub(super) fn of(entry: &Entry) -> Option<serde_json::Result<Self>> {
        entry.transaction().map(|(transaction, outcome)| {
            let receipt = Receipt::of(transaction, outcome)?;
            let data = serde_json::from_str(&receipt.body)?;
            let kind = match (transaction.object(), outcome) {
                (Object::Charge, Outcome::Succeeded) => "charge.succeeded",
                (Object::Charge, Outcome::Declined) => "charge.declined",
                (Object::Refund, Outcome::Succeeded) => "refund.succeeded",
                (Object::Refund, Outcome::Declined) => "refund.declined",
            };
            let body = Body {
                operation_id: transaction.operation_id.as_deref(),
                attempt: transaction.attempt,
                outcome: match outcome {
                    Outcome::Succeeded => "completed",
                    Outcome::Declined => "failed",
                },
                response: transaction.webhook_response.clone().unwrap_or_else(|| own_answer(receipt)),
                kind,
                data,
            };
            Ok(Self { id: format!("msg_{}", transaction.id), body: serde_json::to_string(&body)? })
        })
    }
}

fn own_answer(receipt: Receipt) -> WebhookResponse {
    let headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
    WebhookResponse { status: receipt.status, headers, body: receipt.body }
}
