//! The books in a SQLite file, which several processes have open.

use crate::books::{TABLES, is_booked_in_steps, notification};
use crate::trap::{Place, Traps};
use semel_events::consumer::{Delivery, Failure};
use semel_events::inbox::SqliteInbox;
use semel_events::message::Event;
use semel_events::outbox::sqlite::{SqliteOutbox, append};
use semel_sqlite::{SqliteStore, Transaction};
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct SqliteBooks {
    store: SqliteStore,
    inbox: SqliteInbox,
}

impl SqliteBooks {
    pub(crate) async fn open(path: &str) -> Self {
        let store = SqliteStore::open(path).await.unwrap();
        store.transaction(|tx| tx.execute_batch(TABLES)).await.unwrap();
        Self { inbox: SqliteInbox::new(store.clone(), "books").unwrap(), store }
    }

    pub(crate) fn outbox(&self) -> SqliteOutbox {
        SqliteOutbox::of(&self.store)
    }

    pub(crate) async fn pay(&self, events: Vec<Event>, commit: bool) {
        let paying = move |tx: &Transaction<'_>| {
            for event in &events {
                let payment = std::str::from_utf8(&event.payload).unwrap();
                tx.prepare_cached("INSERT INTO payments VALUES (?1)").unwrap().execute([payment]).unwrap();
            }
            append(tx, &events).unwrap();
            if commit { Ok(()) } else { Err(()) }
        };
        assert_eq!(self.store.transaction(paying).await.is_ok(), commit);
    }

    pub(crate) async fn book(&self, delivery: &Delivery, traps: &Arc<Traps>) -> Result<(), Failure> {
        let payment = String::from_utf8(delivery.payload.to_vec()).unwrap();
        traps.at(Place::Before).await;
        if is_booked_in_steps(&payment) {
            let Some(steps) = self.inbox.steps::<Failure>(&delivery.id).await? else { return Ok(()) };
            let identity = |what: &str| format!("{what}_payment_{payment}");
            let [one, two, three] = [(); 3].map(|()| payment.clone());
            let _either = steps.effect(&identity("ledger"), move |tx| enter(tx, &one)).await?;
            traps.at(Place::BetweenEffects).await;
            let _either = steps.effect(&identity("mail"), move |tx| mail(tx, &two)).await?;
            let _either = steps.effect(&identity("partner"), move |tx| notify(tx, &three)).await?;
            steps.finish::<Failure>().await?;
        } else {
            let inside = Arc::clone(traps);
            let booking = move |tx: &Transaction<'_>| {
                enter(tx, &payment)?;
                mail(tx, &payment)?;
                inside.at_blocking(Place::InTransaction);
                notify(tx, &payment)
            };
            let _either = self.inbox.handle(&delivery.id, booking).await?;
        }
        traps.at(Place::After).await;
        Ok(())
    }

    pub(crate) async fn all(&self, table: &str) -> Vec<String> {
        let all = format!("SELECT payment FROM {table}");
        let reading = move |tx: &Transaction<'_>| {
            tx.prepare(&all)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()
        };
        self.store
            .transaction(reading)
            .await
            .map_err(|error: semel_sqlite::TransactionError<rusqlite::Error>| error.to_string())
            .unwrap()
    }
}

fn enter(tx: &Transaction<'_>, payment: &str) -> Result<(), Failure> {
    tx.prepare_cached("INSERT INTO ledger VALUES (?1)")?.execute([payment])?;
    Ok(())
}

fn mail(tx: &Transaction<'_>, payment: &str) -> Result<(), Failure> {
    tx.prepare_cached("INSERT INTO mails VALUES (?1)")?.execute([payment])?;
    Ok(())
}

fn notify(tx: &Transaction<'_>, payment: &str) -> Result<(), Failure> {
    append(tx, &[notification(payment)]).map_err(|error| Failure::NotNow(error.to_string()))
}
