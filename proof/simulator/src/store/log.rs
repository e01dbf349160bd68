//! The write-ahead log: what was written, in order, and up to where it is durable.

use bytes::Bytes;
use semel::RecordKey;
use semel::clock::Mark;
use std::collections::VecDeque;

/// How one write is taken back: what was there before.
pub(super) enum Undo<K> {
    Record(RecordKey, Option<Box<K>>),
    Remembered(String, Option<Bytes>),
    Mark(Mark),
}

/// So many durable writes are kept, for a replica that lags.
const KEPT: u64 = 64;

/// The writes that may yet be lost, and a few before them.
pub(super) struct Log<K> {
    writes: VecDeque<Undo<K>>,
    end: u64,
    durable: u64,
    crashes: u64,
}

impl<K> Default for Log<K> {
    fn default() -> Self {
        Self { writes: VecDeque::new(), end: 0, durable: 0, crashes: 0 }
    }
}

impl<K> Log<K> {
    pub(super) fn append(&mut self, undo: Undo<K>) {
        self.writes.push_back(undo);
        self.end += 1;
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn crashes(&self) -> u64 {
        self.crashes
    }

    /// What was written before what is durable is durable as well.
    pub(super) fn acknowledge(&mut self, position: u64) {
        self.durable = self.durable.max(position.min(self.end));
        let lost_at_most = usize::try_from(self.end - self.durable + KEPT).unwrap_or(usize::MAX);
        while self.writes.len() > lost_at_most {
            self.writes.pop_front();
        }
    }

    /// Of what is not durable, `keep` says how much survives; what does not, the last write first.
    pub(super) fn crash(&mut self, keep: impl FnOnce(u64) -> u64) -> Vec<Undo<K>> {
        let open = self.end - self.durable;
        let kept = keep(open).min(open);
        self.undo(open - kept)
    }

    /// The last `lag` writes, durable or not.
    pub(super) fn fail_over(&mut self, lag: u64) -> Vec<Undo<K>> {
        self.undo(lag.min(self.writes.len() as u64))
    }

    fn undo(&mut self, count: u64) -> Vec<Undo<K>> {
        self.crashes += 1;
        let undone: Vec<Undo<K>> = (0..count).filter_map(|_| self.writes.pop_back()).collect();
        self.end -= undone.len() as u64;
        self.durable = self.durable.min(self.end);
        undone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(writes: i64) -> Log<()> {
        let mut log = Log::default();
        (0..writes).for_each(|at| log.append(Undo::Mark(Mark { at, behind: 0, hold: 0, by: 0 })));
        log
    }

    #[test]
    fn a_crash_takes_back_only_what_nobody_was_told_of() {
        let mut log = log_of(10);
        log.acknowledge(6);
        let undone = log.crash(|open| {
            assert_eq!(open, 4);
            1
        });
        let order: Vec<i64> =
            undone.iter().map(|undo| if let Undo::Mark(mark) = undo { mark.at } else { -1 }).collect();
        assert_eq!((order, log.end()), (vec![9, 8, 7], 7));
        assert!(log.crash(|open| open).is_empty());
    }

    #[test]
    fn a_lagging_replica_lacks_what_was_acknowledged() {
        let mut log = log_of(10);
        log.acknowledge(10);
        assert_eq!(log.fail_over(3).len(), 3);
        assert_eq!(log.end(), 7);
    }
}
