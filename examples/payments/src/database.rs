//! The service's tables and statements. They live in the same file as Semel's own tables: that is what lets a payment and its
//! operation's completion share one commit.

use crate::account::Account;
use crate::payment::{Amount, CreatePayment, Payment};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, named_params};
use semel::Timestamp;
use semel_sqlite::{OpenError, SqliteStore, TransactionError};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// One account has one payment per merchant reference. The database holds that rule and not the code before it: between a look
/// and an insert another request has room.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS payments (
        id                 TEXT PRIMARY KEY,
        account            TEXT NOT NULL,
        merchant_reference TEXT NOT NULL,
        amount_hundredths  INTEGER NOT NULL CHECK (amount_hundredths > 0),
        currency           TEXT NOT NULL,
        created_at         INTEGER NOT NULL,
        UNIQUE (account, merchant_reference)
    ) STRICT;
";

/// Why the database was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The store was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The tables were not made.
    #[error("the tables of the payments could not be made")]
    Schema(#[from] TransactionError<rusqlite::Error>),
    /// The connection for reading was not opened.
    #[error("the payments cannot be read")]
    Reader(#[from] rusqlite::Error),
}

/// The service's file.
#[derive(Clone)]
pub(crate) struct Database {
    /// Semel's records; writes go through its transactions.
    pub(crate) store: SqliteStore,
    /// What only reads has a connection of its own, and never waits for a write.
    reader: Arc<Mutex<Connection>>,
}

impl Database {
    pub(crate) async fn open(path: &Path) -> Result<Self, DatabaseError> {
        let store = SqliteStore::open(path).await?;
        store.transaction(|tx| tx.execute_batch(SCHEMA)).await?;
        let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(Self { store, reader: Arc::new(Mutex::new(reader)) })
    }

    /// Reads on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Box<dyn std::error::Error + Send + Sync>> {
        let reader = Arc::clone(&self.reader);
        let reading = tokio::task::spawn_blocking(move || {
            // A reader that panicked has changed nothing.
            read(&reader.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Ok(reading.await??)
    }
}

/// What became of a payment that was to be recorded.
pub(crate) enum Recorded {
    /// It is there now.
    New,
    /// The account has a payment of this merchant reference already.
    Before(Payment),
}

/// Records a payment, unless there is one of the same account and merchant reference.
pub(crate) fn record(
    tx: &Connection,
    account: &Account,
    payment: &Payment,
    now: Timestamp,
) -> rusqlite::Result<Recorded> {
    let Payment { id, terms: CreatePayment { amount, currency, merchant_reference } } = payment;
    let inserted = tx
        .prepare_cached(
            "INSERT INTO payments (id, account, merchant_reference, amount_hundredths, currency, created_at)
             VALUES (:id, :account, :reference, :amount, :currency, :now)
             ON CONFLICT (account, merchant_reference) DO NOTHING",
        )?
        .execute(named_params! {
            ":id": id,
            ":account": account.as_str(),
            ":reference": merchant_reference.as_str(),
            ":amount": amount.hundredths(),
            ":currency": currency.as_str(),
            ":now": now.as_millis(),
        })?;
    if inserted == 1 {
        return Ok(Recorded::New);
    }
    tx.prepare_cached(&select("account = ?1 AND merchant_reference = ?2"))?
        .query_row([account.as_str(), merchant_reference.as_str()], payment_of)
        .map(Recorded::Before)
}

/// The account's payment with this id. Another account's is not there.
pub(crate) fn find(conn: &Connection, account: &Account, id: &str) -> rusqlite::Result<Option<Payment>> {
    conn.prepare_cached(&select("account = ?1 AND id = ?2"))?
        .query_row([account.as_str(), id], payment_of)
        .optional()
}

/// How many payments the account has.
pub(crate) fn count(conn: &Connection, account: &Account) -> rusqlite::Result<u32> {
    conn.prepare_cached("SELECT count(*) FROM payments WHERE account = ?1")?
        .query_row([account.as_str()], |row| row.get(0))
}

/// The account's newest payments, at most `limit`.
pub(crate) fn newest(conn: &Connection, account: &Account, limit: u32) -> rusqlite::Result<Vec<Payment>> {
    conn.prepare_cached(&select("account = ?1 ORDER BY created_at DESC, id DESC LIMIT ?2"))?
        .query_map((account.as_str(), limit), payment_of)?
        .collect()
}

fn select(which: &str) -> String {
    format!("SELECT id, amount_hundredths, currency, merchant_reference FROM payments WHERE {which}")
}

fn payment_of(row: &Row<'_>) -> rusqlite::Result<Payment> {
    let text = |column: usize, text: String, error: &str| {
        let what = format!("{text:?}: {error}").into();
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, what)
    };
    let (currency, reference): (String, String) = (row.get(2)?, row.get(3)?);
    Ok(Payment {
        id: row.get(0)?,
        terms: CreatePayment {
            amount: Amount::from_hundredths(row.get(1)?),
            currency: currency.clone().try_into().map_err(|error| text(2, currency, error))?,
            merchant_reference: reference.clone().try_into().map_err(|error| text(3, reference, error))?,
        },
    })
}
