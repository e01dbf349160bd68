//! The books in a SQLite file.

use super::CONSUMER;
use super::booking::{Booking, RECEIPTS_AT_ONCE, Receipt};
use crate::database::DatabaseError;
use crate::error::BoxError;
use crate::fail_point::FailPoint;
use rusqlite::Connection;
use semel_events::consumer::Failure;
use semel_events::inbox::{MessageId, SqliteInbox};
use semel_events::outbox::sqlite::{AppendError, SqliteOutbox, append};
use semel_sqlite::{SqliteStore, Transaction};
use std::path::Path;

/// The unique keys would hold also where the inbox's marks are forgotten.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS general_ledger (
        payment            TEXT PRIMARY KEY,
        account            TEXT NOT NULL,
        amount_hundredths  INTEGER NOT NULL,
        currency           TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS receipts (
        payment            TEXT PRIMARY KEY,
        message            TEXT NOT NULL,
        sent               INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX IF NOT EXISTS receipts_to_send ON receipts (payment) WHERE NOT sent;
";

#[derive(Clone)]
pub(super) struct SqliteBooks {
    pub(super) store: SqliteStore,
    pub(super) inbox: SqliteInbox,
    pub(super) notifies: bool,
    fail_point: FailPoint,
}

impl SqliteBooks {
    pub(super) async fn open(
        path: &Path,
        notifies: bool,
        fail_point: FailPoint,
    ) -> Result<Self, DatabaseError> {
        let store = SqliteStore::open(path).await?;
        let made = store.transaction(|tx| tx.execute_batch(TABLES)).await;
        made.map_err(|error| DatabaseError::Tables(error.into()))?;
        Ok(Self { inbox: SqliteInbox::new(store.clone(), CONSUMER)?, store, notifies, fail_point })
    }

    pub(super) fn outbox(&self) -> SqliteOutbox {
        SqliteOutbox::of(&self.store)
    }

    pub(super) async fn book(&self, id: &MessageId, booking: Booking) -> Result<(), Failure> {
        let Some(steps) = self.inbox.steps::<Failure>(id).await? else { return Ok(()) };
        let (entry, receipt) = (booking.clone(), booking.receipt());
        let _either = steps.effect(&booking.identity("ledger"), move |tx| enter(tx, &entry)).await?;
        self.fail_point.reached("ledger").await;
        let _either = steps.effect(&booking.identity("receipt"), move |tx| queue(tx, &receipt)).await?;
        if let Some(notification) = booking.notification.clone() {
            let telling = move |tx: &Transaction<'_>| append(tx, &[notification]).map_err(not_appended);
            let _either = steps.effect(&booking.identity("partner"), telling).await?;
        }
        self.fail_point.reached("partner").await;
        Ok(steps.finish::<Failure>().await?)
    }

    pub(super) async fn unsent(&self) -> Result<Vec<Receipt>, BoxError> {
        let reading = |conn: &Connection, _| {
            conn.prepare_cached(
                "SELECT payment, message FROM receipts WHERE NOT sent ORDER BY payment LIMIT ?1",
            )?
            .query_map([RECEIPTS_AT_ONCE], |row| Ok(Receipt { payment: row.get(0)?, text: row.get(1)? }))?
            .collect::<rusqlite::Result<_>>()
        };
        Ok(self.store.query(reading).await?)
    }

    pub(super) async fn sent(&self, payment: String) -> Result<(), BoxError> {
        let noting = move |tx: &Transaction<'_>| {
            tx.prepare_cached("UPDATE receipts SET sent = 1 WHERE payment = ?1")?.execute([payment]).map(drop)
        };
        Ok(self.store.transaction(noting).await?)
    }
}

fn enter(tx: &Transaction<'_>, booking: &Booking) -> rusqlite::Result<()> {
    let payment = &booking.payment;
    let (amount, currency) = (payment.terms.amount.hundredths(), payment.terms.currency.as_str());
    tx.prepare_cached(
        "INSERT INTO general_ledger (payment, account, amount_hundredths, currency) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute((&payment.id, &payment.account, amount, currency))
    .map(drop)
}

fn queue(tx: &Transaction<'_>, receipt: &Receipt) -> rusqlite::Result<()> {
    tx.prepare_cached("INSERT INTO receipts (payment, message) VALUES (?1, ?2)")?
        .execute([&receipt.payment, &receipt.text])
        .map(drop)
}

fn not_appended(error: AppendError) -> Failure {
    match error {
        AppendError::Sqlite(error) => error.into(),
        error => Failure::Failed(error.to_string()),
    }
}
