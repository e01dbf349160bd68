//! A walk through the records that are due, page by page.

use semel::{Answer, DueKind, DueQuery, Engine, OperationId, Record, StoreError, Timestamp};
use std::time::Duration;
use tokio::time::Instant;

/// What was left be is looked at again after this long: somebody may have put another record among it, or changed the rules.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Goes through what is due, earliest first, and does not come back to what it left be, however often it restarts: without
/// that, some thousand records that wait for a client's retry would be read every second.
pub(crate) struct Walk {
    kind: DueKind,
    at: Option<Position>,
    /// The end of what was left be, and since when it is not looked at.
    passed_over: Option<(Position, Instant)>,
}

type Position = (Timestamp, OperationId);

impl Walk {
    pub(crate) fn new(kind: DueKind) -> Self {
        Self { kind, at: None, passed_over: None }
    }

    /// Restarts, after what was left be.
    pub(crate) fn begin(&mut self) {
        self.passed_over = self.passed_over.filter(|(_, since)| since.elapsed() < LOOK_AGAIN);
        self.at = self.passed_over.map(|(position, _)| position);
    }

    /// Restarts, and looks at everything.
    pub(crate) fn look_at_everything(&mut self) {
        self.passed_over = None;
        self.at = None;
    }

    /// The next ones. Whatever becomes of them, the walk goes on after them.
    pub(crate) async fn next(&mut self, engine: &Engine, limit: usize) -> Result<Answer<Record>, StoreError> {
        let query = DueQuery { kind: self.kind, after: self.at, limit };
        let answer = engine.store().due(query).await?;
        if let Some(position) = answer.items.last().and_then(position_of) {
            self.at = Some(position);
        }
        Ok(answer)
    }

    /// This one stays as it is, and need not be looked at again for a while.
    pub(crate) fn leave(&mut self, record: &Record) {
        let Some(position) = position_of(record) else { return };
        let since = self.passed_over.map_or_else(Instant::now, |(_, since)| since);
        let end = self.passed_over.map_or(position, |(end, _)| end.max(position));
        self.passed_over = Some((end, since));
    }
}

fn position_of(record: &Record) -> Option<Position> {
    record.due().map(|(_, at)| (at, record.operation_id))
}
