//! A private PostgreSQL, as all measurements have it.

use semel_testing::servers::Cluster;
use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use std::path::Path;

/// No checkpoint falls on one side and not on the other, and all that is written in a round stays in memory.
const SETTINGS: [&str; 4] =
    ["max_connections = 200", "max_wal_size = 8GB", "checkpoint_timeout = 1h", "shared_buffers = 512MB"];

/// Starts a server whose files go into this directory.
///
/// # Errors
/// PostgreSQL is not installed, or does not start: what it says.
pub fn start(directory: &Path) -> Result<Cluster, String> {
    let directory = directory.canonicalize().map_err(|error| format!("{}: {error}", directory.display()))?;
    Cluster::start_in(&directory, &SETTINGS)
}

/// Makes a database, and tells its URL.
///
/// # Errors
/// What the server says.
pub async fn database(cluster: &Cluster, name: &str) -> Result<String, sqlx::Error> {
    let maintenance = PgPool::connect(&cluster.url("postgres")).await?;
    maintenance.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await?;
    maintenance.close().await;
    Ok(cluster.url(name))
}
