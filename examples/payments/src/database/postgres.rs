//! Payments in a PostgreSQL database.

use super::{DatabaseError, Recorded, RefundAsked, refundable};
use crate::account::Account;
use crate::conclusion::Conclusion;
use crate::error::{ApiError, BoxError, GivenUp};
use crate::fail_point::FailPoint;
use crate::payment::{Amount, CREATED, CreatePayment, Payment, Status};
use crate::refund::{Granted, Refund};
use crate::telling::PaymentCreated;
use semel::{OperationId, PhaseError, Phases};
use semel_events::outbox::postgres::append;
use semel_postgres::PgStore;
use semel_tower::{Operation, Replayable, Reply};
use sqlx::postgres::{PgConnection, PgPoolOptions, PgRow};
use sqlx::{PgPool, Row as _};

/// One account has one payment per merchant reference, those aside that were declined. The database holds that rule and not the
/// code before it: between a look and an insert another request has room. So it is with the ledger's entries.
const TABLES: [&str; 7] = [
    // Instances that start at the same moment would else trip over each other.
    "SELECT pg_advisory_xact_lock(6120081)",
    "CREATE TABLE IF NOT EXISTS payments (
        id                 text PRIMARY KEY,
        account            text NOT NULL,
        merchant_reference text NOT NULL,
        amount_hundredths  bigint NOT NULL CHECK (amount_hundredths > 0),
        currency           text NOT NULL,
        status             text NOT NULL,
        charge_id          text,
        created_at         timestamptz NOT NULL DEFAULT clock_timestamp()
    )",
    "CREATE UNIQUE INDEX IF NOT EXISTS one_payment_per_reference
        ON payments (account, merchant_reference) WHERE status <> 'declined'",
    "CREATE TABLE IF NOT EXISTS refunds (
        id                 text PRIMARY KEY,
        payment_id         text NOT NULL REFERENCES payments (id),
        amount_hundredths  bigint NOT NULL CHECK (amount_hundredths > 0),
        status             text NOT NULL
    )",
    "CREATE INDEX IF NOT EXISTS refunds_of_payment ON refunds (payment_id)",
    "CREATE TABLE IF NOT EXISTS gateway_names (
        name               text PRIMARY KEY,
        operation          text NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS ledger (
        entry              text PRIMARY KEY,
        account            text NOT NULL,
        amount_hundredths  bigint NOT NULL,
        currency           text NOT NULL
    )",
];

const BY_ID: &str = "SELECT id, amount_hundredths, currency, merchant_reference, status, charge_id
     FROM payments WHERE account = $1 AND id = $2";
const BY_ID_FOR_REFUND: &str = "SELECT id, amount_hundredths, currency, merchant_reference, status, charge_id
     FROM payments WHERE account = $1 AND id = $2 FOR UPDATE";
const BY_REFERENCE: &str = "SELECT id, amount_hundredths, currency, merchant_reference, status, charge_id
     FROM payments WHERE account = $1 AND merchant_reference = $2 AND status <> 'declined'";
const NEWEST: &str = "SELECT id, amount_hundredths, currency, merchant_reference, status, charge_id
     FROM payments WHERE account = $1 ORDER BY created_at DESC, id DESC LIMIT $2";

/// Every write is in a transaction that `semel_postgres::begin` began: a handler may be cut off, and sqlx alone would leave what it was
/// just beginning open on a connection of the pool, for the next write to be lost in.
#[derive(Clone)]
pub(crate) struct PostgresDatabase {
    pub(super) store: PgStore,
    /// Whether others are told of payments.
    tells: bool,
}

impl PostgresDatabase {
    pub(super) async fn open(url: &str, tells: bool) -> Result<Self, DatabaseError> {
        let tables = |error: sqlx::Error| DatabaseError::Tables(error.into());
        let pool = PgPoolOptions::new().max_connections(16).connect(url).await.map_err(tables)?;
        let store = PgStore::new(pool).await?;
        let mut tx = semel_postgres::begin(store.pool()).await.map_err(tables)?;
        for statement in TABLES {
            sqlx::query(statement).execute(&mut *tx).await.map_err(tables)?;
        }
        tx.commit().await.map_err(tables)?;
        Ok(Self { store, tells })
    }

    fn pool(&self) -> &PgPool {
        self.store.pool()
    }

    pub(super) async fn create_payment(
        &self,
        phases: &mut Phases,
        account: &Account,
        payment: &Payment,
        fail_point: &FailPoint,
    ) -> Result<Recorded, PhaseError<GivenUp>> {
        self.store
            .phase(phases, CREATED, async |tx| {
                let recorded = record(tx, account, payment).await?;
                fail_point.reached("created:in_transaction").await;
                Ok(recorded)
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
        self.store
            .phase(phases, CREATED, async |tx| {
                let granted = record_refund(tx, account, asked).await?;
                fail_point.reached("created:in_transaction").await;
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
        let nothing_written = |error: sqlx::Error| ApiError::NothingWritten(error.into());
        let mut tx = semel_postgres::begin(self.pool()).await.map_err(nothing_written)?;
        let reply = conclude(&mut tx, account, conclusion, self.tells).await?;
        fail_point.reached("completing:in_transaction").await;
        Ok(operation.complete_in(tx, reply).await?)
    }

    pub(super) async fn settle(&self, account: &Account, conclusion: Conclusion) -> Result<Reply, GivenUp> {
        let mut tx = semel_postgres::begin(self.pool()).await?;
        let reply = conclude(&mut tx, account, conclusion, self.tells).await?;
        tx.commit().await?;
        Ok(reply)
    }

    pub(super) async fn note_name(&self, name: OperationId, operation: OperationId) -> Result<(), BoxError> {
        let mut tx = semel_postgres::begin(self.pool()).await?;
        sqlx::query("INSERT INTO gateway_names (name, operation) VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(name.to_string())
            .bind(operation.to_string())
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }

    pub(super) async fn named(&self, name: OperationId) -> Result<Option<String>, BoxError> {
        let found = sqlx::query("SELECT operation FROM gateway_names WHERE name = $1").bind(name.to_string());
        let row = found.fetch_optional(self.pool()).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    pub(super) async fn find_refund(&self, account: &Account, id: &str) -> Result<Option<Granted>, BoxError> {
        let refund = "SELECT refunds.id, payments.id, refunds.amount_hundredths, currency, charge_id
             FROM refunds JOIN payments ON payments.id = payment_id WHERE account = $1 AND refunds.id = $2";
        let row = sqlx::query(refund).bind(account.as_str()).bind(id).fetch_optional(self.pool()).await?;
        Ok(row.as_ref().map(refund_of).transpose()?)
    }

    pub(super) async fn find(&self, account: &Account, id: &str) -> Result<Option<Payment>, BoxError> {
        let row = sqlx::query(BY_ID).bind(account.as_str()).bind(id).fetch_optional(self.pool()).await?;
        Ok(row.as_ref().map(payment_of).transpose()?)
    }

    pub(super) async fn newest(
        &self,
        account: &Account,
        limit: u32,
    ) -> Result<(u32, Vec<Payment>), BoxError> {
        let count = "SELECT count(*) FROM payments WHERE account = $1";
        let count: i64 =
            sqlx::query(count).bind(account.as_str()).fetch_one(self.pool()).await?.try_get(0)?;
        let newest = sqlx::query(NEWEST).bind(account.as_str()).bind(i64::from(limit));
        let rows = newest.fetch_all(self.pool()).await?;
        Ok((count.try_into()?, rows.iter().map(payment_of).collect::<Result<_, _>>()?))
    }
}

/// Records a payment, unless there is one of the same account and merchant reference.
async fn record(tx: &mut PgConnection, account: &Account, payment: &Payment) -> sqlx::Result<Recorded> {
    let Payment { id, terms: CreatePayment { amount, currency, merchant_reference }, status } = payment;
    let inserted = sqlx::query(
        "INSERT INTO payments (id, account, merchant_reference, amount_hundredths, currency, status)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (account, merchant_reference) WHERE status <> 'declined' DO NOTHING",
    )
    .bind(id)
    .bind(account.as_str())
    .bind(merchant_reference.as_str())
    .bind(amount.hundredths())
    .bind(currency.as_str())
    .bind(status.in_row())
    .execute(&mut *tx)
    .await?;
    if inserted.rows_affected() == 1 {
        return Ok(Recorded::New);
    }
    let existing = sqlx::query(BY_REFERENCE).bind(account.as_str()).bind(merchant_reference.as_str());
    payment_of(&existing.fetch_one(tx).await?).map(Recorded::Before)
}

async fn record_refund(
    tx: &mut PgConnection,
    account: &Account,
    asked: &RefundAsked,
) -> Result<Granted, GivenUp> {
    // Refunds of one payment wait for each other here, so that no two of them give the same money back.
    let payment = sqlx::query(BY_ID_FOR_REFUND).bind(account.as_str()).bind(&asked.payment_id);
    let row = payment.fetch_optional(&mut *tx).await?.ok_or(GivenUp::NoSuchPayment)?;
    let payment = payment_of(&row)?;
    if payment.status != Status::Completed {
        return Err(GivenUp::NotPaid);
    }
    let refunded = "SELECT coalesce(sum(amount_hundredths), 0)::bigint FROM refunds WHERE payment_id = $1 AND status <> 'declined'";
    let refunded = sqlx::query(refunded).bind(&payment.id).fetch_one(&mut *tx).await?.try_get(0)?;
    let amount = refundable(payment.terms.amount, refunded, asked.amount)?;
    sqlx::query("INSERT INTO refunds (id, payment_id, amount_hundredths, status) VALUES ($1, $2, $3, $4)")
        .bind(&asked.id)
        .bind(&payment.id)
        .bind(amount.hundredths())
        .bind(Status::LocalPaymentCreated.in_row())
        .execute(tx)
        .await?;
    let refund =
        Refund { id: asked.id.clone(), payment_id: payment.id, amount, currency: payment.terms.currency };
    Ok(Granted { refund, charge_id: row.try_get(5)? })
}

/// Writes what an operation came to, and says what every request of it is answered. What is concluded already stays as it is: a
/// handler that comes late and whoever asked the provider meanwhile have heard the same.
async fn conclude(
    tx: &mut PgConnection,
    account: &Account,
    conclusion: Conclusion,
    tells: bool,
) -> Result<Reply, GivenUp> {
    match &conclusion {
        Conclusion::Booked(payment) => match record(tx, account, payment).await? {
            Recorded::New => paid(tx, account, payment, tells).await?,
            Recorded::Before(existing) => {
                let asked = payment.terms.clone();
                return Conclusion::Existing { asked, existing }.reply();
            }
        },
        Conclusion::Charged { payment, charge_id } => {
            let concluding =
                "UPDATE payments SET status = $2, charge_id = $3 WHERE id = $1 AND status = 'created'";
            let concluded = sqlx::query(concluding)
                .bind(&payment.id)
                .bind(payment.status.in_row())
                .bind(charge_id)
                .execute(&mut *tx)
                .await?;
            if concluded.rows_affected() == 1 && payment.status == Status::Completed {
                paid(tx, account, payment, tells).await?;
            }
        }
        Conclusion::Refunded { refund, status } => {
            let concluded =
                sqlx::query("UPDATE refunds SET status = $2 WHERE id = $1 AND status = 'created'")
                    .bind(&refund.id)
                    .bind(status.in_row())
                    .execute(&mut *tx)
                    .await?;
            if concluded.rows_affected() == 1 && *status == Status::Completed {
                let entry = format!("refund/{}", refund.id);
                enter(tx, &entry, account, -refund.amount.hundredths(), refund.currency.as_str()).await?;
            }
        }
        Conclusion::Existing { .. } => {}
    }
    conclusion.reply()
}

/// The payment is made: its entry in the books, and the event that others are told.
async fn paid(
    tx: &mut PgConnection,
    account: &Account,
    payment: &Payment,
    tells: bool,
) -> Result<(), GivenUp> {
    let CreatePayment { amount, currency, .. } = &payment.terms;
    enter(tx, &format!("payment/{}", payment.id), account, amount.hundredths(), currency.as_str()).await?;
    if tells {
        append(tx, &PaymentCreated::of(account, payment).event()?).await?;
    }
    Ok(())
}

/// One entry in the books. Its name is the effect's own: a second one of the same name is an error, and rolls everything back.
async fn enter(
    tx: &mut PgConnection,
    entry: &str,
    account: &Account,
    hundredths: i64,
    currency: &str,
) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO ledger (entry, account, amount_hundredths, currency) VALUES ($1, $2, $3, $4)")
        .bind(entry)
        .bind(account.as_str())
        .bind(hundredths)
        .bind(currency)
        .execute(tx)
        .await
        .map(drop)
}

fn payment_of(row: &PgRow) -> sqlx::Result<Payment> {
    let unreadable = |error: &'static str| sqlx::Error::Decode(error.into());
    let (currency, reference): (String, String) = (row.try_get(2)?, row.try_get(3)?);
    Ok(Payment {
        id: row.try_get(0)?,
        terms: CreatePayment {
            amount: Amount::from_hundredths(row.try_get(1)?),
            currency: currency.try_into().map_err(unreadable)?,
            merchant_reference: reference.try_into().map_err(unreadable)?,
        },
        status: Status::of_row(row.try_get(4)?),
    })
}

fn refund_of(row: &PgRow) -> sqlx::Result<Granted> {
    let currency: String = row.try_get(3)?;
    let refund = Refund {
        id: row.try_get(0)?,
        payment_id: row.try_get(1)?,
        amount: Amount::from_hundredths(row.try_get(2)?),
        currency: currency.try_into().map_err(|error: &'static str| sqlx::Error::Decode(error.into()))?,
    };
    Ok(Granted { refund, charge_id: row.try_get(4)? })
}
