//! Acting on records inside an application's own transaction.
//!
//! Domain rows, outbox rows and the operation's outcome are one commit: there is no moment at which one of them is there without
//! the other. [`act_in`] finishes an operation that was reserved before; [`reserve_in`] and [`act_in`] together are the whole of an
//! operation that is purely local, in one commit.
//!
//! While such a transaction is open, batches of the store do not wait for it: the key is answered as locked, which means in
//! progress.

use crate::clock::Asked;
use crate::error::{ActError, CommitError, of_a_commit};
use crate::key::KeyHash;
use crate::read::moment;
use crate::row::{AFTER_RECORD, computed, decode};
use crate::statements::{HOLD, READ};
use crate::write::{remove_query, reserve_query, swap_query, wrote};
use semel::transition::{Act, Change, Claim, Refusal};
use semel::{Draft, Record, StoreError, Swap};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Postgres, Transaction};
use uuid::Uuid;

/// What became of a reservation inside a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reserved {
    /// The key is reserved, once the transaction commits: this is the record, and its [`Claim`] is the caller's.
    New(Box<Record>),
    /// This is there already; nothing was written. It is as it is stored: [`Engine::open`](semel::Engine::open) opens what is sealed of it.
    Exists(Box<Record>),
    /// Another transaction holds the key at this moment; nothing was written. It means: in progress.
    Locked,
}

/// The parameters of the statements.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) asked: Asked,
    pub(crate) lossy: bool,
    pub(crate) prepared: bool,
}

/// Not prepared by name: there may be a pooler in transaction mode in front of the server, which would hand the name to
/// another connection.
const DEFAULT: Terms = Terms { asked: Asked::NOTHING, lossy: false, prepared: false };

/// Reserves the key of `draft` in the open transaction of `conn` if it is free; otherwise returns the record that is there. Never waits.
///
/// The statements are not prepared by name, so that it works behind any pooler. [`PgStore::reserve_in`](crate::PgStore::reserve_in) knows
/// the store's options, and saves the server some planning where it may.
///
/// # Errors
/// [`ActError::NoTransaction`] and [`ActError::NotDurable`] if the connection is not fit for it; [`ActError::Store`] or
/// [`ActError::Sqlx`] if the database is not. Nothing was reserved.
pub async fn reserve_in(conn: &mut PgConnection, draft: Draft) -> Result<Reserved, ActError> {
    reserve(conn, draft, DEFAULT).await
}

/// The owner acts on its record in the open transaction of `conn`. The record as it will be once that commits; `None`: removed.
///
/// ```no_run
/// # use semel::transition::{Act, Claim};
/// # use semel_postgres::{ActError, act_in};
/// # async fn run(db: sqlx::PgPool, claim: Claim, completion: Act) -> Result<(), ActError> {
/// let mut tx = db.begin().await?;
/// sqlx::query("INSERT INTO payments (id, amount) VALUES ($1, $2)").bind("pay_1").bind(1_000_i64).execute(&mut *tx).await?;
/// act_in(&mut tx, &claim, &completion).await?; // refused: `tx` is dropped, and the payment with it
/// tx.commit().await?;
/// # Ok(()) }
/// ```
///
/// The statements are not prepared by name, so that it works behind any pooler. [`PgStore::act_in`](crate::PgStore::act_in) knows the
/// store's options, and saves the server some planning where it may.
///
/// # Errors
/// [`ActError::Refused`] if the claim does not hold any more: roll the transaction back, the domain statements must not
/// commit. The others as in [`reserve_in`].
pub async fn act_in(conn: &mut PgConnection, claim: &Claim, act: &Act) -> Result<Option<Record>, ActError> {
    self::act(conn, claim, act, DEFAULT).await
}

/// As [`act_in`], and commits the transaction: one that a pool has begun. A savepoint inside of another transaction, whose release
/// commits nothing, does not live long enough to be one:
///
/// ```compile_fail,E0597
/// # use semel::transition::{Act, Claim};
/// # async fn run(db: sqlx::PgPool, claim: Claim, completion: Act) -> Result<(), Box<dyn std::error::Error>> {
/// let mut outer = db.begin().await?;
/// let savepoint = sqlx::Acquire::begin(&mut outer).await?;
/// semel_postgres::commit_with(savepoint, &claim, &completion).await?;
/// # Ok(()) }
/// ```
///
/// Where replication is synchronous, use [`PgStore::commit_with`](crate::PgStore::commit_with): it knows whether the commit was waited for.
///
/// # Errors
/// Nothing was written; or, with [`StoreError::Lost`], that is unknown: read the record back by its owner.
pub async fn commit_with(
    transaction: Transaction<'static, Postgres>,
    claim: &Claim,
    act: &Act,
) -> Result<Option<Record>, CommitError> {
    let mut transaction = transaction;
    let record = self::act(&mut transaction, claim, act, DEFAULT).await?;
    transaction.commit().await.map_err(|error| CommitError::Store(of_a_commit(&error)))?;
    Ok(record)
}

pub(crate) async fn reserve(
    conn: &mut PgConnection,
    draft: Draft,
    terms: Terms,
) -> Result<Reserved, ActError> {
    in_transaction(conn)?;
    semel::check_draft(&draft)?;
    let hash = KeyHash::of(&draft.key);
    let query = reserve_query(terms.asked, terms.lossy, hash, &draft);
    let rows = query.persistent(terms.prepared).fetch_all(&mut *conn).await?;
    let wrote = wrote(rows)?.ok_or(ActError::NotDurable)?;
    let [made, locked] = wrote.created()?;
    if made.contains(&draft.operation_id) {
        return Ok(Reserved::New(Box::new(draft.at(wrote.answered.stamped()))));
    }
    if locked.contains(&draft.operation_id) {
        return Ok(Reserved::Locked);
    }
    let query =
        sqlx::query(READ).persistent(terms.prepared).bind(terms.asked.numbers).bind(vec![hash.uuid()]);
    let rows = query.fetch_all(&mut *conn).await?;
    moment(&rows)?;
    match rows.first().map(|row| decode(row, true)).transpose()?.flatten() {
        Some(record) if record.key != draft.key => Err(StoreError::Damaged(format!(
            "operation {}: its key has the hash of another key",
            record.operation_id
        ))
        .into()),
        Some(record) => Ok(Reserved::Exists(Box::new(record))),
        // It existed a moment ago: it is being removed, and its key will be reserved again.
        None => Ok(Reserved::Locked),
    }
}

pub(crate) async fn act(
    conn: &mut PgConnection,
    claim: &Claim,
    act: &Act,
    terms: Terms,
) -> Result<Option<Record>, ActError> {
    in_transaction(conn)?;
    let query = sqlx::query(HOLD).persistent(terms.prepared).bind(terms.asked.numbers).bind(terms.lossy);
    let row = query.bind(Uuid::from(claim.operation_id)).fetch_one(&mut *conn).await?;
    if !computed::<bool>(&row, AFTER_RECORD + 1)? {
        return Err(ActError::NotDurable);
    }
    // A record that is gone is another operation by now, or will be.
    let record = decode(&row, false)?.ok_or(ActError::Refused(Refusal::Fenced))?;
    let (hash, expected) = (KeyHash::of(&record.key), record.expected());
    let (query, swap);
    let next = match semel::transition::act(&record, claim, act).map_err(ActError::Refused)? {
        Change::Put { next, history } => {
            swap = Swap { expected, next, history };
            swap.check()?;
            query = swap_query(terms.asked, terms.lossy, &[(hash, &swap)]);
            Some(&swap.next)
        }
        Change::Remove => {
            query = remove_query(terms.asked, terms.lossy, &[(hash, &expected)]);
            None
        }
    };
    let rows = query.persistent(terms.prepared).fetch_all(&mut *conn).await?;
    let wrote = wrote(rows)?.ok_or(ActError::NotDurable)?;
    if wrote.done()?.is_empty() {
        // Its row is locked by this transaction since before it was read.
        let what = format!("operation {}: it changed under its lock", claim.operation_id);
        return Err(StoreError::Damaged(what).into());
    }
    Ok(next.map(|next| Draft::clone(next).at(wrote.answered.stamped())))
}

/// Outside of a transaction the act would commit by itself, and the domain rows without it.
fn in_transaction(conn: &PgConnection) -> Result<(), ActError> {
    if conn.is_in_transaction() { Ok(()) } else { Err(ActError::NoTransaction) }
}
