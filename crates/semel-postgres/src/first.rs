//! The first connection to a server, and why it fails.

use crate::error::OpenError;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server that refuses connections is tried again: it may be starting at the same time.
const STARTING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How long one that is silent is waited for.
const SILENT: Duration = Duration::from_secs(5);

/// Connects, without a pool.
pub(crate) async fn connection(address: &PgConnectOptions) -> Result<PgConnection, OpenError> {
    let begun = Instant::now();
    loop {
        let error = match tokio::time::timeout(SILENT, address.connect()).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => error,
            Err(_) => return Err(OpenError::Silent { address: shown(address), after: SILENT }),
        };
        if !may_be_starting(&error) || begun.elapsed() > STARTING {
            return Err(explained(error, address));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn may_be_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == ErrorKind::ConnectionRefused,
        sqlx::Error::Database(answer) => answer.is_transient_in_connect_phase(),
        _ => false,
    }
}

fn explained(error: sqlx::Error, address: &PgConnectOptions) -> OpenError {
    match error {
        sqlx::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            OpenError::ConnectionRefused { address: shown(address) }
        }
        sqlx::Error::Database(answer) => OpenError::Rejected(answer.message().to_owned()),
        error => error.into(),
    }
}

/// Where the server is, without user and password.
fn shown(address: &PgConnectOptions) -> String {
    let (host, port) = (address.get_host(), address.get_port());
    match address.get_socket() {
        Some(directory) => format!("{}/.s.PGSQL.{port}", directory.display()),
        None if host.starts_with('/') => format!("{host}/.s.PGSQL.{port}"),
        None if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        None => format!("{host}:{port}"),
    }
}
