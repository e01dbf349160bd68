//! What both sides keep, in either store: payments and their events here, what came of them there.
//!
//! No table has a unique key: whatever is booked twice is there twice.

use crate::on_postgres::PgBooks;
use crate::on_sqlite::SqliteBooks;
use crate::processes::until_none_are_left;
use crate::trap::Traps;
use semel_events::consumer::{Delivery, Failure};
use semel_events::message::Event;
use semel_events::outbox::{OutboxAdmin, Publisher, PublisherOptions, Queue};
use semel_events::sink::{Sink, Undelivered};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// So many aggregates.
pub(crate) const ACCOUNTS: usize = 100;

/// How many payments are made in one transaction.
const AT_ONCE: usize = 200;

pub(crate) const TABLES: &str = "CREATE TABLE IF NOT EXISTS payments (payment TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS ledger (payment TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS mails (payment TEXT NOT NULL)";

/// One side's store.
#[derive(Clone)]
pub(crate) enum Books {
    Postgres(PgBooks),
    Sqlite(SqliteBooks),
}

/// The name of a payment.
pub(crate) fn payment(number: usize) -> String {
    format!("pay_{number}")
}

/// The number in the name.
pub(crate) fn number_of(name: &[u8]) -> usize {
    let name = std::str::from_utf8(name).unwrap();
    name.strip_prefix("pay_")
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{name} was rolled back"))
}

/// Most payments are booked in one commit. These are booked in three, so that there is something in between.
pub(crate) fn is_booked_in_steps(payment: &str) -> bool {
    number_of(payment.as_bytes()).is_multiple_of(16)
}

/// What the partner is told.
pub(crate) fn notification(payment: &str) -> Event {
    Event::json(format!("payment/{payment}"), "PartnerNotified", payment.to_owned())
}

impl Books {
    pub(crate) async fn open(url: &str) -> Self {
        if url.starts_with("postgres") {
            Self::Postgres(PgBooks::open(url).await)
        } else {
            Self::Sqlite(SqliteBooks::open(url).await)
        }
    }

    fn desk(&self) -> Arc<dyn OutboxAdmin> {
        match self {
            Self::Postgres(books) => Arc::new(books.outbox()),
            Self::Sqlite(books) => Arc::new(books.outbox()),
        }
    }

    fn queue(&self) -> Arc<dyn Queue> {
        match self {
            Self::Postgres(books) => Arc::new(books.outbox()),
            Self::Sqlite(books) => Arc::new(books.outbox()),
        }
    }

    /// Makes so many payments, in order, some at a time. As many transactions are rolled back, and nobody is to hear of those.
    pub(crate) async fn pay(&self, payments: usize) {
        let event = |number: usize, name: String| {
            Event::json(format!("account/{}", number % ACCOUNTS), "PaymentCreated", name)
        };
        for first in (0..payments).step_by(AT_ONCE) {
            let numbers = first..payments.min(first + AT_ONCE);
            let made = numbers.map(|number| event(number, payment(number))).collect();
            let never = vec![event(first, format!("never_{first}"))];
            match self {
                Self::Postgres(books) => {
                    books.pay(never, false).await;
                    books.pay(made, true).await;
                }
                Self::Sqlite(books) => {
                    books.pay(never, false).await;
                    books.pay(made, true).await;
                }
            }
        }
    }

    /// How many events are not published.
    pub(crate) async fn backlog(&self) -> u64 {
        self.desk().stats().await.unwrap().backlog
    }

    pub(crate) async fn publish(
        &self,
        sink: impl Sink,
        options: PublisherOptions,
        stop: impl Future<Output = ()>,
    ) {
        Publisher::new(self.queue(), sink, options).run(stop).await;
    }

    /// What a message comes to: a ledger entry, a mail, and a notification in the outbox of this side.
    pub(crate) async fn book(&self, delivery: &Delivery, traps: &Arc<Traps>) -> Result<(), Failure> {
        match self {
            Self::Postgres(books) => books.book(delivery, traps).await,
            Self::Sqlite(books) => books.book(delivery, traps).await,
        }
    }

    /// All that was booked, by its kind. The partner is notified for it.
    pub(crate) async fn booked(&self) -> [(&'static str, Vec<String>); 3] {
        let [ledger, mails] = match self {
            Self::Postgres(books) => [books.all("ledger").await, books.all("mails").await],
            Self::Sqlite(books) => [books.all("ledger").await, books.all("mails").await],
        };
        let partner = Partner::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let notifying = tokio::spawn({
            let (books, partner) = (self.clone(), partner.clone());
            async move {
                let stop = async { drop(stopped.await) };
                books.publish(partner, PublisherOptions::default(), stop).await;
            }
        });
        until_none_are_left("notifications", async || Some(self.backlog().await)).await;
        drop(stop);
        notifying.await.unwrap();
        let notified = std::mem::take(&mut *partner.0.lock().unwrap());
        [("ledger entries", ledger), ("mails", mails), ("notifications", notified)]
    }
}

/// Somebody who has to hear of each payment once.
#[derive(Clone, Default)]
struct Partner(Arc<Mutex<Vec<String>>>);

impl Sink for Partner {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        self.0.lock().unwrap().push(String::from_utf8(event.payload.to_vec()).unwrap());
        Ok(())
    }
}
