//! The books in PostgreSQL.

use crate::books::{TABLES, is_booked_in_steps, notification};
use crate::trap::{Place, Traps};
use semel_events::consumer::{Delivery, Failure};
use semel_events::inbox::PgInbox;
use semel_events::message::Event;
use semel_events::outbox::postgres::{PgOutbox, append, append_all};
use semel_postgres::PgStore;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, PgPoolOptions};

#[derive(Clone)]
pub(crate) struct PgBooks {
    store: PgStore,
    inbox: PgInbox,
}

impl PgBooks {
    pub(crate) async fn open(url: &str) -> Self {
        let pool = PgPoolOptions::new().max_connections(16).connect(url).await.unwrap();
        let store = PgStore::new(pool.clone()).await.unwrap();
        sqlx::raw_sql(TABLES).execute(&pool).await.unwrap();
        Self { store, inbox: PgInbox::new(pool, "books").unwrap() }
    }

    pub(crate) fn outbox(&self) -> PgOutbox {
        PgOutbox::of(&self.store)
    }

    pub(crate) async fn pay(&self, events: Vec<Event>, commit: bool) {
        let mut tx = self.store.pool().begin().await.unwrap();
        let payments: Vec<_> =
            events.iter().map(|event| String::from_utf8(event.payload.to_vec()).unwrap()).collect();
        sqlx::query("INSERT INTO payments SELECT unnest($1::text[])")
            .bind(payments)
            .execute(&mut *tx)
            .await
            .unwrap();
        append_all(&mut tx, &events).await.unwrap();
        if commit {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
    }

    pub(crate) async fn book(&self, delivery: &Delivery, traps: &Traps) -> Result<(), Failure> {
        let payment = String::from_utf8(delivery.payload.to_vec()).unwrap();
        traps.at(Place::Before).await;
        if is_booked_in_steps(&payment) {
            let Some(steps) = self.inbox.steps::<Failure>(&delivery.id).await? else { return Ok(()) };
            let identity = |what: &str| format!("{what}_payment_{payment}");
            let _either = steps.effect(&identity("ledger"), async |tx| enter(tx, &payment).await).await?;
            traps.at(Place::BetweenEffects).await;
            let _either = steps.effect(&identity("mail"), async |tx| mail(tx, &payment).await).await?;
            let _either = steps.effect(&identity("partner"), async |tx| notify(tx, &payment).await).await?;
            steps.finish::<Failure>().await?;
        } else {
            let booking = async |tx: &mut PgConnection| {
                enter(tx, &payment).await?;
                mail(tx, &payment).await?;
                traps.at(Place::InTransaction).await;
                notify(tx, &payment).await
            };
            let _either = self.inbox.handle(&delivery.id, booking).await?;
        }
        traps.at(Place::After).await;
        Ok(())
    }

    pub(crate) async fn all(&self, table: &str) -> Vec<String> {
        let all = sqlx::query_scalar(AssertSqlSafe(format!("SELECT payment FROM {table}")));
        all.fetch_all(self.store.pool()).await.unwrap()
    }
}

async fn enter(tx: &mut PgConnection, payment: &str) -> Result<(), Failure> {
    sqlx::query("INSERT INTO ledger VALUES ($1)").bind(payment.to_owned()).execute(tx).await?;
    Ok(())
}

async fn mail(tx: &mut PgConnection, payment: &str) -> Result<(), Failure> {
    sqlx::query("INSERT INTO mails VALUES ($1)").bind(payment.to_owned()).execute(tx).await?;
    Ok(())
}

async fn notify(tx: &mut PgConnection, payment: &str) -> Result<(), Failure> {
    append(tx, &notification(payment)).await.map_err(|error| Failure::NotNow(error.to_string()))
}
