//! How long the writer waits: for more jobs to share its commit, and for the next job.

use super::ToWriter;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, error::TryRecvError};

/// Delays a commit for jobs that are expected to join it: as many as the last group had.
///
/// Where many write at once, most of those who were just answered are on their way back, and a commit that they share is one that
/// they need not pay for. The delay is a small part of what a commit takes. A lone job is committed without delay.
#[derive(Default)]
pub(super) struct GroupCommitDelay {
    /// How many items the last group had.
    pub(super) items: usize,
    /// How long its transaction took.
    pub(super) took: Duration,
}

impl GroupCommitDelay {
    /// Don't delay a commit for groups smaller than this.
    const FEW: usize = 8;
    /// The part of a transaction's time that is spent on waiting, and the most of it.
    const PART: u32 = 4;
    const LONGEST: Duration = Duration::from_millis(1);
    const NAP: Duration = Duration::from_micros(100);

    /// The next job of a group that has `items` and was begun at `begun`, if there is one to take along.
    pub(super) fn next(
        &self,
        queue: &mut mpsc::Receiver<ToWriter>,
        items: usize,
        begun: Instant,
    ) -> Option<ToWriter> {
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

/// Waits for the next job: spins for a moment, then parks the thread.
///
/// A caller often comes right back, such as one that completes what it has just reserved. Waking a parked thread for it
/// takes longer than spinning for a moment. After spinning without success the thread parks for the next few groups, so that
/// useless spinning costs next to nothing.
#[derive(Default)]
pub(super) struct SpinThenPark {
    asleep_for: u32,
}

impl SpinThenPark {
    /// About twice as long as it takes to wake a caller.
    const MOMENT: Duration = Duration::from_micros(150);
    const ASLEEP_AFTER_VAIN: u32 = 16;

    pub(super) fn next(&mut self, queue: &mut mpsc::Receiver<ToWriter>) -> Option<ToWriter> {
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
