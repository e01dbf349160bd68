//! Writes events, in batches, over several connections.

use crate::{Arguments, Failure};
use semel_events::message::Event;
use semel_events::outbox::Place;
use semel_events::outbox::postgres::append_all;
use sqlx::PgPool;
use sqlx::postgres::PgConnection;
use tokio::task::JoinSet;

/// How events are written.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// By the outbox's own function.
    Append,
    /// By an INSERT of the same rows, and nothing around it.
    Insert,
}

/// The events of one round, each with an identity of its own.
pub(crate) fn events(arguments: &Arguments) -> Vec<Event> {
    let event = |number: usize| {
        // Scattered, so that no two connections go through the aggregates in step.
        let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let aggregate = format!("payment/pay_{}", scattered % arguments.aggregates.max(1));
        Event::json(aggregate, "PaymentCreated", format!(r#"{{"amount":"12.50","number":{number}}}"#))
    };
    (0..arguments.events).map(event).collect()
}

pub(crate) struct Appenders {
    pool: PgPool,
    way: Way,
    batches: Vec<Vec<Event>>,
    connections: usize,
}

impl Appenders {
    /// Everything is made beforehand, so that writing alone is measured.
    pub(crate) fn new(pool: PgPool, way: Way, arguments: &Arguments) -> Self {
        let batches = events(arguments).chunks(arguments.batch.max(1)).map(<[Event]>::to_vec).collect();
        Self { pool, way, batches, connections: arguments.connections.max(1) }
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut tasks = JoinSet::new();
        let share = self.batches.len().div_ceil(self.connections);
        for batches in self.batches.chunks(share) {
            let (pool, way, batches) = (self.pool.clone(), self.way, batches.to_vec());
            tasks.spawn(async move {
                for batch in batches {
                    let mut tx = pool.begin().await?;
                    match way {
                        Way::Append => append_all(&mut tx, &batch).await?,
                        Way::Insert => insert(&mut tx, &batch).await?,
                    }
                    tx.commit().await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        Ok(())
    }
}

async fn insert(conn: &mut PgConnection, events: &[Event]) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO semel_outbox (event_id, created_at, lane, aggregate, kind, content_type, payload)
               SELECT event_id, 0, lane, aggregate, kind, content_type, payload
                 FROM unnest($1::uuid[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::bytea[])
                      AS e (event_id, lane, aggregate, kind, content_type, payload)";
    let all = || events.iter();
    sqlx::query(sql)
        .bind(all().map(|event| event.id).collect::<Vec<_>>())
        .bind(all().map(|event| i16::from(Place::of(&event.aggregate).lane)).collect::<Vec<_>>())
        .bind(all().map(|event| event.aggregate.as_str()).collect::<Vec<_>>())
        .bind(all().map(|event| event.kind.as_str()).collect::<Vec<_>>())
        .bind(all().map(|event| event.content_type.as_str()).collect::<Vec<_>>())
        .bind(all().map(|event| event.payload.as_ref()).collect::<Vec<_>>())
        .execute(conn)
        .await
        .map(drop)
}
