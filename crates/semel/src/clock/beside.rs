//! The time of a transaction that is not the store's own.

use super::keeper::{SINCE_MARK, TOLERANCE};
use super::{Mark, Wrong};
use crate::time::{Now, Timestamp};
use core::time::Duration;

/// What time it is for an application's own transaction beside the store, given the store's row and what the clock claims.
///
/// Such a transaction sees the clock once and knows neither a steady clock nor the terms. So it only stamps, and leaves the row to the store, which
/// would follow it. Where marks that are written once a minute do not account for what the clock claims, the earliest time stays at the mark, and the
/// latest is the claim.
///
/// # Errors
/// [`Wrong::Behind`]: the clock is behind the mark by more than the mark may be old. It cannot say how long the store was stopped, so no window can
/// be stamped by it.
pub fn beside(row: Mark, claimed: i64) -> Result<Now, Wrong> {
    if row.at <= 0 {
        return Ok(now(claimed, claimed));
    }
    let (ahead, held) = (claimed.saturating_sub(row.at), row.held());
    let time = claimed.saturating_sub(row.behind);
    let passed = time.saturating_sub(row.at);
    let fresh = -TOLERANCE..=SINCE_MARK;
    let claims = claimed.max(time.saturating_add(held));
    Ok(if fresh.contains(&passed) {
        now(time.max(row.at), claims)
    } else if fresh.contains(&ahead) {
        // The clock is right again. The hold is the store's to end.
        now(claimed.max(row.at), claimed.max(row.at).saturating_add(held))
    } else if ahead.max(passed) < -SINCE_MARK {
        return Err(Wrong::Behind(ahead.max(passed)));
    } else {
        // A clock that was set back says nothing of the time since the mark, which is as old as a mark can be.
        let marked = row.at.saturating_add(held).saturating_add(SINCE_MARK);
        now(row.at, if passed < 0 { claims.max(marked) } else { claims })
    })
}

fn now(earliest: i64, latest: i64) -> Now {
    let earliest = Timestamp::from_millis(earliest);
    let latest = Timestamp::from_millis(latest).max(earliest);
    Now { earliest, latest, steady: Duration::ZERO, since: earliest }
}
