//! A bounded wait for another request's answer.

use super::begin::{BeginError, Decision, Fingerprinted};
use super::{Engine, moment_after};
use crate::identity::OperationId;
use std::time::Duration;
use tokio::time::Instant;

/// Between two looks at the store. Reads of many waiters share a batch, so a short pause costs little; it grows, because what
/// has not ended soon will not end at once either.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

impl Engine {
    /// Watches the store until the operation has ended, `patience` runs out, or it turns out that it will not end: a waiter never
    /// becomes an owner. Nothing is remembered of waiters but their number, in all and of each tenant.
    pub(super) async fn wait(
        &self,
        asked: &Fingerprinted<'_>,
        operation_id: Option<OperationId>,
        retry_after: Duration,
        patience: Duration,
    ) -> Result<Decision, BeginError> {
        let still = Decision::InProgress { operation_id, retry_after };
        let Some(_place) = self.shared.waiters.place(&asked.incoming.key.tenant) else {
            return Ok(still);
        };
        let deadline = moment_after(patience);
        let mut pause = FIRST_PAUSE;
        while Instant::now() < deadline {
            tokio::time::sleep_until((Instant::now() + pause).min(deadline)).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            let (now, record) = self.shared.store.read(&asked.key).await?;
            let Some(record) = record else {
                // The owner released it, or an open transaction hides it: the client may try again.
                if operation_id.is_some() {
                    return Ok(still);
                }
                continue;
            };
            let found = Some(record.operation_id);
            match self.look(asked, record, now).await? {
                Some(decision) => return Ok(decision),
                None if operation_id.is_none() || operation_id == found => {}
                // The owner released it, and another request executes.
                None => return Ok(Decision::InProgress { operation_id: found, retry_after }),
            }
        }
        Ok(still)
    }
}
