//! Payments in a SQLite file.

use super::{DatabaseError, Recorded, RefundAsked, refundable};
use crate::account::Account;
use crate::conclusion::Conclusion;
use crate::error::{ApiError, BoxError, GivenUp};
use crate::fail_point::FailPoint;
use crate::payment::{Amount, CREATED, CreatePayment, Payment, Status};
use crate::refund::{Granted, Refund};
use crate::telling::PaymentCreated;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, named_params};
use semel::{OperationId, PhaseError, Phases, Timestamp};
use semel_events::outbox::sqlite::append;
use semel_sqlite::{SqliteStore, Transaction, TransactionError};
use semel_tower::{Operation, Replayable, Reply};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// One account has one payment per merchant reference, those aside that were declined. The database holds that rule and not the
/// code before it: between a look and an insert another request has room. So it is with the ledger's entries.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS payments (
        id                 TEXT PRIMARY KEY,
        account            TEXT NOT NULL,
        merchant_reference TEXT NOT NULL,
        amount_hundredths  INTEGER NOT NULL CHECK (amount_hundredths > 0),
        currency           TEXT NOT NULL,
        status             TEXT NOT NULL,
        charge_id          TEXT,
        created_at         INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX IF NOT EXISTS one_payment_per_reference
        ON payments (account, merchant_reference) WHERE status <> 'declined';
    CREATE TABLE IF NOT EXISTS refunds (
        id                 TEXT PRIMARY KEY,
        payment_id         TEXT NOT NULL REFERENCES payments (id),
        amount_hundredths  INTEGER NOT NULL CHECK (amount_hundredths > 0),
        status             TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS refunds_of_payment ON refunds (payment_id);
    CREATE TABLE IF NOT EXISTS gateway_names (
        name               TEXT PRIMARY KEY,
        operation          TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS ledger (
        entry              TEXT PRIMARY KEY,
        account            TEXT NOT NULL,
        amount_hundredths  INTEGER NOT NULL,
        currency           TEXT NOT NULL
    ) STRICT;
";

const COLUMNS: &str = "id, amount_hundredths, currency, merchant_reference, status";

#[derive(Clone)]
pub(crate) struct SqliteDatabase {
    /// Semel's records; writes go through its transactions.
    pub(super) store: SqliteStore,
    /// What only reads has a connection of its own, and never waits for a write.
    reader: Arc<Mutex<Connection>>,
    /// Whether others are told of payments.
    tells: bool,
}

impl SqliteDatabase {
    pub(super) async fn open(path: &Path, tells: bool) -> Result<Self, DatabaseError> {
        let store = SqliteStore::open(path).await?;
        let made = store.transaction(|tx| tx.execute_batch(TABLES)).await;
        made.map_err(|error| DatabaseError::Tables(error.into()))?;
        let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|reader| reader.pragma_update(None, "query_only", true).map(|()| reader))
            .map_err(|error| DatabaseError::Tables(error.into()))?;
        Ok(Self { store, reader: Arc::new(Mutex::new(reader)), tells })
    }

    pub(super) async fn create_payment(
        &self,
        phases: &mut Phases,
        account: &Account,
        payment: &Payment,
        fail_point: &FailPoint,
    ) -> Result<Recorded, PhaseError<GivenUp>> {
        let (account, payment, fail_point) = (account.clone(), payment.clone(), fail_point.clone());
        self.store
            .phase(phases, CREATED, move |tx| {
                let recorded = record(tx, &account, &payment, tx.now())?;
                fail_point.reached_blocking("created:in_transaction");
                Ok::<_, GivenUp>(recorded)
            })
            .await
    }

    pub(super) async fn create_refund(
        &self,
        phases: &mut Phases,
        account: &Account,
        asked: &RefundAsked,
        fail_point: &FailPoint,
    ) -> Result<Granted, PhaseError<GivenUp>> {
        let (account, asked, fail_point) = (account.clone(), asked.clone(), fail_point.clone());
        self.store
            .phase(phases, CREATED, move |tx| {
                let granted = record_refund(tx, &account, asked)?;
                fail_point.reached_blocking("created:in_transaction");
                Ok(granted)
            })
            .await
    }

    pub(super) async fn conclude(
        &self,
        operation: &Operation,
        account: &Account,
        conclusion: Conclusion,
        fail_point: &FailPoint,
    ) -> Result<Replayable, ApiError> {
        let (account, fail_point, tells) = (account.clone(), fail_point.clone(), self.tells);
        let concluded = operation
            .complete_with(&self.store, move |tx| {
                let reply = conclude(tx, &account, conclusion, tells)?;
                fail_point.reached_blocking("completing:in_transaction");
                Ok::<_, GivenUp>(reply)
            })
            .await?;
        Ok(concluded)
    }

    pub(super) async fn settle(&self, account: &Account, conclusion: Conclusion) -> Result<Reply, GivenUp> {
        let (account, tells) = (account.clone(), self.tells);
        let settled = self.store.transaction(move |tx| conclude(tx, &account, conclusion, tells)).await;
        settled.map_err(|error| match error {
            TransactionError::Application(why) => why,
            error => GivenUp::Failed(error.to_string().into()),
        })
    }

    pub(super) async fn note_name(&self, name: OperationId, operation: OperationId) -> Result<(), BoxError> {
        let names = (name.to_string(), operation.to_string());
        let noting = self.store.transaction(move |tx| {
            tx.prepare_cached(
                "INSERT INTO gateway_names (name, operation) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?
            .execute(names)
            .map(drop)
        });
        Ok(noting.await?)
    }

    pub(super) async fn named(&self, name: OperationId) -> Result<Option<String>, BoxError> {
        self.read(move |conn| {
            conn.prepare_cached("SELECT operation FROM gateway_names WHERE name = ?1")?
                .query_row([name.to_string()], |row| row.get(0))
                .optional()
        })
        .await
    }

    pub(super) async fn find_refund(
        &self,
        account: &Account,
        id: String,
    ) -> Result<Option<Granted>, BoxError> {
        let account = account.clone();
        self.read(move |conn| {
            conn.prepare_cached(
                "SELECT refunds.id, payments.id, refunds.amount_hundredths, currency, charge_id
                 FROM refunds JOIN payments ON payments.id = payment_id WHERE account = ?1 AND refunds.id = ?2",
            )?
            .query_row([account.as_str(), &id], refund_of)
            .optional()
        })
        .await
    }

    pub(super) async fn find(&self, account: &Account, id: &str) -> Result<Option<Payment>, BoxError> {
        let (account, id) = (account.clone(), id.to_owned());
        self.read(move |conn| {
            conn.prepare_cached(&select("account = ?1 AND id = ?2"))?
                .query_row([account.as_str(), &id], payment_of)
                .optional()
        })
        .await
    }

    pub(super) async fn newest(
        &self,
        account: &Account,
        limit: u32,
    ) -> Result<(u32, Vec<Payment>), BoxError> {
        let account = account.clone();
        self.read(move |conn| {
            let count = conn
                .prepare_cached("SELECT count(*) FROM payments WHERE account = ?1")?
                .query_row([account.as_str()], |row| row.get(0))?;
            let newest = conn
                .prepare_cached(&select("account = ?1 ORDER BY created_at DESC, id DESC LIMIT ?2"))?
                .query_map((account.as_str(), limit), payment_of)?
                .collect::<Result<_, _>>()?;
            Ok((count, newest))
        })
        .await
    }

    /// Reads on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BoxError> {
        let reader = Arc::clone(&self.reader);
        let reading = tokio::task::spawn_blocking(move || {
            // A reader that panicked has changed nothing.
            read(&reader.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Ok(reading.await??)
    }
}

/// Records a payment, unless there is one of the same account and merchant reference.
fn record(
    tx: &Connection,
    account: &Account,
    payment: &Payment,
    now: Timestamp,
) -> rusqlite::Result<Recorded> {
    let Payment { id, terms: CreatePayment { amount, currency, merchant_reference }, status } = payment;
    let inserted = tx
        .prepare_cached(
            "INSERT INTO payments (id, account, merchant_reference, amount_hundredths, currency, status, created_at)
             VALUES (:id, :account, :reference, :amount, :currency, :status, :now)
             ON CONFLICT (account, merchant_reference) WHERE status <> 'declined' DO NOTHING",
        )?
        .execute(named_params! {
            ":id": id,
            ":account": account.as_str(),
            ":reference": merchant_reference.as_str(),
            ":amount": amount.hundredths(),
            ":currency": currency.as_str(),
            ":status": status.in_row(),
            ":now": now.as_millis(),
        })?;
    if inserted == 1 {
        return Ok(Recorded::New);
    }
    tx.prepare_cached(&select("account = ?1 AND merchant_reference = ?2 AND status <> 'declined'"))?
        .query_row([account.as_str(), merchant_reference.as_str()], payment_of)
        .map(Recorded::Before)
}

fn record_refund(tx: &Connection, account: &Account, asked: RefundAsked) -> Result<Granted, GivenUp> {
    let payment = tx
        .prepare_cached(&select("account = ?1 AND id = ?2"))?
        .query_row([account.as_str(), &asked.payment_id], payment_of)
        .optional()?
        .ok_or(GivenUp::NoSuchPayment)?;
    if payment.status != Status::Completed {
        return Err(GivenUp::NotPaid);
    }
    let charge_id = tx
        .prepare_cached("SELECT charge_id FROM payments WHERE id = ?1")?
        .query_row([&payment.id], |row| row.get(0))?;
    let refunded = tx
        .prepare_cached(
            "SELECT coalesce(sum(amount_hundredths), 0) FROM refunds WHERE payment_id = ?1 AND status <> 'declined'",
        )?
        .query_row([&payment.id], |row| row.get(0))?;
    let amount = refundable(payment.terms.amount, refunded, asked.amount)?;
    tx.prepare_cached(
        "INSERT INTO refunds (id, payment_id, amount_hundredths, status) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute((&asked.id, &payment.id, amount.hundredths(), Status::LocalPaymentCreated.in_row()))?;
    let refund = Refund { id: asked.id, payment_id: payment.id, amount, currency: payment.terms.currency };
    Ok(Granted { refund, charge_id })
}

/// Writes what an operation came to, and says what every request of it is answered. What is concluded already stays as it is: a
/// handler that comes late and whoever asked the provider meanwhile have heard the same.
fn conclude(
    tx: &Transaction<'_>,
    account: &Account,
    conclusion: Conclusion,
    tells: bool,
) -> Result<Reply, GivenUp> {
    match &conclusion {
        Conclusion::Booked(payment) => match record(tx, account, payment, tx.now())? {
            Recorded::New => paid(tx, account, payment, tells)?,
            Recorded::Before(existing) => {
                let asked = payment.terms.clone();
                return Conclusion::Existing { asked, existing }.reply();
            }
        },
        Conclusion::Charged { payment, charge_id } => {
            let concluded = tx
                .prepare_cached(
                    "UPDATE payments SET status = ?2, charge_id = ?3 WHERE id = ?1 AND status = 'created'",
                )?
                .execute((&payment.id, payment.status.in_row(), charge_id))?;
            if concluded == 1 && payment.status == Status::Completed {
                paid(tx, account, payment, tells)?;
            }
        }
        Conclusion::Refunded { refund, status } => {
            let concluded = tx
                .prepare_cached("UPDATE refunds SET status = ?2 WHERE id = ?1 AND status = 'created'")?
                .execute((&refund.id, status.in_row()))?;
            if concluded == 1 && *status == Status::Completed {
                let entry = format!("refund/{}", refund.id);
                enter(tx, &entry, account, -refund.amount.hundredths(), refund.currency.as_str())?;
            }
        }
        Conclusion::Existing { .. } => {}
    }
    conclusion.reply()
}

/// The payment is made: its entry in the books, and the event that others are told.
fn paid(tx: &Transaction<'_>, account: &Account, payment: &Payment, tells: bool) -> Result<(), GivenUp> {
    let CreatePayment { amount, currency, .. } = &payment.terms;
    enter(tx, &format!("payment/{}", payment.id), account, amount.hundredths(), currency.as_str())?;
    if tells {
        append(tx, &[PaymentCreated::of(account, payment).event()?])?;
    }
    Ok(())
}

/// One entry in the books. Its name is the effect's own: a second one of the same name is an error, and rolls everything back.
fn enter(
    tx: &Connection,
    entry: &str,
    account: &Account,
    hundredths: i64,
    currency: &str,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO ledger (entry, account, amount_hundredths, currency) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute((entry, account.as_str(), hundredths, currency))
    .map(drop)
}

fn select(which: &str) -> String {
    format!("SELECT {COLUMNS} FROM payments WHERE {which}")
}

fn payment_of(row: &Row<'_>) -> rusqlite::Result<Payment> {
    let (currency, reference, status): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
    Ok(Payment {
        id: row.get(0)?,
        terms: CreatePayment {
            amount: Amount::from_hundredths(row.get(1)?),
            currency: currency.try_into().map_err(|error| unreadable(2, error))?,
            merchant_reference: reference.try_into().map_err(|error| unreadable(3, error))?,
        },
        status: Status::of_row(&status),
    })
}

fn refund_of(row: &Row<'_>) -> rusqlite::Result<Granted> {
    let currency: String = row.get(3)?;
    let refund = Refund {
        id: row.get(0)?,
        payment_id: row.get(1)?,
        amount: Amount::from_hundredths(row.get(2)?),
        currency: currency.try_into().map_err(|error| unreadable(3, error))?,
    };
    Ok(Granted { refund, charge_id: row.get(4)? })
}

fn unreadable(column: usize, why: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into())
}
