//! Acting on records inside an open transaction, be it the store's or an application's own.
//!
//! An application with a rusqlite connection of its own to the same file begins a transaction with `BEGIN IMMEDIATE`, writes
//! its domain rows, calls [`act_in`] and commits. Domain rows and completion are one commit: there is no moment at which one
//! of them is there without the other.

use crate::clock;
use crate::error::ActError;
use crate::statements::{self, clock_row, set_clock_row};
use rusqlite::{Connection, TransactionState};
use semel::clock::{Clock as _, Mark, SystemClock, beside};
use semel::columns::key_hash;
use semel::transition::{Act, Change, Claim, Refusal};
use semel::{Created, Draft, Now, Record, StoreError, Swap, Swapped, Timestamp};
use std::slice::from_ref;

/// What became of a reservation inside a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reserved {
    /// The key is reserved: this is the record, and its [`Claim`] is the caller's.
    New(Box<Record>),
    /// This is there already; nothing was written. It is as it is stored: [`Engine::open`](semel::Engine::open) opens what is sealed of it.
    Exists(Box<Record>),
}

/// Reserves the key of `draft` in the open transaction of `conn` if it is free; otherwise returns the record that is there.
///
/// # Errors
/// [`ActError::NoWriteTransaction`] and [`ActError::NotDurable`] if the connection is not fit for it; [`ActError::Store`] or
/// [`ActError::Sqlite`] if the file is not. Nothing was reserved.
pub fn reserve_in(conn: &Connection, draft: Draft) -> Result<Reserved, ActError> {
    let now = moment_in(conn)?;
    reserve(conn, draft, now)
}

/// The owner acts on its record in the open transaction of `conn`. The record as it is then; `None`: it was removed.
///
/// # Errors
/// [`ActError::Refused`] if the claim does not hold any more: roll the transaction back, the domain statements must not
/// commit. The others as in [`reserve_in`].
pub fn act_in(conn: &Connection, claim: &Claim, act: &Act) -> Result<Option<Record>, ActError> {
    let now = moment_in(conn)?;
    self::act(conn, claim, act, now)
}

pub(crate) fn reserve(conn: &Connection, draft: Draft, now: Now) -> Result<Reserved, ActError> {
    semel::check_draft(&draft)?;
    let hash = key_hash(&draft.key);
    let created = statements::create(conn, from_ref(&draft), from_ref(&hash), now)?;
    match created.into_iter().next() {
        Some(Created::Inserted) => Ok(Reserved::New(Box::new(draft.at(now)))),
        Some(Created::Exists(record)) => Ok(Reserved::Exists(record)),
        Some(Created::Damaged(why)) => Err(StoreError::Damaged(why).into()),
        _ => Err(StoreError::Unavailable("the store returned no result for the key".into()).into()),
    }
}

pub(crate) fn act(conn: &Connection, claim: &Claim, act: &Act, now: Now) -> Result<Option<Record>, ActError> {
    // A record that is gone is another operation by now, or will be.
    let record = statements::find(conn, claim.operation_id)?.ok_or(ActError::Refused(Refusal::Fenced))?;
    let expected = record.expected();
    let (done, next) = match semel::transition::act(&record, claim, act).map_err(ActError::Refused)? {
        Change::Put { next, history } => {
            let swap = Swap { expected, next, history };
            swap.check()?;
            (statements::swap(conn, from_ref(&swap), now)?.pop(), Some(swap.next.at(now)))
        }
        Change::Remove => (Some(statements::remove(conn, &expected)?), None),
    };
    match done {
        Some(Swapped::Done) => Ok(next),
        // The write lock is ours since before the record was read.
        _ => Err(StoreError::Damaged(format!(
            "operation {}: it changed while the write lock was held",
            claim.operation_id
        ))
        .into()),
    }
}

/// The store's now in the open write transaction of an application's own connection: the earliest time that it may be.
///
/// # Errors
/// [`ActError::NoWriteTransaction`] and [`ActError::NotDurable`] if the connection is not fit for the store's rows.
pub fn time_in(conn: &Connection) -> Result<Timestamp, ActError> {
    Ok(moment_in(conn)?.earliest)
}

/// The same, with the latest time that it may be. Stamp by that what must not be over too early, as marks of what was done.
///
/// # Errors
/// As in [`time_in`].
pub fn moment_in(conn: &Connection) -> Result<Now, ActError> {
    if conn.transaction_state(Some("main"))? != TransactionState::Write {
        return Err(ActError::NoWriteTransaction);
    }
    let level: i64 = conn.prepare_cached("PRAGMA synchronous")?.query_row([], |row| row.get(0))?;
    if level < 2 {
        return Err(ActError::NotDurable);
    }
    let (row, claimed) = (clock_row(conn)?, SystemClock.wall_millis());
    let now = beside(row, claimed).map_err(|wrong| StoreError::Unavailable(clock::reason(wrong)))?;
    // A file without a mark would believe any clock at the next start.
    if row.at <= 0 {
        set_clock_row(conn, Mark { at: claimed, ..row })?;
    }
    Ok(now)
}
