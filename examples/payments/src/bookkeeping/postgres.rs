//! The books in a PostgreSQL database.

use super::CONSUMER;
use super::booking::{Booking, RECEIPTS_AT_ONCE, Receipt};
use crate::database::DatabaseError;
use crate::error::BoxError;
use crate::fail_point::FailPoint;
use semel_events::consumer::Failure;
use semel_events::inbox::{MessageId, PgInbox};
use semel_events::outbox::postgres::{AppendError, PgOutbox, append};
use semel_postgres::PgStore;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgPoolOptions};

/// The unique keys would hold also where the inbox's marks are forgotten.
const TABLES: [&str; 4] = [
    // Instances that start at the same moment would else trip over each other.
    "SELECT pg_advisory_xact_lock(6120082)",
    "CREATE TABLE IF NOT EXISTS general_ledger (
        payment            text PRIMARY KEY,
        account            text NOT NULL,
        amount_hundredths  bigint NOT NULL,
        currency           text NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS receipts (
        payment            text PRIMARY KEY,
        message            text NOT NULL,
        sent               boolean NOT NULL DEFAULT false
    )",
    "CREATE INDEX IF NOT EXISTS receipts_to_send ON receipts (payment) WHERE NOT sent",
];

#[derive(Clone)]
pub(super) struct PostgresBooks {
    pub(super) store: PgStore,
    pub(super) inbox: PgInbox,
    pub(super) notifies: bool,
    fail_point: FailPoint,
}

impl PostgresBooks {
    pub(super) async fn open(
        url: &str,
        notifies: bool,
        fail_point: FailPoint,
    ) -> Result<Self, DatabaseError> {
        let tables = |error: sqlx::Error| DatabaseError::Tables(error.into());
        let pool = PgPoolOptions::new().max_connections(16).connect(url).await.map_err(tables)?;
        let store = PgStore::new(pool.clone()).await?;
        let mut tx = semel_postgres::begin(&pool).await.map_err(tables)?;
        for statement in TABLES {
            sqlx::query(statement).execute(&mut *tx).await.map_err(tables)?;
        }
        tx.commit().await.map_err(tables)?;
        Ok(Self { store, inbox: PgInbox::new(pool, CONSUMER)?, notifies, fail_point })
    }

    pub(super) fn outbox(&self) -> PgOutbox {
        PgOutbox::of(&self.store)
    }

    pub(super) async fn book(&self, id: &MessageId, booking: Booking) -> Result<(), Failure> {
        let Some(steps) = self.inbox.steps::<Failure>(id).await? else { return Ok(()) };
        let _either = steps.effect(&booking.identity("ledger"), async |tx| enter(tx, &booking).await).await?;
        self.fail_point.reached("ledger").await;
        let _either =
            steps.effect(&booking.identity("receipt"), async |tx| queue(tx, booking.receipt()).await).await?;
        if let Some(notification) = &booking.notification {
            let telling = async |tx: &mut PgConnection| append(tx, notification).await.map_err(not_appended);
            let _either = steps.effect(&booking.identity("partner"), telling).await?;
        }
        self.fail_point.reached("partner").await;
        Ok(steps.finish::<Failure>().await?)
    }

    pub(super) async fn unsent(&self) -> Result<Vec<Receipt>, BoxError> {
        let unsent =
            sqlx::query("SELECT payment, message FROM receipts WHERE NOT sent ORDER BY payment LIMIT $1");
        let rows = unsent.bind(RECEIPTS_AT_ONCE).fetch_all(self.store.pool()).await?;
        let receipts = rows.iter().map(|row| Ok(Receipt { payment: row.try_get(0)?, text: row.try_get(1)? }));
        Ok(receipts.collect::<sqlx::Result<_>>()?)
    }

    pub(super) async fn sent(&self, payment: String) -> Result<(), BoxError> {
        let noting = sqlx::query("UPDATE receipts SET sent = true WHERE payment = $1").bind(payment);
        let mut tx = semel_postgres::begin(self.store.pool()).await?;
        noting.execute(&mut *tx).await?;
        Ok(tx.commit().await?)
    }
}

async fn enter(tx: &mut PgConnection, booking: &Booking) -> sqlx::Result<()> {
    let payment = &booking.payment;
    sqlx::query(
        "INSERT INTO general_ledger (payment, account, amount_hundredths, currency) VALUES ($1, $2, $3, $4)",
    )
    .bind(&payment.id)
    .bind(&payment.account)
    .bind(payment.terms.amount.hundredths())
    .bind(payment.terms.currency.as_str())
    .execute(tx)
    .await
    .map(drop)
}

async fn queue(tx: &mut PgConnection, receipt: Receipt) -> sqlx::Result<()> {
    let queueing = sqlx::query("INSERT INTO receipts (payment, message) VALUES ($1, $2)");
    queueing.bind(receipt.payment).bind(receipt.text).execute(tx).await.map(drop)
}

fn not_appended(error: AppendError) -> Failure {
    match error {
        AppendError::Sqlx(error) => error.into(),
        error => Failure::Failed(error.to_string()),
    }
}
