//! docs/guides/telling-others-once.md

use semel::Engine;
use semel_events::consumer::{Delivery, Failure};
use semel_events::inbox::PgInbox;
use semel_postgres::PgStore;
use serde::Deserialize;
use sqlx::{PgConnection, PgPool};
use std::time::Duration;

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

#[derive(Deserialize)]
struct Payment {
    id: String,
    cents: i64,
}

async fn create_payment(db: PgPool, id: String, cents: i64) -> Result<()> {
    use semel_events::message::Event;
    use semel_events::outbox::postgres::append;

    let mut tx = db.begin().await?;
    let insert = "INSERT INTO payments (id, cents) VALUES ($1, $2)";
    sqlx::query(insert).bind(&id).bind(cents).execute(&mut *tx).await?;
    let payload = serde_json::json!({ "id": id, "cents": cents }).to_string();
    append(&mut tx, &Event::json(format!("payment/{id}"), "PaymentCreated", payload)).await?;
    tx.commit().await?;
    Ok(())
}

async fn publish(store: PgStore, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    use semel_events::outbox::{Publisher, PublisherOptions, postgres::PgOutbox};
    use semel_events::sink::NatsSink;

    let client = async_nats::connect("nats://127.0.0.1:4222").await?;
    let jetstream = async_nats::jetstream::new(client);
    let sink = NatsSink::new(jetstream, "payments"); // subjects: payments.PaymentCreated
    let publisher = Publisher::new(PgOutbox::of(&store), sink, PublisherOptions::default());
    tokio::spawn(publisher.run(stop));
    Ok(())
}

mod one_effect {
    use super::{Payment, PgPool, Result};

    use semel_events::consumer::{Delivery, Failure, NatsConsumer};
    use semel_events::inbox::PgInbox;

    async fn consume(
        db: PgPool,
        jetstream: async_nats::jetstream::Context,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let inbox = PgInbox::new(db, "ledger")?;
        let consumer = NatsConsumer::new(jetstream, "PAYMENTS", "ledger").dead_letters("dead.ledger");
        consumer.run(move |delivery: Delivery| enter(inbox.clone(), delivery), stop).await?;
        Ok(())
    }

    async fn enter(inbox: PgInbox, delivery: Delivery) -> Result<(), Failure> {
        let payment: Payment =
            serde_json::from_slice(&delivery.payload).map_err(|error| Failure::Refused(error.to_string()))?;
        let insert = "INSERT INTO ledger (payment, cents) VALUES ($1, $2)";
        inbox
            .handle(&delivery.id, async |tx| {
                sqlx::query(insert).bind(&payment.id).bind(payment.cents).execute(tx).await
            })
            .await?;
        Ok(())
    }
}

mod ledger {
    use super::{Payment, PgConnection};

    pub(super) async fn enter(tx: &mut PgConnection, payment: &Payment) -> sqlx::Result<()> {
        let insert = "INSERT INTO ledger (payment, cents) VALUES ($1, $2)";
        sqlx::query(insert).bind(&payment.id).bind(payment.cents).execute(tx).await.map(drop)
    }
}

mod receipts {
    use super::{Payment, PgConnection};

    pub(super) async fn queue(tx: &mut PgConnection, payment: &Payment) -> sqlx::Result<()> {
        let insert = "INSERT INTO receipts (payment) VALUES ($1)";
        sqlx::query(insert).bind(&payment.id).execute(tx).await.map(drop)
    }
}

async fn enter_and_queue(inbox: PgInbox, delivery: Delivery, payment: Payment) -> Result<(), Failure> {
    let id = &payment.id;
    let Some(steps) = inbox.steps::<Failure>(&delivery.id).await? else { return Ok(()) };
    steps.effect(&format!("ledger_payment_{id}"), async |tx| ledger::enter(tx, &payment).await).await?;
    steps.effect(&format!("receipt_payment_{id}"), async |tx| receipts::queue(tx, &payment).await).await?;
    steps.finish::<Failure>().await?;
    Ok(())
}

fn forget(engine: Engine, inbox: PgInbox) {
    use semel_worker::{Worker, WorkerOptions};

    let worker = Worker::new(engine, WorkerOptions::default());
    let worker = worker.chore("the ledger's inbox", Duration::from_secs(60), move || {
        let inbox = inbox.clone();
        async move { inbox.forget().await.map(drop) }
    });
    tokio::spawn(worker.run(std::future::pending()));
}
