//! What time it is: the wall clock, never behind the file, and never by leaps.
//!
//! Windows and leases are judged by this clock, so a clock that leaps ahead would expire what must still be replayed, and a
//! key would execute again. Therefore the wall clock is believed only as far as the monotonic clock bears it out: where the
//! two part by more than two seconds, time goes on by the monotonic clock. A leap makes leases and windows longer at worst:
//! doubt lasts, nothing executes.
//!
//! - Time never falls behind the highest time in the file, which every writing transaction leaves there. Processes that
//!   share the file share its time. If the file is ahead of the wall clock, time goes on from the file's.
//! - The monotonic clock stands still while a machine is suspended: afterwards time lags behind the wall clock until the
//!   process starts anew, or another one with the right time writes.
//! - What no process saw cannot be told from time that passed: a wall clock that is wrong when a process *starts* is believed.

use semel::Timestamp;
use semel::planted::{self, Bug};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Where a store takes the time from.
pub trait Clock: Send + Sync + 'static {
    /// The time of day. It may leap.
    fn wall(&self) -> SystemTime;

    /// The time since some fixed moment. It never goes back, and never leaps.
    fn monotonic(&self) -> Duration;
}

/// The clocks of the machine.
#[derive(Debug)]
pub struct SystemClock {
    began: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }
}

/// How far wall clock and monotonic clock may part before the wall clock is not believed any more. Clock discipline moves
/// both of them; only a step moves one. Two seconds is more than a leap second and less than any lease worth having.
const TOLERANCE: i64 = 2_000;

/// How long a pair of readings is compared against. Each period may add the tolerance once: many small steps in a row do
/// not add up to a leap.
const PERIOD: Duration = Duration::from_secs(60);

/// The wall clock as far as it is borne out by the monotonic one.
pub(crate) struct StoreClock {
    clock: std::sync::Arc<dyn Clock>,
    reading: Mutex<Reading>,
}

struct Reading {
    /// What time it was, in milliseconds,
    millis: i64,
    /// when the monotonic clock stood here.
    monotonic: Duration,
    /// The highest time given out.
    last: i64,
    /// Whether the wall clock is believed at present.
    believed: bool,
}

impl StoreClock {
    pub(crate) fn new(clock: std::sync::Arc<dyn Clock>) -> Self {
        let millis = wall_millis(&*clock);
        let monotonic = clock.monotonic();
        let reading = Mutex::new(Reading { millis, monotonic, last: i64::MIN, believed: true });
        Self { clock, reading }
    }

    /// The time now, given the highest time in the file.
    pub(crate) fn now(&self, file: Timestamp) -> Timestamp {
        // A reading is a few numbers that are each valid at any time: a panic elsewhere leaves nothing half done.
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, monotonic) = (wall_millis(&*self.clock), self.clock.monotonic());
        if planted::bug(Bug::LocalClock) {
            return Timestamp::from_millis(wall);
        }
        let elapsed = monotonic.saturating_sub(reading.monotonic);
        let expected = Timestamp::from_millis(reading.millis).plus(elapsed).as_millis();
        let borne_out = wall.abs_diff(expected) <= TOLERANCE.unsigned_abs();
        if borne_out != reading.believed {
            reading.believed = borne_out;
            if borne_out {
                tracing::info!("the wall clock agrees with the store's time again");
            } else {
                tracing::warn!(
                    leap_millis = wall.saturating_sub(expected),
                    "the wall clock leapt and is not followed: the store's time goes on by the monotonic clock"
                );
            }
        }
        if borne_out && elapsed >= PERIOD {
            (reading.millis, reading.monotonic) = (wall, monotonic);
        }
        let own = if borne_out { wall } else { expected };
        let file = file.as_millis();
        if file.saturating_sub(own) > TOLERANCE {
            // Standing still until the wall clock has caught up could take years: time goes on from the file's.
            (reading.millis, reading.monotonic) = (file, monotonic);
        }
        reading.last = own.max(file).max(reading.last);
        Timestamp::from_millis(reading.last)
    }
}

fn wall_millis(clock: &dyn Clock) -> i64 {
    let wall = clock.wall();
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match wall.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => millis(after),
        Err(before) => -millis(before.duration()),
    }
}
