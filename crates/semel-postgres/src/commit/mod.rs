//! What a commit is worth: whether it was waited for, and whether a failover can take it back.
//!
//! Under synchronous replication a commit waits for a standby after it is on the primary's own disk. The wait can end without one: somebody cancels
//! it (the server warns), or the setting is changed (it says nothing). And a caller can give up while the server goes on waiting.

mod abandoned;
mod warnings;

pub(crate) use abandoned::Running;
pub(crate) use warnings::Warnings;

use crate::replication::{Risk, current, required};
use abandoned::Abandoned;
use semel::StoreError;
use sqlx::postgres::PgConnection;
use sqlx::raw_sql;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A commit that took longer may have been released without a standby.
const LONG: Duration = Duration::from_secs(1);
/// How long a standby may take to say that it has what it already should have.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// What all commits of one store have in common. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Commits {
    pub(crate) risk: Risk,
    pub(crate) abandoned: Arc<Abandoned>,
    synchronous: Option<Arc<Synchronous>>,
}

/// What is kept of commits that wait for standbys.
#[derive(Debug)]
struct Synchronous {
    /// `None` where the server's warnings cannot be heard, so that every commit is looked at.
    warnings: Option<Warnings>,
    /// How often there was a reason to doubt that what is visible on the primary is on a standby, and up to which of them that was settled.
    doubts: AtomicU64,
    settled: AtomicU64,
}

/// How a commit went.
pub(crate) struct Went<T> {
    pub(crate) answer: T,
    /// It may not have been waited for.
    pub(crate) doubtful: bool,
}

impl Commits {
    /// Of a store that trusts every commit that is acknowledged.
    pub(crate) fn trusted(most_abandoned: usize) -> Self {
        Self { risk: Risk::default(), abandoned: Arc::new(Abandoned::new(most_abandoned)), synchronous: None }
    }

    /// Of a store whose commits wait for a standby.
    pub(crate) fn synchronous(most_abandoned: usize, warnings: Option<Warnings>) -> Self {
        // What is there at the start was perhaps recovered by a server that had crashed, and waited for nobody.
        let (doubts, settled) = (AtomicU64::new(1), AtomicU64::new(0));
        let synchronous = Synchronous { warnings, doubts, settled };
        Self { synchronous: Some(Arc::new(synchronous)), ..Self::trusted(most_abandoned) }
    }

    pub(crate) fn is_synchronous(&self) -> bool {
        self.synchronous.is_some()
    }

    /// Runs a statement that commits.
    pub(crate) async fn watched<T>(&self, commit: impl Future<Output = T> + Send) -> Went<T> {
        let Some(synchronous) = &self.synchronous else {
            return Went { answer: commit.await, doubtful: false };
        };
        let begun = Instant::now();
        let (answer, warned) = match &synchronous.warnings {
            Some(warnings) => warnings.heard(commit).await,
            None => (commit.await, true),
        };
        Went { answer, doubtful: warned || begun.elapsed() > LONG }
    }

    /// What is visible on the primary may not be on a standby.
    pub(crate) fn doubt(&self) {
        if let Some(synchronous) = &self.synchronous {
            synchronous.doubts.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A commit over this connection may not have been waited for: it counts once a synchronous standby has it.
    pub(crate) async fn confirm(&self, conn: &mut PgConnection) -> Result<(), StoreError> {
        // Also if the caller gives up here.
        self.doubt();
        match on_a_standby(conn).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::Lost(
                "the commit was not waited for, and no synchronous standby has it".into(),
            )),
            Err(error) => Err(StoreError::Lost(format!("the commit was not waited for: {error}"))),
        }
    }

    /// What is read next over this connection is on a standby, if there was any doubt: a commit that has waited for one is behind it.
    pub(crate) async fn settle(&self, conn: &mut PgConnection) -> Result<(), StoreError> {
        let Some(synchronous) = &self.synchronous else { return Ok(()) };
        let doubts = synchronous.doubts.load(Ordering::SeqCst);
        if synchronous.settled.load(Ordering::SeqCst) >= doubts {
            return Ok(());
        }
        let failed = |error: sqlx::Error| StoreError::Unavailable(error.to_string());
        commit_nothing(conn).await.map_err(failed)?;
        if !on_a_standby(conn).await.map_err(failed)? {
            return Err(StoreError::Unavailable(
                "what the server shows may not be on a synchronous standby: a failover could take it back"
                    .into(),
            ));
        }
        synchronous.settled.fetch_max(doubts, Ordering::SeqCst);
        Ok(())
    }
}

/// Whether everything that this server shows is on as many standbys as commits wait for, or is so in a moment.
async fn on_a_standby(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let (place, begun) = (current(conn).await?, Instant::now());
    loop {
        if required(conn, &place).await? {
            return Ok(true);
        }
        if begun.elapsed() > CONFIRMED_WITHIN {
            return Ok(false);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A commit that changes nothing, and is waited for like any other: a transaction without WAL would not be.
pub(crate) async fn commit_nothing(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    raw_sql("SELECT pg_logical_emit_message(true, 'semel', '')").execute(conn).await.map(drop)
}

/// Whether the server's warnings can be heard on connections like this one.
pub(crate) async fn hear(conn: &mut PgConnection) -> Result<Option<Warnings>, sqlx::Error> {
    let warnings = Warnings::new();
    let warn = raw_sql("DO $$ BEGIN RAISE WARNING 'heard'; END $$").execute(conn);
    let (done, heard) = warnings.heard(warn).await;
    done?;
    Ok(heard.then_some(warnings))
}
