//! The service's tables. They live in the same database as Semel's own: that is what lets a payment and its operation's
//! completion share one commit.
//!
//! One enum over two databases, and no more abstraction than that: each has its own file with its own SQL.

mod postgres;
mod sqlite;

use crate::account::Account;
use crate::conclusion::Conclusion;
use crate::error::{ApiError, BoxError, GivenUp};
use crate::fail_point::FailPoint;
use crate::payment::{Amount, Payment};
use crate::provider::Call;
use crate::refund::{Granted, Refund};
use crate::verdict::Verdict;
use postgres::PostgresDatabase;
use semel::{OperationId, PhaseError, Phases, Store};
use semel_events::inbox::InvalidIdentity;
use semel_events::outbox::Queue;
use semel_events::outbox::postgres::PgOutbox;
use semel_events::outbox::sqlite::SqliteOutbox;
use semel_tower::{Operation, Replayable, Reply};
use serde::{Deserialize, Serialize};
use sqlite::SqliteDatabase;
use std::path::Path;
use std::sync::Arc;

/// Why the database was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The file was not opened as a store.
    #[error(transparent)]
    Sqlite(#[from] semel_sqlite::OpenError),
    /// The server was not opened as a store.
    #[error(transparent)]
    Postgres(#[from] semel_postgres::OpenError),
    /// The tables were not made, or cannot be read.
    #[error("the tables of the payments could not be made")]
    Tables(#[source] BoxError),
    /// The consumer's name cannot be one.
    #[error(transparent)]
    Inbox(#[from] InvalidIdentity),
}

/// Where a database is.
pub(crate) enum Address<'a> {
    Sqlite(&'a Path),
    Postgres(&'a str),
}

impl<'a> Address<'a> {
    pub(crate) fn of(url: &'a str) -> Self {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Self::Postgres(url);
        }
        Self::Sqlite(Path::new(url.strip_prefix("sqlite:").unwrap_or(url)))
    }
}

/// The service's database.
#[derive(Clone)]
pub(crate) enum Database {
    Sqlite(SqliteDatabase),
    Postgres(PostgresDatabase),
}

/// What became of a payment that was to be recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Recorded {
    /// It is there now.
    New,
    /// The account has a payment of this merchant reference already.
    Before(Payment),
}

/// What an operation orders of the provider.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Payment(Payment),
    Refund(Granted),
}

impl Order {
    /// The call that it is made with.
    pub(crate) fn call(&self) -> Call<'_> {
        match self {
            Self::Payment(payment) => Call::Charge(payment),
            Self::Refund(granted) => Call::Refund(granted),
        }
    }

    /// What it came to.
    pub(crate) fn concluded(self, verdict: Verdict) -> Conclusion {
        match self {
            Self::Payment(payment) => Conclusion::charged(payment, verdict),
            Self::Refund(granted) => Conclusion::refunded(granted.refund, &verdict),
        }
    }
}

/// What a client asks to have back.
#[derive(Clone, Debug)]
pub(crate) struct RefundAsked {
    pub(crate) id: String,
    pub(crate) payment_id: String,
    /// The whole rest of the payment if `None`.
    pub(crate) amount: Option<Amount>,
}

impl Database {
    /// Opens `sqlite:path`, a bare path, or `postgres://…`. With `tells`, every payment that completes leaves an event in the outbox;
    /// without anybody who publishes them they would pile up there.
    pub(crate) async fn open(url: &str, tells: bool) -> Result<Self, DatabaseError> {
        match Address::of(url) {
            Address::Postgres(url) => PostgresDatabase::open(url, tells).await.map(Self::Postgres),
            Address::Sqlite(path) => SqliteDatabase::open(path, tells).await.map(Self::Sqlite),
        }
    }

    /// What others are to be told.
    pub(crate) fn outbox(&self) -> Arc<dyn Queue> {
        match self {
            Self::Sqlite(database) => Arc::new(SqliteOutbox::of(&database.store)),
            Self::Postgres(database) => Arc::new(PgOutbox::of(&database.store)),
        }
    }

    /// Semel's records.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(database) => Arc::new(database.store.clone()),
            Self::Postgres(database) => Arc::new(database.store.clone()),
        }
    }

    /// A payment's first phase: its row.
    pub(crate) async fn create_payment(
        &self,
        phases: &mut Phases,
        account: &Account,
        payment: &Payment,
        fail_point: &FailPoint,
    ) -> Result<Recorded, PhaseError<GivenUp>> {
        match self {
            Self::Sqlite(database) => database.create_payment(phases, account, payment, fail_point).await,
            Self::Postgres(database) => database.create_payment(phases, account, payment, fail_point).await,
        }
    }

    /// A refund's first phase: its row, if the payment has that much left.
    pub(crate) async fn create_refund(
        &self,
        phases: &mut Phases,
        account: &Account,
        asked: &RefundAsked,
        fail_point: &FailPoint,
    ) -> Result<Granted, PhaseError<GivenUp>> {
        match self {
            Self::Sqlite(database) => database.create_refund(phases, account, asked, fail_point).await,
            Self::Postgres(database) => database.create_refund(phases, account, asked, fail_point).await,
        }
    }

    /// The last commit of an operation: its rows, and the answer that every retry gets.
    pub(crate) async fn conclude(
        &self,
        operation: &Operation,
        account: &Account,
        conclusion: Conclusion,
        fail_point: &FailPoint,
    ) -> Result<Replayable, ApiError> {
        match self {
            Self::Sqlite(database) => database.conclude(operation, account, conclusion, fail_point).await,
            Self::Postgres(database) => database.conclude(operation, account, conclusion, fail_point).await,
        }
    }

    /// Writes what an operation came to, without its handler: once, however often and by whomever it is called. The answer that its
    /// requests are to get.
    pub(crate) async fn settle(&self, account: &Account, conclusion: Conclusion) -> Result<Reply, GivenUp> {
        match self {
            Self::Sqlite(database) => database.settle(account, conclusion).await,
            Self::Postgres(database) => database.settle(account, conclusion).await,
        }
    }

    /// What an operation of the account orders of the provider, if it got that far.
    pub(crate) async fn order_of(
        &self,
        account: &Account,
        operation: OperationId,
    ) -> Result<Option<Order>, BoxError> {
        if let Some(payment) = self.find(account, &Payment::id_of(operation)).await? {
            return Ok(Some(Order::Payment(payment)));
        }
        let id = Refund::id_of(operation);
        let refund = match self {
            Self::Sqlite(database) => database.find_refund(account, id).await,
            Self::Postgres(database) => database.find_refund(account, &id).await,
        };
        Ok(refund?.map(Order::Refund))
    }

    /// Notes what the gateway in front calls an operation.
    pub(crate) async fn note_name(&self, name: OperationId, operation: OperationId) -> Result<(), BoxError> {
        match self {
            Self::Sqlite(database) => database.note_name(name, operation).await,
            Self::Postgres(database) => database.note_name(name, operation).await,
        }
    }

    /// The operation that the gateway in front calls so.
    pub(crate) async fn named(&self, name: OperationId) -> Result<Option<OperationId>, BoxError> {
        let found = match self {
            Self::Sqlite(database) => database.named(name).await?,
            Self::Postgres(database) => database.named(name).await?,
        };
        Ok(found.map(|operation| operation.parse()).transpose()?)
    }

    /// The account's payment with this id. Another account's is not there.
    pub(crate) async fn find(&self, account: &Account, id: &str) -> Result<Option<Payment>, BoxError> {
        match self {
            Self::Sqlite(database) => database.find(account, id).await,
            Self::Postgres(database) => database.find(account, id).await,
        }
    }

    /// How many payments the account has, and the newest of them.
    pub(crate) async fn newest(
        &self,
        account: &Account,
        limit: u32,
    ) -> Result<(u32, Vec<Payment>), BoxError> {
        match self {
            Self::Sqlite(database) => database.newest(account, limit).await,
            Self::Postgres(database) => database.newest(account, limit).await,
        }
    }

    pub(crate) async fn close(self) {
        match self {
            Self::Sqlite(database) => database.store.close().await,
            Self::Postgres(database) => database.store.close().await,
        }
    }
}

/// What is left of a payment to be given back.
fn refundable(paid: Amount, refunded: i64, asked: Option<Amount>) -> Result<Amount, GivenUp> {
    let left = paid.hundredths() - refunded;
    let wanted = asked.map_or(left, Amount::hundredths);
    if wanted < 1 || wanted > left {
        return Err(GivenUp::TooMuchBack { left: Amount::from_hundredths(left) });
    }
    Ok(Amount::from_hundredths(wanted))
}
