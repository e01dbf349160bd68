//! Watches what a failover depends on: where the primary is, and whether a synchronous standby follows it.

use crate::call::Server;
use crate::error::unavailable;
use crate::replication::Standing;
use semel::StoreError;
use sqlx::postgres::PgConnection;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How often it looks. A gateway serves again this long after a new primary takes writes.
const PERIOD: Duration = Duration::from_millis(500);
/// How often all hosts are asked while the primary answers: a second one that takes writes tells of a failover that went wrong.
const ALL_HOSTS: Duration = Duration::from_secs(2);
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Who has not seen a synchronous standby for this long does not count on one.
const BLIND: Duration = Duration::from_secs(5);

/// The task that watches. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch(AbortHandle);

impl Watch {
    /// Starts it, where there is anything to watch.
    pub(crate) fn start(server: Server) -> Option<Self> {
        if !server.connections.have_several_hosts() && !server.commits.is_synchronous() {
            return None;
        }
        let watching = tokio::spawn(async move {
            let (mut eye, mut seen) =
                (Eye { server: &server, conn: None, asked_all: Instant::now() }, Instant::now());
            loop {
                tokio::time::sleep(PERIOD).await;
                match tokio::time::timeout(PATIENCE, eye.look()).await {
                    Ok(Ok(())) => seen = Instant::now(),
                    Ok(Err(error)) => tracing::debug!(%error, "cannot look at replication, retrying"),
                    Err(_) => tracing::debug!("the server does not tell how replication stands, retrying"),
                }
                if server.commits.is_synchronous() && seen.elapsed() > BLIND {
                    let unseen = "no primary has told for 5 s whether a synchronous standby follows it";
                    server.commits.risk.set(Some(unseen.into()));
                }
            }
        });
        Some(Self(watching.abort_handle()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Eye<'a> {
    server: &'a Server,
    conn: Option<PgConnection>,
    asked_all: Instant,
}

impl Eye<'_> {
    async fn look(&mut self) -> Result<(), StoreError> {
        let several = self.server.connections.have_several_hosts();
        // One that fails, or is interrupted, is not used again.
        let mut conn = match self.conn.take() {
            Some(conn) if !several || self.asked_all.elapsed() < ALL_HOSTS => conn,
            _ => {
                let conn = self.server.connections.look().await?;
                self.asked_all = Instant::now();
                conn
            }
        };
        let standing = tokio::time::timeout(PATIENCE / 3, Standing::of(&mut conn)).await;
        let standing = standing
            .map_err(|_| StoreError::Unavailable("the server does not tell how replication stands".into()))?
            .map_err(|error| unavailable(&error))?;
        if self.server.commits.is_synchronous() {
            self.server.commits.risk.set(standing.missing());
        }
        self.conn = Some(conn);
        Ok(())
    }
}
