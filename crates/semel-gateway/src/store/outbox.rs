//! The outbox of a store.

use semel_events::outbox::postgres::PgOutbox;
use semel_events::outbox::sqlite::SqliteOutbox;
use semel_events::outbox::{OutboxAdmin, Queue};
use std::sync::Arc;

/// The outbox of a store, for publishers and for operators.
#[derive(Clone)]
pub struct Outbox {
    /// For publishers.
    pub queue: Arc<dyn Queue>,
    /// For operators.
    pub admin: Arc<dyn OutboxAdmin>,
}

impl From<SqliteOutbox> for Outbox {
    fn from(outbox: SqliteOutbox) -> Self {
        Self { queue: Arc::new(outbox.clone()), admin: Arc::new(outbox) }
    }
}

impl From<PgOutbox> for Outbox {
    fn from(outbox: PgOutbox) -> Self {
        Self { queue: Arc::new(outbox.clone()), admin: Arc::new(outbox) }
    }
}
