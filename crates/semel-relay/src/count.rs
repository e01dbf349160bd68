//! Tells the engine's observer what the workers did.

use semel::observe::Event;
use semel::{Engine, Record};

pub(crate) fn count(engine: &Engine, record: &Record, event: Event) {
    if let Some(observer) = engine.observer() {
        observer.count(&record.key.operation, event);
    }
}

/// Counts what a record tells that was just written.
pub(crate) fn written(engine: &Engine, record: &Record) {
    if let Some(event) = Event::of_written(record) {
        count(engine, record, event);
    }
}
