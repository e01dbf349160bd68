//! Domain rows and completion in one PostgreSQL commit.

use super::operation::Operation;
use super::reply::{Replayable, Reply};
use super::same_transaction::CompleteError;
use semel::StoreError;
use semel_postgres::{CommitError, commit_with};
use sqlx::{Postgres, Transaction};

impl Operation {
    /// Completes the operation in the handler's own transaction, and commits it: payment, event and the answer that retries will get
    /// are there together, or none of them is.
    ///
    /// ```no_run
    /// # use http::StatusCode;
    /// # use semel_tower::{Operation, Replayable, Reply};
    /// # async fn create_payment(operation: Operation, db: sqlx::PgPool) -> Result<Replayable, Box<dyn std::error::Error>> {
    /// let mut tx = db.begin().await?;
    /// sqlx::query("INSERT INTO payments (id) VALUES ($1)").bind("pay_1").execute(&mut *tx).await?;
    /// let reply = Reply::json(StatusCode::CREATED, &serde_json::json!({ "id": "pay_1" }))?.resource("payment", "pay_1");
    /// Ok(operation.complete_in(tx, reply).await?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nothing was committed, or (with [`CompleteError::Unknown`]) that is unknown.
    pub async fn complete_in(
        &self,
        transaction: Transaction<'static, Postgres>,
        reply: Reply,
    ) -> Result<Replayable, CompleteError> {
        let finishing = self.finishing()?;
        let act = self.act(&reply, &finishing.ticket.outcome_writes());
        match commit_with(transaction, &finishing.ticket.claim(), &act).await {
            Ok(record) => Ok(finishing.committed(reply.stored, record.as_ref())),
            Err(CommitError::Store(StoreError::Lost(_))) => finishing.lost().await,
            Err(CommitError::Refused(refusal)) => Err(finishing.not_written(CompleteError::Refused(refusal))),
            Err(CommitError::Store(error)) => Err(finishing.not_written(CompleteError::Store(error))),
        }
    }
}
