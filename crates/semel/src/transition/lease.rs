//! How long a lease runs, as requests and the lease watch judge it.

use crate::policy::Policy;
use crate::record::Record;
use crate::time::Now;
use core::time::Duration;

/// The error code of a lease that ran out.
pub(super) const LEASE_OVER: &str = "lease_over";

/// How long the lease of `record` still runs; zero once it is over.
pub(super) fn lease_left(record: &Record, policy: &Policy, now: Now) -> Duration {
    let times = &record.times;
    times.lease.after(now.earliest).max(now.until_steady(times.created, policy.lease))
}
