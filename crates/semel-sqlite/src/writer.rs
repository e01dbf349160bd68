//! The writer: one thread, one connection, one transaction for everything that waits.

use crate::clock::StoreClock;
use crate::connection::OpenedFile;
use crate::error::{Fault, unavailable};
use crate::job::{Job, Scope};
use crate::log_copier::LogCopier;
use crate::statements::{clock_row, set_clock_row};
use crate::stats::Counters;
use crate::transaction::Fence;
use rusqlite::{Connection, ErrorCode};
use semel::{Now, StoreError};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, error::TryRecvError};

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

/// How many jobs of one group may turn out impossible before the rest is told to come again.
const FAULTS: usize = 8;

// The comments keep these apart from the same words of an application's, which must not find ours in the statement cache.
const BEGIN: &str = "BEGIN IMMEDIATE -- of the group";
const COMMIT: &str = "COMMIT -- of the group";
const ROLLBACK: &str = "ROLLBACK -- of the group";

/// The writer's side of a store.
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) log: LogCopier,
    pub(crate) file: OpenedFile,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) fence: Fence,
}

impl Writer {
    /// Works until every handle is gone or one says stop, and what was queued is done.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<ToWriter>) {
        let mut lookout = Lookout::default();
        let mut company = Company::default();
        while let Some(first) = lookout.next(&mut queue) {
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
                next = if items < GROUP { company.next(&mut queue, items, begun) } else { None };
            }
            let gathered = Instant::now();
            self.work(group);
            company = Company { items, took: gathered.elapsed() };
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
        fail(group, &StoreError::Unavailable("too much of one transaction turned out impossible".into()));
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
        let told = self.clock.judge(row).map_err(Trouble::Group)?;
        let now = told.now;
        // That a clock hold is open, or ended, is to be known to all that share the file.
        let mut wrote = told.mark.behind != row.behind;
        let mark = Cell::new(told.mark);
        let scope = Scope { conn: &self.conn, now, told, row, mark, clock: &self.clock, fence: &self.fence };
        for (index, job) in group.iter_mut().enumerate() {
            let done = job.run(&scope);
            if self.conn.is_autocommit() && !job.repeatable() {
                let error =
                    StoreError::Unavailable("a closure's failure rolled the whole transaction back".into());
                return Err(Trouble::Closures(error));
            }
            match done {
                Ok(written) => wrote |= written,
                Err(Fault::Job(error)) if job.repeatable() => return Err(Trouble::Job(index, error)),
                Err(Fault::Job(error)) => return Err(Trouble::Closures(error)),
                Err(Fault::Group(error)) => return Err(nothing_written(error)),
            }
        }
        if wrote {
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
            // The commit frame is the last one that is written: without room for it there is none.
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
            tracing::error!(%error, "a transaction could not be rolled back; it is tried again before the next one");
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// Who is expected to come along: as many as came along last time.
///
/// Where many write at once, most of those who were just answered are on their way back, and a commit that they share is one that
/// they need not pay for. They are waited for for a small part of what a commit takes. Nobody is waited for by those who come alone.
#[derive(Default)]
struct Company {
    /// How many items the last group had.
    items: usize,
    /// How long its transaction took.
    took: Duration,
}

impl Company {
    /// Fewer than these are no company.
    const FEW: usize = 8;
    /// The part of a transaction's time that is spent on waiting, and the most of it.
    const PART: u32 = 4;
    const LONGEST: Duration = Duration::from_millis(1);
    const NAP: Duration = Duration::from_micros(100);

    /// The next job of a group that has `items` and was begun at `begun`, if there is one to take along.
    fn next(&self, queue: &mut mpsc::Receiver<ToWriter>, items: usize, begun: Instant) -> Option<ToWriter> {
        let is_expected = self.items >= Self::FEW && items < self.items;
        let patience = (self.took / Self::PART).min(Self::LONGEST);
        loop {
            match queue.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Empty) if is_expected && begun.elapsed() < patience => {
                    // Asleep: those who are awaited may lack this very processor.
                    std::thread::sleep(Self::NAP);
                }
                Err(_) => return None,
            }
        }
    }
}

/// Waits for the next job with open eyes, as long as that pays.
///
/// Whoever was answered often comes right back: a lone caller that completes what it has just reserved. Waking a sleeping thread for it
/// takes longer than looking out for a moment. Where nobody came in that moment, the next few groups are awaited asleep, so that
/// looking out costs next to nothing where it is in vain.
#[derive(Default)]
struct Lookout {
    asleep_for: u32,
}

impl Lookout {
    /// About twice as long as it takes to wake a caller.
    const MOMENT: Duration = Duration::from_micros(150);
    const ASLEEP_AFTER_VAIN: u32 = 16;

    fn next(&mut self, queue: &mut mpsc::Receiver<ToWriter>) -> Option<ToWriter> {
        if self.asleep_for > 0 {
            self.asleep_for -= 1;
            return queue.blocking_recv();
        }
        let begun = Instant::now();
        while begun.elapsed() < Self::MOMENT {
            match queue.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        self.asleep_for = Self::ASLEEP_AFTER_VAIN;
        queue.blocking_recv()
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
