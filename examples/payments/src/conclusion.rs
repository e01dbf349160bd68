//! What an operation came to, and the answer that all its requests get.

use crate::error::GivenUp;
use crate::payment::{CreatePayment, Payment, Status};
use crate::refund::Refund;
use crate::verdict::Verdict;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use semel_tower::Reply;
use serde::Serialize;

/// What an operation came to: what its last commit writes, and what its requests are answered.
pub(crate) enum Conclusion {
    /// A payment that no provider has a part in.
    Booked(Payment),
    /// The provider has charged the payment or declined it, as its status says.
    Charged { payment: Payment, charge_id: Option<String> },
    /// The account has a payment of this merchant reference already.
    Existing { asked: CreatePayment, existing: Payment },
    /// The provider has given the money back, or declined to.
    Refunded { refund: Refund, status: Status },
}

impl Conclusion {
    /// What the provider said of a payment.
    pub(crate) fn charged(payment: Payment, verdict: Verdict) -> Self {
        match verdict {
            Verdict::Succeeded { id } => {
                Self::Charged { payment: payment.with(Status::Completed), charge_id: Some(id) }
            }
            Verdict::Declined { .. } => {
                Self::Charged { payment: payment.with(Status::Declined), charge_id: None }
            }
        }
    }

    /// What the provider said of a refund.
    pub(crate) fn refunded(refund: Refund, verdict: &Verdict) -> Self {
        let status = match verdict {
            Verdict::Succeeded { .. } => Status::Completed,
            Verdict::Declined { .. } => Status::Declined,
        };
        Self::Refunded { refund, status }
    }

    /// The answer that every request of the operation gets.
    pub(crate) fn reply(&self) -> Result<Reply, GivenUp> {
        match self {
            Self::Booked(payment) | Self::Charged { payment, .. } => {
                let made = match payment.status {
                    Status::Declined => reply(StatusCode::PAYMENT_REQUIRED, payment)?.failed(),
                    _ => reply(StatusCode::CREATED, payment)?,
                };
                located(made, "payment", &payment.id)
            }
            // A new key for a payment that was made: the client has lost its key, or never kept it. It gets its payment.
            Self::Existing { asked, existing } if existing.terms == *asked => {
                located(reply(StatusCode::OK, existing)?, "payment", &existing.id)
            }
            Self::Existing { existing, .. } => Err(GivenUp::ReferenceTaken(Box::new(existing.clone()))),
            Self::Refunded { refund, status } => {
                #[derive(Serialize)]
                struct Answer<'a> {
                    #[serde(flatten)]
                    refund: &'a Refund,
                    status: Status,
                }
                let answer = Answer { refund, status: *status };
                let made = match status {
                    Status::Declined => reply(StatusCode::PAYMENT_REQUIRED, &answer)?.failed(),
                    _ => reply(StatusCode::CREATED, &answer)?,
                };
                Ok(made.resource("refund", &refund.id))
            }
        }
    }
}

fn reply(status: StatusCode, body: &impl Serialize) -> Result<Reply, GivenUp> {
    Ok(Reply::json(status, body)?.schema_version("v1"))
}

fn located(reply: Reply, kind: &str, id: &str) -> Result<Reply, GivenUp> {
    Ok(reply.header(LOCATION, HeaderValue::try_from(format!("/{kind}s/{id}"))?).resource(kind, id))
}
