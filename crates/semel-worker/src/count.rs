//! Tells the engine's observer what the workers did.

use semel::observe::Event;
use semel::{Engine, Record};

pub(crate) fn count(engine: &Engine, operation: &str, event: Event) {
    if let Some(observer) = engine.observer() {
        observer.count(operation, event);
    }
}

/// Counts what a record tells that was just written.
pub(crate) fn written(engine: &Engine, record: &Record) {
    if let Some(event) = Event::of_written(record) {
        count(engine, &record.key.operation, event);
    }
}
