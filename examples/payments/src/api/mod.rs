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
use crate::error::ApiError;
use crate::fail_point::FailPoint;
use crate::payment::CHARGED;
use crate::provider::{Call, Promised, Provider, ProviderOptions};
use crate::verdict::Verdict;
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use gateway::GatewaysName;
use semel::{OperationId, Phases, Store};
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
