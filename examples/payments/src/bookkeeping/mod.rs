//! What becomes of a payment elsewhere: a ledger entry, a receipt by mail, and word to a partner, once each, however often the
//! broker tells of it and whenever this process dies.
//!
//! The way of a message:
//! 1. the consumer takes it from the broker, and acknowledges it when all of this is committed (`books.rs`);
//! 2. three effects, each in a transaction with its own mark: the ledger's entry, the receipt's row, the event for the partner;
//! 3. what leaves the house leaves it from those rows: receipts as files (`receipts.rs`), the event by signed webhook. Both can be
//!    repeated: a file has the payment's name, and a webhook the event's id.
//!
//! It has a database of its own. The service's outbox goes to the broker, and this one's to the partner.

mod booking;
mod books;
mod postgres;
mod receipts;
mod sqlite;

use crate::fail_point::FailPoint;
use crate::service::{StartError, until_dropped};
use crate::telling::{self, STREAM};
use async_nats::jetstream::Context;
use books::Books;
use receipts::Receipts;
use semel_events::consumer::{Delivery, Misconfigured, NatsConsumer};
use semel_events::outbox::{Publisher, PublisherOptions};
use semel_events::sink::Webhook;
use semel_worker::WebhookSecret;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// The name of the inbox, and of the broker's durable consumer.
const CONSUMER: &str = "bookkeeping";

/// Marks are forgotten so often, two weeks later.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Where a test stops the process to kill it: between two effects, between the last one and the message's mark, and between a
/// receipt's file and the note of it.
pub const BOOKKEEPING_FAIL_POINTS: [&str; 3] = ["ledger", "partner", "receipt:written"];

/// How the books are kept.
#[derive(Clone, Debug)]
pub struct BookkeepingOptions {
    /// The NATS server that tells of payments.
    pub nats: String,
    /// The directory that receipts are written to, as somebody's outgoing mail.
    pub receipts: PathBuf,
    /// Who is notified of payments. Without one, nobody is.
    pub partner: Option<PartnerOptions>,
    /// How long the broker waits for a sign of life before it tells again. Default 30 s.
    pub ack_wait: Duration,
    /// How long after this process's death another one notifies the partner in its place. Default 30 s.
    pub lease: Duration,
    /// The [fail point](BOOKKEEPING_FAIL_POINTS) at which the first message goes no further. Never in production.
    pub fail_point: Option<String>,
}

/// A partner, who is told by Standard Webhooks.
#[derive(Clone, Debug)]
pub struct PartnerOptions {
    /// Where it listens, such as `http://127.0.0.1:9200/payments`.
    pub url: String,
    /// What the webhooks are signed with.
    pub secret: WebhookSecret,
}

/// Books that are ready to be kept.
pub struct Bookkeeping {
    books: Books,
    broker: Context,
    receipts: Receipts,
    partner: Option<Webhook>,
    options: BookkeepingOptions,
}

impl Bookkeeping {
    /// Opens the database of the books, or makes its tables: `books.db`, `sqlite:books.db` or `postgres://…`. Not the payment
    /// service's.
    ///
    /// # Errors
    /// The database could not be opened, or an address is invalid.
    pub async fn open(database: &str, options: BookkeepingOptions) -> Result<Self, StartError> {
        let partner = options.partner.as_ref();
        let partner =
            partner.map(|partner| Webhook::new(&partner.url, partner.secret.clone())).transpose()?;
        let fail_point = FailPoint::armed(options.fail_point.clone());
        let books = Books::open(database, partner.is_some(), fail_point.clone()).await?;
        let receipts = Receipts::new(options.receipts.clone(), fail_point);
        let broker = telling::connect(&options.nats).await?;
        Ok(Self { books, broker, receipts, partner, options })
    }

    /// Keeps the books until `stop` comes, then finishes what is begun.
    ///
    /// # Errors
    /// The broker's stream or consumer is not as it has to be.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Misconfigured> {
        let Self { books, broker, receipts, partner, options } = self;
        let (rest, resting) = watch::channel(());
        let sending = tokio::spawn(receipts.send_all(books.clone(), until_dropped(resting.clone())));
        let notifying = partner.map(|partner| {
            let how = PublisherOptions { lease: options.lease, ..PublisherOptions::default() };
            let publisher = Publisher::new(books.outbox(), partner, how);
            tokio::spawn(publisher.run(until_dropped(resting)))
        });
        let forgetting = tokio::spawn(forget(books.clone()));
        let consumer = NatsConsumer::new(broker, STREAM, CONSUMER).ack_wait(options.ack_wait);
        let handler = {
            let books = books.clone();
            move |delivery: Delivery| {
                let books = books.clone();
                async move { books.book(&delivery).await }
            }
        };
        let consumed = consumer.run(handler, stop).await;
        drop(rest);
        forgetting.abort();
        let _ended = sending.await;
        if let Some(notifying) = notifying {
            let _ended = notifying.await;
        }
        books.close().await;
        consumed
    }
}

/// Forgets marks whose time is over, every so often.
async fn forget(books: Books) {
    loop {
        if let Err(error) = books.forget().await {
            tracing::warn!(%error, "old marks could not be forgotten: trying on");
        }
        tokio::time::sleep(FORGET_EVERY).await;
    }
}
