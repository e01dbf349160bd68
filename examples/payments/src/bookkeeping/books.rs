//! The books in either database: one enum, and each with its own file and its own SQL.

use super::booking::{Booking, Receipt};
use super::postgres::PostgresBooks;
use super::sqlite::SqliteBooks;
use crate::database::{Address, DatabaseError};
use crate::error::BoxError;
use crate::fail_point::FailPoint;
use semel::StoreError;
use semel_events::consumer::{Delivery, Failure};
use semel_events::outbox::Queue;
use std::sync::Arc;

#[derive(Clone)]
pub(super) enum Books {
    Sqlite(SqliteBooks),
    Postgres(PostgresBooks),
}

impl Books {
    pub(super) async fn open(
        url: &str,
        notifies: bool,
        fail_point: FailPoint,
    ) -> Result<Self, DatabaseError> {
        match Address::of(url) {
            Address::Postgres(url) => {
                PostgresBooks::open(url, notifies, fail_point).await.map(Self::Postgres)
            }
            Address::Sqlite(path) => SqliteBooks::open(path, notifies, fail_point).await.map(Self::Sqlite),
        }
    }

    /// Books what a message tells, once. What is committed when it fails, or the process dies, is passed over the next time.
    pub(super) async fn book(&self, delivery: &Delivery) -> Result<(), Failure> {
        match self {
            Self::Sqlite(books) => books.book(&delivery.id, Booking::of(delivery, books.notifies)?).await,
            Self::Postgres(books) => books.book(&delivery.id, Booking::of(delivery, books.notifies)?).await,
        }
    }

    /// What the partner is to be told.
    pub(super) fn outbox(&self) -> Arc<dyn Queue> {
        match self {
            Self::Sqlite(books) => Arc::new(books.outbox()),
            Self::Postgres(books) => Arc::new(books.outbox()),
        }
    }

    /// Some receipts that are not known to be sent.
    pub(super) async fn unsent(&self) -> Result<Vec<Receipt>, BoxError> {
        match self {
            Self::Sqlite(books) => books.unsent().await,
            Self::Postgres(books) => books.unsent().await,
        }
    }

    /// Notes that a receipt is sent.
    pub(super) async fn sent(&self, payment: String) -> Result<(), BoxError> {
        match self {
            Self::Sqlite(books) => books.sent(payment).await,
            Self::Postgres(books) => books.sent(payment).await,
        }
    }

    pub(super) async fn forget(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(books) => books.inbox.forget().await.map(drop),
            Self::Postgres(books) => books.inbox.forget().await.map(drop),
        }
    }

    pub(super) async fn close(self) {
        match self {
            Self::Sqlite(books) => books.store.close().await,
            Self::Postgres(books) => books.store.close().await,
        }
    }
}
