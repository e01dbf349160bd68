//! Time since the machine was started, suspended time included. It cannot be set.

use std::time::Duration;

/// Time since the machine was started.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn now() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::Boottime);
    // Neither is ever negative.
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Time since this was first asked. Elsewhere the standard library has no clock that counts suspended time on every system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn now() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    // Ahead by a while, so that a moment before the first can be named too.
    Duration::from_secs(86_400) + START.get_or_init(Instant::now).elapsed()
}
