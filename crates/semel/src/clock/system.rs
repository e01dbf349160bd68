//! Where the readings come from.

use super::Readings;
use std::time::{Duration, SystemTime};

/// The clocks of a machine.
pub trait Clock: Send + Sync + 'static {
    /// The time of day. It may jump.
    fn wall(&self) -> SystemTime;

    /// The time since some fixed moment. It never goes back and never jumps, and stands still while the machine is suspended.
    fn monotonic(&self) -> Duration;

    /// The time since some fixed moment, the time included for which the machine was suspended.
    fn boottime(&self) -> Duration;

    /// Whether the kernel reports that the time of day is synchronised; `None`: it cannot say.
    fn synchronised(&self) -> Option<bool>;

    /// The time of day in milliseconds since 1970.
    fn wall_millis(&self) -> i64 {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match self.wall().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        }
    }

    /// What all of them say, for a store that goes by the time of day. The steady clock is read before and after it: a thread that is stalled in
    /// between sees no step.
    fn readings(&self) -> Readings {
        let (sent, claimed) = (self.boottime(), self.wall_millis());
        Readings { claimed, sent, boottime: self.boottime(), monotonic: self.monotonic(), told: None }
    }
}

/// The clocks of this machine.
///
/// `CLOCK_BOOTTIME` and `CLOCK_MONOTONIC` are asked of the kernel itself, so that a library that pretends another time of day does not change
/// them. Synchronisation is what `adjtimex` says. Elsewhere than on Linux suspension does not count, and synchronisation cannot be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Duration {
        kernel::monotonic()
    }

    fn boottime(&self) -> Duration {
        crate::boottime::now()
    }

    fn synchronised(&self) -> Option<bool> {
        kernel::synchronised()
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    /// The state of a clock that nobody keeps synchronised, as `adjtimex` returns it.
    const TIME_ERROR: i32 = 5;

    pub(super) fn monotonic() -> Duration {
        let time = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }

    /// A query: nothing is set, so that it needs no privilege. Refused (by a seccomp filter, say), the kernel cannot be asked.
    pub(super) fn synchronised() -> Option<bool> {
        let mut asked = rtime_clock::adjtime::Timex::new();
        rtime_clock::adjtime::adjtimex(&mut asked).ok().map(|state| state != TIME_ERROR)
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(super) fn monotonic() -> Duration {
        BEGAN.elapsed()
    }

    pub(super) fn synchronised() -> Option<bool> {
        None
    }
}
