//! What a statement would do, and what the client's next retry would get: by the real rules and the layer's real responses, without a write.

use super::statement::Statement;
use super::{ActError, Acts, MovedOn, Operator, Seen};
use crate::identity::Role;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use semel::audit::AuditAction;
use semel::transition::{About, Refusal, Settlement, Windows};
use semel::{Actor, Forecast, OperationId, OperatorTerms, Owner, Policy, Record};
use semel_tower::Protection;
use std::sync::Arc;

/// What a statement would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DryRun {
    /// The operation as it would be.
    pub seen: Seen,
    /// What the client's next retry would get.
    pub next: NextRetry,
}

/// What a client's next retry gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NextRetry {
    /// It executes.
    Executes {
        /// As this attempt.
        attempt: u32,
    },
    /// It is answered, and nothing is executed.
    Answered {
        /// The status.
        status: u16,
        /// The header fields that the layer adds or replays, in order.
        headers: Vec<(String, Bytes)>,
        /// The body.
        body: Bytes,
    },
}

impl Acts {
    /// What this statement would do. The reason may be empty, and where no attempt is named, the current one is meant.
    ///
    /// # Errors
    /// Why the statement would be refused.
    pub async fn dry_run(
        &self,
        operator: &Operator,
        id: OperationId,
        mut statement: Statement,
    ) -> Result<DryRun, ActError> {
        self.require(operator, Role::Operator, AuditAction::Settle, Some(id.to_string())).await?;
        let seen = self.seen(operator, id).await?;
        let (_, found) = self.engine.find(id).await?;
        let record = found.ok_or(ActError::NoSuchOperation)?;
        let policy = (self.policies)(&record.key.operation);
        if statement.reason.trim().is_empty() {
            statement.reason = "dry run".into();
        }
        statement.attempt = statement.attempt.or(Some(record.attempt));
        let checked = statement.checked(policy.store_response);
        let checked = checked.map_err(|error| ActError::Invalid(error.to_string()))?;
        let moved = |why| ActError::Moved { why, seen: Box::new(seen.clone()) };
        if checked.version.is_some_and(|version| version != record.version) {
            return Err(moved(MovedOn::OtherVersion));
        }
        let settlement = Settlement {
            settler: Owner::random(),
            actor: Actor::Operator(operator.identity.to_string()),
            evidence: checked.evidence,
            note: Some(checked.reason),
            windows: Windows::from(&*policy),
        };
        let about = About { operation_id: id, attempt: checked.attempt };
        let terms = OperatorTerms { version: checked.version, after_lease: checked.after_lease };
        let now = self.engine.store().now().await?;
        let foreseen = self.engine.forecast_settled(&record, &about, &settlement, terms, &policy, now)?;
        let (settled, forecast) = foreseen.map_err(|refusal| match refusal {
            Refusal::OtherAttempt => moved(MovedOn::OtherAttempt),
            Refusal::LeaseRunning => moved(MovedOn::LeaseRunning),
            _ => moved(MovedOn::NotUnknown),
        })?;
        let next = self.next_retry(forecast, &policy).await;
        let record = Record { key: seen.record.key.clone(), ..settled };
        Ok(DryRun { seen: Seen { record, now: now.earliest }, next })
    }

    /// What the client's next retry gets as the operation is now.
    ///
    /// # Errors
    /// There is no such operation, or the store failed.
    pub async fn next_retry_now(&self, operator: &Operator, id: OperationId) -> Result<NextRetry, ActError> {
        self.seen(operator, id).await?;
        let (_, found) = self.engine.find(id).await?;
        let record = found.ok_or(ActError::NoSuchOperation)?;
        let policy = (self.policies)(&record.key.operation);
        let now = self.engine.store().now().await?;
        let mut forecast = self.engine.forecast(record, &policy, now)?;
        // A stored answer is shown to operators who ask for it, and then it is in the audit.
        if let Forecast::Answered(semel::Decision::Replay(record)) = &mut forecast
            && let Some(response) = &mut record.response
            && let semel::Body::Stored(bytes) = &mut response.body
        {
            *bytes = Bytes::new();
        }
        Ok(self.next_retry(forecast, &policy).await)
    }

    async fn next_retry(&self, forecast: Forecast, policy: &Arc<Policy>) -> NextRetry {
        let decision = match forecast {
            Forecast::Executes { attempt } => return NextRetry::Executes { attempt },
            Forecast::Answered(decision) => decision,
        };
        let protection = Protection { policy: Arc::clone(policy), ..Protection::default() };
        let Some(response) = self.layer.answer(decision, &protection) else {
            return NextRetry::Executes { attempt: 1 };
        };
        let (parts, body) = response.into_parts();
        let fields = parts.headers.iter();
        let fields =
            fields.map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        // It is in memory as a whole: nothing can fail.
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        NextRetry::Answered { status: parts.status.as_u16(), headers: fields.collect(), body }
    }
}
