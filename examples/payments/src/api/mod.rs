//! The routes, and what their handlers share.

mod gateway;
mod operations;
mod payments;
mod refunds;
mod webhooks;

pub(crate) use gateway::keep_name;
pub(crate) use webhooks::{SOURCE as WEBHOOK_SOURCE, routes as webhook_routes};

use crate::database::Database;
use crate::demo::Demo;
use crate::error::{ApiError, GivenUp};
use crate::fail_point::FailPoint;
use crate::payment::{CHARGED, CreatePayment, Payment, Status};
use crate::provider::{Call, Promised, Provider, ProviderOptions, Verdict};
use crate::refund::Refund;
use axum::Router;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::{get, post};
use gateway::GatewaysName;
use semel::{OperationId, Phases, Store};
use semel_tower::Reply;
use serde::Serialize;
use std::sync::Arc;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) provider: Option<Arc<ProviderOptions>>,
    pub(crate) demo: Demo,
    pub(crate) fail_point: FailPoint,
}

impl Shared {
    /// Notes under which name the gateway will ask about an operation, before anything of it is done.
    async fn note_name(&self, operation: OperationId, name: GatewaysName) -> Result<(), ApiError> {
        let Some(name) = name.0 else { return Ok(()) };
        self.database.note_name(name, operation).await.map_err(ApiError::NothingWritten)
    }

    /// The phase in which the money moves: one call to the provider, and what it said for certain.
    async fn call_provider(
        &self,
        options: &ProviderOptions,
        phases: &mut Phases,
        operation: OperationId,
        headers: &HeaderMap,
        call: Call<'_>,
    ) -> Result<Verdict, ApiError> {
        let provider = Provider { options, operation, mode: self.demo.provider_mode(headers) };
        let verdict = phases
            .foreign(CHARGED, Promised { provider: &provider, call }, async |identity| {
                self.fail_point.reached("charged:sent").await;
                let verdict = provider.call(identity, call).await;
                self.fail_point.reached("charged:answered").await;
                verdict
            })
            .await?;
        self.fail_point.reached("charged").await;
        Ok(verdict)
    }
}

pub(crate) fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/payments", post(payments::create).get(payments::list))
        .route("/payments/{id}", get(payments::show))
        .route("/payments/{id}/refunds", post(refunds::create))
        .route("/operations/{id}", get(operations::show))
        .with_state(shared)
}

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
