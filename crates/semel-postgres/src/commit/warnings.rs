//! Hears the server's warnings, which the driver writes to the log and tells nobody else.
//!
//! `WARNING: canceling wait for synchronous replication due to user request` comes with a commit that is acknowledged all the same. While a commit is
//! polled, this is the thread's subscriber for `tracing`: it notes warnings of the server and passes everything else on. Whether that works in this
//! program is tried when a store is opened; where it does not, every commit is looked at.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use tracing::dispatcher::{Dispatch, get_default, set_default};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Level, Metadata};

thread_local! {
    static WARNED: Cell<bool> = const { Cell::new(false) };
}

/// Where the driver writes what the server says unasked.
const NOTICES: &str = "sqlx::postgres::notice";

/// The subscriber that commits are polled under.
#[derive(Clone, Debug)]
pub(crate) struct Warnings(Dispatch);

impl Warnings {
    pub(crate) fn new() -> Self {
        Self(Dispatch::new(Ears(get_default(Clone::clone))))
    }

    /// Runs a statement. Whether the server warned meanwhile.
    pub(crate) async fn heard<T>(&self, statement: impl Future<Output = T>) -> (T, bool) {
        let (mut statement, mut warned) = (pin!(statement), false);
        let answer = poll_fn(|context| {
            let _listening = set_default(&self.0);
            WARNED.set(false);
            let polled = statement.as_mut().poll(context);
            warned |= WARNED.take();
            polled
        });
        (answer.await, warned)
    }
}

/// Passes everything on to another subscriber but the server's warnings.
struct Ears(Dispatch);

fn is_warning(metadata: &Metadata<'_>) -> bool {
    metadata.target() == NOTICES && *metadata.level() <= Level::WARN
}

impl Subscriber for Ears {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_warning(metadata) { Interest::always() } else { Interest::sometimes() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_warning(metadata) || self.0.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // The subscriber that everything is passed on to has told its own.
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        if is_warning(event.metadata()) {
            WARNED.set(true);
        } else {
            self.0.event(event);
        }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.0.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.0.record_follows_from(span, follows);
    }

    fn enter(&self, span: &Id) {
        self.0.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.0.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.0.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        self.0.try_close(id)
    }
}
