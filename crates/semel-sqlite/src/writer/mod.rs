//! The writer: one thread, one connection, one transaction for everything that waits.

mod group_commit;
mod wal_checkpointer;

pub(crate) use wal_checkpointer::WalCheckpointer;

use crate::clock::{self, StoreClock};
use crate::connection::OpenedFile;
use crate::error::{Fault, unavailable};
use crate::fence::Fence;
use crate::job::{Job, Scope};
use crate::statements::{clock_row, set_clock_row};
use crate::stats::Counters;
use group_commit::{GroupCommitDelay, SpinThenPark};
use rusqlite::{Connection, ErrorCode};
use semel::{Now, StoreError};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

/// What goes through the writer's channel.
pub(crate) enum ToWriter {
    /// Do this.
    Job(Box<dyn Job>),
    /// Do what is queued, then stop.
    Stop,
}

/// How many jobs may wait for the writer. Beyond that, callers wait for a place.
pub(crate) const QUEUE: usize = 4_096;

/// How many items one transaction takes at most: enough to make the sync cheap, few enough to be done in some milliseconds.
const GROUP: usize = 1_024;

/// How many jobs of one group may fail before the rest is done one by one: each failure costs all others their transaction.
const FAULTS: usize = 8;

// The comments keep these apart from the application's own statements, which must not find ours in the statement cache.
const BEGIN: &str = "BEGIN IMMEDIATE -- of the group";
const COMMIT: &str = "COMMIT -- of the group";
const ROLLBACK: &str = "ROLLBACK -- of the group";

/// The writer's side of a store.
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) log: WalCheckpointer,
    pub(crate) file: OpenedFile,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) fence: Fence,
}

impl Writer {
    /// Works until every handle is gone or one says stop, and what was queued is done.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<ToWriter>) {
        let mut idle = SpinThenPark::default();
        let mut delay = GroupCommitDelay::default();
        while let Some(first) = idle.next(&mut queue) {
            let begun = Instant::now();
            let (mut group, mut items) = (Vec::new(), 0);
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    ToWriter::Job(job) => {
                        items += job.items();
                        group.push(job);
                    }
                    ToWriter::Stop => queue.close(),
                }
                next = if items < GROUP { delay.next(&mut queue, items, begun) } else { None };
            }
            let gathered = Instant::now();
            self.work(group);
            delay = GroupCommitDelay { items, took: gathered.elapsed() };
        }
        self.log.end(&mut self.conn);
    }

    fn work(&self, mut group: Vec<Box<dyn Job>>) {
        // Closures come last: until the first of them has run, the transaction can be rolled back and done again without a
        // job that turns out impossible.
        group.sort_by_key(|job| !job.repeatable());
        for _ in 0..FAULTS {
            group.retain(|job| job.wanted());
            if group.is_empty() {
                return;
            }
            match self.attempt(&mut group) {
                Ok(now) => {
                    group.into_iter().for_each(|job| job.committed(now));
                    return;
                }
                Err(Trouble::Job(index, error)) => group.remove(index).failed(error),
                Err(Trouble::Closures(error)) => {
                    let (kept, closures) = group.into_iter().partition(|job| job.repeatable());
                    group = kept;
                    Vec::into_iter(closures).for_each(|job: Box<dyn Job>| job.failed(error.clone()));
                }
                Err(Trouble::Group(error)) => return fail(group, &error),
            }
        }
        for mut job in group {
            match self.attempt(std::slice::from_mut(&mut job)) {
                Ok(now) => job.committed(now),
                Err(Trouble::Job(_, error) | Trouble::Closures(error) | Trouble::Group(error)) => {
                    job.failed(error)
                }
            }
        }
    }

    /// One transaction with everything in it. On an error it is rolled back.
    fn attempt(&self, group: &mut [Box<dyn Job>]) -> Result<Now, Trouble> {
        let nothing_written = |error: rusqlite::Error| Trouble::Group(unavailable(&error));
        self.file.check().map_err(Trouble::Group)?;
        if !self.conn.is_autocommit() {
            self.execute(ROLLBACK).map_err(nothing_written)?;
        }
        self.execute(BEGIN).map_err(nothing_written)?;
        let done = self.run_all(group);
        if done.is_err() {
            self.roll_back();
        }
        let (now, wrote) = done?;
        self.commit(group)?;
        let items = group.iter().map(|job| job.items()).sum();
        // A job that only reads the clock has no items, and is not counted as a commit.
        if items > 0 || wrote {
            self.counters.committed(items, wrote);
        }
        Ok(now)
    }

    fn run_all(&self, group: &mut [Box<dyn Job>]) -> Result<(Now, bool), Trouble> {
        let nothing_written = |error: rusqlite::Error| Trouble::Group(unavailable(&error));
        // Inside the transaction: what another process wrote before us, it wrote at a time that we do not fall behind.
        let row = clock_row(&self.conn).map_err(nothing_written)?;
        let told = self.clock.look(row);
        let refused = told.wrong.map(clock::reason);
        let now = told.now;
        // That a clock hold is open, or ended, is to be known to all that share the file.
        let mut wrote = refused.is_none() && !told.mark.agrees_with(&row);
        let mark = Cell::new(told.mark);
        let scope = Scope { conn: &self.conn, now, told, row, mark, clock: &self.clock, fence: &self.fence };
        for (index, job) in group.iter_mut().enumerate() {
            let done = match &refused {
                Some(why) if job.goes_by_time() => Err(Fault::Job(StoreError::Unavailable(why.clone()))),
                _ => job.run(&scope),
            };
            if self.conn.is_autocommit() && !job.repeatable() {
                let error =
                    StoreError::Unavailable("an error in a closure rolled the whole transaction back".into());
                return Err(Trouble::Closures(error));
            }
            match done {
                Ok(written) => wrote |= written,
                Err(Fault::Job(error)) if job.repeatable() => return Err(Trouble::Job(index, error)),
                Err(Fault::Job(error)) => return Err(Trouble::Closures(error)),
                Err(Fault::Group(error)) => return Err(nothing_written(error)),
            }
        }
        if wrote && refused.is_none() {
            set_clock_row(&self.conn, scope.mark.get()).map_err(nothing_written)?;
        }
        Ok((now, wrote))
    }

    fn commit(&self, group: &[Box<dyn Job>]) -> Result<(), Trouble> {
        let Err(error) = self.execute(COMMIT) else {
            return Ok(());
        };
        self.roll_back();
        let rolled_back = self.conn.is_autocommit();
        let text = format!("the commit failed: {error}");
        Err(match error.sqlite_error_code() {
            // A deferred foreign key of the application's is checked no earlier than here.
            Some(ErrorCode::ConstraintViolation)
                if rolled_back && group.iter().any(|job| !job.repeatable()) =>
            {
                Trouble::Closures(StoreError::Unavailable(text))
            }
            // The commit frame is written last: if it did not fit, the transaction did not commit.
            Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::ConstraintViolation)
                if rolled_back =>
            {
                Trouble::Group(StoreError::Unavailable(text))
            }
            // Where the sync failed, the whole transaction may stand in the log, to be found after a crash.
            _ => Trouble::Group(StoreError::Lost(text)),
        })
    }

    fn roll_back(&self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.execute(ROLLBACK)
        {
            tracing::error!(%error, "rollback failed; retrying before the next transaction");
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// Why a transaction came to nothing.
enum Trouble {
    /// This job is impossible; the others are not.
    Job(usize, StoreError),
    /// The closures are to blame; the others are not.
    Closures(StoreError),
    /// All of it.
    Group(StoreError),
}

fn fail(group: Vec<Box<dyn Job>>, error: &StoreError) {
    group.into_iter().for_each(|job| job.failed(error.clone()));
}
