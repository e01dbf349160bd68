//! A payment is told to others: it ends with one ledger entry, one receipt and one word to the partner, although the message comes
//! twice and whoever handles it is killed at each place where something is done and not yet noted.
//!
//! The broker is a server of each test's own, and the bookkeeper is the real binary.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "../harness/mod.rs"]
mod harness;
#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../with_provider/support.rs"]
mod support;

mod bookkeeper;
mod partner;

use async_nats::jetstream::{self, Context, consumer, stream};
use bookkeeper::{Books, until};
use harness::{Service, key, payment};
use partner::Partner;
use payments::{PaymentsOptions, PaymentsService};
use semel_testing::servers::Nats;
use std::time::Duration;
use support::{Database, Kind, until_settled};
use tokio::net::TcpListener;

/// A payment service that tells others, if there is a broker to tell.
async fn service(database: &Database, nats: Option<String>) -> Service {
    let options = PaymentsOptions { nats, ..PaymentsOptions::default() };
    let service = PaymentsService::open(&database.url, options).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(service.serve(listener, std::future::pending()));
    Service { address }
}

/// Makes a payment; its id.
async fn pay(service: Service, reference: &str) -> String {
    let paid = until_settled(service, "/payments", &key(reference), &payment("10.00", reference)).await;
    assert_eq!(paid.status, 201, "{paid:?}");
    paid.json()["id"].as_str().unwrap().to_owned()
}

/// How many messages the stream has.
async fn told(broker: &Context) -> Option<u64> {
    Some(broker.get_stream("PAYMENTS").await.ok()?.cached_info().state.messages)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_is_booked_mailed_and_notified_once_on_sqlite() {
    once_each(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_is_booked_mailed_and_notified_once_on_postgresql() {
    once_each(Kind::Postgres).await;
}

async fn once_each(kind: Kind) {
    let nats = Nats::start().unwrap();
    let broker = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    // It is there before the service, and forgets at once what it was told: so that it can be told twice.
    let config = stream::Config {
        name: "PAYMENTS".into(),
        subjects: vec!["payments.>".into()],
        duplicate_window: Duration::from_millis(100),
        ..stream::Config::default()
    };
    broker.create_stream(config).await.unwrap();
    let database = Database::new(kind).await;
    let service = service(&database, Some(nats.url())).await;
    let (books, partner) = (Books::new(kind).await, Partner::start().await);
    let id = pay(service, "invoice-1").await;

    for place in ["ledger", "receipt:written"] {
        let mut dying = books.keep(&nats, &partner, Some(place)).await;
        dying.is_at(place).await;
        dying.kill().await;
    }
    assert_eq!(books.unsent().await, 1, "the file is there, and nobody has noted it");
    assert_eq!(books.mailed(), [format!("{id}.eml")]);

    // Killed while the partner has heard it and says nothing.
    let dying = books.keep(&nats, &partner, None).await;
    partner.has_heard().await;
    dying.kill().await;
    partner.answers();

    let first = broker.get_stream("PAYMENTS").await.unwrap().get_raw_message(1).await.unwrap();
    let again = async || {
        let telling =
            broker.publish_with_headers(first.subject.clone(), first.headers.clone(), first.payload.clone());
        (!telling.await.ok()?.await.ok()?.duplicate).then_some(())
    };
    until("a broker that tells it again", again).await;
    // Killed when the second payment, or what is left of the first, has had its effects and has no mark.
    let second = pay(service, "invoice-2").await;
    let mut dying = books.keep(&nats, &partner, Some("partner")).await;
    dying.is_at("partner").await;
    dying.kill().await;

    let last = books.keep(&nats, &partner, None).await;
    until("the last acknowledgement", async || all_acknowledged(&broker).await.filter(|all| *all)).await;
    until("the note of the receipts", async || (books.unsent().await == 0).then_some(())).await;
    until("the note of the notifications", async || (books.unconfirmed().await == 0).then_some(())).await;
    last.kill().await;

    assert_eq!(told(&broker).await, Some(3), "the first one twice");
    assert_eq!(books.ledger().await, [(id.clone(), 1_000), (second.clone(), 1_000)]);
    assert_eq!(books.mailed(), [format!("{id}.eml"), format!("{second}.eml")]);
    let mut heard = partner.heard();
    assert!(heard.len() >= 3, "the first one once in vain: {heard:?}");
    heard.sort();
    heard.dedup();
    let payments: Vec<_> = heard.iter().map(|webhook| &webhook.payment).collect();
    assert_eq!(payments, [&id, &second], "one webhook id for each");
}

/// Whether the bookkeeper is through with everything in the stream.
async fn all_acknowledged(broker: &Context) -> Option<bool> {
    let stream = broker.get_stream("PAYMENTS").await.ok()?;
    let consumer = stream.get_consumer::<consumer::pull::Config>("bookkeeping").await.ok()?;
    let info = consumer.cached_info();
    Some(info.num_pending == 0 && info.num_ack_pending == 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_do_not_notice_that_the_broker_is_away_and_others_hear_it_later() {
    let mut nats = Nats::start().unwrap();
    nats.kill().unwrap();
    let database = Database::new(Kind::Sqlite).await;
    let service = service(&database, Some(nats.url())).await;
    pay(service, "invoice-1").await;
    pay(service, "invoice-2").await;
    nats.start_again().unwrap();
    let broker = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    until("word of both payments", async || told(&broker).await.filter(|told| *told == 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_broker_nothing_piles_up() {
    let database = Database::new(Kind::Sqlite).await;
    let service = service(&database, None).await;
    pay(service, "invoice-1").await;
    let file = rusqlite::Connection::open(database.url.strip_prefix("sqlite:").unwrap()).unwrap();
    let waiting: i64 = file.query_row("SELECT count(*) FROM semel_outbox", [], |row| row.get(0)).unwrap();
    assert_eq!(waiting, 0);
}
