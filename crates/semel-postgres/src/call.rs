//! Sends a statement to the server, and classifies its failure.

use crate::commit::{Commits, Running, commit_nothing};
use crate::connections::{Connections, Taken};
use crate::draft::PgQuery;
use crate::error::{of_a_commit, unavailable};
use crate::replication::Standing;
use semel::StoreError;
use sqlx::Connection;
use sqlx::postgres::PgRow;
use std::time::Duration;

/// How long a write waits for the outcome of a probe: on a server that works it takes a millisecond.
const PROBED: Duration = Duration::from_millis(100);
/// How long a probe waits for its commit before it is tried over another connection: twice as long each time. Each one that is given up is a
/// session that the server keeps.
const PROBE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
const BETWEEN_PROBES: Duration = Duration::from_millis(200);

/// The connections to the server, and how statements are sent over them.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) connections: Connections,
    pub(crate) commits: Commits,
    /// Whether statements may be prepared. Behind a pooler in transaction mode they may not: the next use of the same connection
    /// may find itself on another one of the server's.
    pub(crate) prepared: bool,
}

impl Server {
    /// Runs a statement that writes, and commits it. [`StoreError::Lost`] only where it may have been committed, or not be there after a failover.
    pub(crate) async fn write(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        self.may_commit().await?;
        let taken = self.take().await?;
        self.write_over(taken, query).await
    }

    /// The same for a statement by which an execution begins: not where a failover could lose it.
    pub(crate) async fn begin(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        self.may_commit().await?;
        let taken = self.take().await?;
        // After the connection was taken: it may be the first one to another primary.
        self.commits.risk.check()?;
        self.write_over(taken, query).await
    }

    async fn write_over(&self, mut taken: Taken, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        let rows = if self.prepared {
            let running = Running::begin(&self.commits);
            let went = self.commits.watched(query.fetch_all(taken.conn())).await;
            running.ended();
            self.committed(went.answer, went.doubtful.then(|| taken.conn())).await?
        } else {
            // The driver sends "parse" and "execute" in two turns, and between two turns a pooler in transaction mode may change
            // the server's connection under it, unless a transaction holds on to it.
            let failed = |error: sqlx::Error| unavailable(&error);
            let mut transaction = taken.conn().begin().await.map_err(failed)?;
            let rows = query.persistent(false).fetch_all(&mut *transaction).await.map_err(failed)?;
            let running = Running::begin(&self.commits);
            let went = self.commits.watched(transaction.commit()).await;
            running.ended();
            self.committed(went.answer, went.doubtful.then(|| taken.conn())).await?;
            rows
        };
        self.connections.give_back(taken);
        Ok(rows)
    }

    /// What became of a commit that was answered; over this connection, if it may not have been waited for.
    async fn committed<T>(
        &self,
        answer: Result<T, sqlx::Error>,
        doubtful: Option<&mut sqlx::postgres::PgConnection>,
    ) -> Result<T, StoreError> {
        let answer = answer.map_err(|error| {
            let error = of_a_commit(&error);
            if matches!(error, StoreError::Lost(_)) {
                self.commits.doubt();
            }
            error
        })?;
        if let Some(conn) = doubtful {
            self.commits.confirm(conn).await?;
        }
        Ok(answer)
    }

    /// Commits a transaction of the application's.
    pub(crate) async fn commit(
        &self,
        transaction: sqlx::Transaction<'static, sqlx::Postgres>,
    ) -> Result<(), StoreError> {
        self.may_commit().await?;
        let running = Running::begin(&self.commits);
        let went = self.commits.watched(transaction.commit()).await;
        running.ended();
        if !went.doubtful {
            return self.committed(went.answer, None).await;
        }
        let mut taken = self.connections.take().await.map_err(|error| StoreError::Lost(error.to_string()))?;
        self.committed(went.answer, Some(taken.conn())).await?;
        self.connections.give_back(taken);
        Ok(())
    }

    /// Runs a statement that decisions are based on: what it reads will be there after a failover.
    pub(crate) async fn read(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        self.fetch(query, true).await
    }

    /// Runs a statement for people and background tasks, which shows what is there at this moment.
    pub(crate) async fn look(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        self.fetch(query, false).await
    }

    async fn fetch(&self, query: PgQuery<'_>, settled: bool) -> Result<Vec<PgRow>, StoreError> {
        let failed = |error: sqlx::Error| unavailable(&error);
        let mut taken = self.take().await?;
        if settled {
            self.commits.settle(taken.conn()).await?;
        }
        let rows = if self.prepared {
            query.fetch_all(taken.conn()).await.map_err(failed)?
        } else {
            let mut transaction = taken.conn().begin().await.map_err(failed)?;
            let rows = query.persistent(false).fetch_all(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            rows
        };
        self.connections.give_back(taken);
        Ok(rows)
    }

    async fn take(&self) -> Result<Taken, StoreError> {
        let mut taken = self.connections.take().await?;
        if taken.is_new() && self.commits.is_synchronous() {
            // Its server may have crashed and recovered what no standby has, or be another one.
            self.commits.doubt();
            let standing = Standing::of(taken.conn()).await.map_err(|error| unavailable(&error))?;
            self.commits.risk.set(standing.missing());
        }
        Ok(taken)
    }

    /// Refuses to risk another session of the server's while commits hang.
    async fn may_commit(&self) -> Result<(), StoreError> {
        let abandoned = &self.commits.abandoned;
        if !abandoned.is_full() {
            return Ok(());
        }
        if abandoned.begin_probe() {
            let server = self.clone();
            tokio::spawn(async move { server.probe().await });
        }
        tokio::time::timeout(PROBED, abandoned.over()).await.map_err(|_| {
            StoreError::Unavailable(
                "the server does not finish commits: nothing is sent until one goes through".into(),
            )
        })
    }

    /// Tries a commit until one goes through.
    async fn probe(&self) {
        let _told = Told(&self.commits);
        let (mut patience, mut moves) = (PROBE.0, self.connections.moves());
        loop {
            let committing = async {
                let mut conn = self.connections.fresh().await?;
                commit_nothing(&mut conn).await.map_err(|error| unavailable(&error))?;
                if self.commits.is_synchronous() {
                    self.commits.confirm(&mut conn).await?;
                }
                let _closed = conn.close().await;
                Ok::<_, StoreError>(())
            };
            tokio::select! {
                committed = tokio::time::timeout(patience, committing) => match committed {
                    Ok(Ok(())) => {
                        self.commits.abandoned.tell(true);
                        return;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "the server does not commit, trying again"),
                    Err(_) => patience = (patience * 2).min(PROBE.1),
                },
                // On another server nothing hangs yet.
                () = moves.moved() => patience = PROBE.0,
            }
            tokio::time::sleep(BETWEEN_PROBES).await;
        }
    }
}

/// Lets somebody else probe if this one is dropped with its runtime.
struct Told<'a>(&'a Commits);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.abandoned.tell(false);
    }
}
