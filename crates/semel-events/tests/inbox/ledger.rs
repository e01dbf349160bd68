//! A ledger in PostgreSQL, without a unique key: whatever is entered twice is there twice.

use semel_events::consumer::{Delivery, Failure};
use semel_events::inbox::{MessageId, PgInbox};
use semel_postgres::PgStore;
use semel_testing::database::Database;
use sqlx::PgPool;
use sqlx::postgres::PgConnection;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// The ledger, and the inbox of whoever writes to it.
pub(crate) struct Ledger {
    pub(crate) database: Database,
    pub(crate) pool: PgPool,
    pub(crate) inbox: PgInbox,
}

pub(crate) fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

/// Enters a payment.
pub(crate) async fn enter(tx: &mut PgConnection, payment: &str) -> Result<(), sqlx::Error> {
    let entering = sqlx::query("INSERT INTO ledger (payment) VALUES ($1)").bind(payment.to_owned());
    entering.execute(tx).await.map(drop)
}

impl Ledger {
    pub(crate) async fn new() -> Self {
        let database = Database::new().await;
        // Makes the tables.
        drop(PgStore::connect(&database.url()).await.unwrap());
        let pool = database.pool().await;
        sqlx::raw_sql(
            "CREATE TABLE ledger (line bigint GENERATED ALWAYS AS IDENTITY, payment text NOT NULL)",
        )
        .execute(&pool)
        .await
        .unwrap();
        let inbox = PgInbox::new(pool.clone(), "ledger").unwrap();
        Self { database, pool, inbox }
    }

    /// What is entered, in its order.
    pub(crate) async fn lines(&self) -> Vec<String> {
        sqlx::query_scalar("SELECT payment FROM ledger ORDER BY line").fetch_all(&self.pool).await.unwrap()
    }

    /// How often each payment is entered.
    pub(crate) async fn entries(&self) -> BTreeMap<String, usize> {
        let mut entries = BTreeMap::new();
        for payment in self.lines().await {
            *entries.entry(payment).or_default() += 1;
        }
        entries
    }

    pub(crate) async fn marks(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM semel_inbox").fetch_one(&self.pool).await.unwrap()
    }

    /// A handler that enters what messages tell, once each, and says so for every delivery.
    pub(crate) fn bookkeeper(
        &self,
    ) -> (impl Fn(Delivery) -> Entering + Send + Sync + 'static, mpsc::UnboundedReceiver<Delivery>) {
        let (tell, told) = mpsc::unbounded_channel();
        let inbox = self.inbox.clone();
        let handler = move |delivery: Delivery| -> Entering {
            let (inbox, tell) = (inbox.clone(), tell.clone());
            Box::pin(async move {
                enter_delivery(&inbox, &delivery).await?;
                tell.send(delivery).unwrap();
                Ok(())
            })
        };
        (handler, told)
    }
}

pub(crate) type Entering = std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// Enters what the message tells, once.
pub(crate) async fn enter_delivery(inbox: &PgInbox, delivery: &Delivery) -> Result<(), Failure> {
    let payment = String::from_utf8(delivery.payload.to_vec()).unwrap();
    let _either = inbox.handle(&delivery.id, async |tx| enter(tx, &payment).await).await?;
    Ok(())
}
