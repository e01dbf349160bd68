//! Connections that are kept open and handed out one at a time.
//!
//! sqlx's own pool asks the server for a sign of life whenever it gets a connection back, by default before it hands one out as well:
//! as many round trips again as the statements take. The textbook is not to blame for that, and not measured with it.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Error};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Clone)]
pub(crate) struct Connections {
    permits: Arc<Semaphore>,
    free: Free,
}

type Free = Arc<Mutex<Vec<PgConnection>>>;

impl Connections {
    pub(crate) async fn open(url: &str, count: usize) -> Result<Self, Error> {
        let options = PgConnectOptions::from_str(url)?;
        let mut free = Vec::new();
        for _ in 0..count {
            free.push(options.connect().await?);
        }
        Ok(Self { permits: Arc::new(Semaphore::new(count)), free: Arc::new(Mutex::new(free)) })
    }

    /// One that nobody else has. It is given back when it is dropped.
    pub(crate) async fn take(&self) -> Result<Taken, Error> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Error::PoolClosed)?;
        let connection = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = connection.ok_or(Error::PoolTimedOut)?;
        Ok(Taken { connection: Some(connection), free: Arc::clone(&self.free), _permit: permit })
    }
}

pub(crate) struct Taken {
    /// There until it is dropped.
    connection: Option<PgConnection>,
    free: Free,
    // Dropped after the connection was given back.
    _permit: OwnedSemaphorePermit,
}

impl Taken {
    pub(crate) fn connection(&mut self) -> Result<&mut PgConnection, Error> {
        self.connection.as_mut().ok_or(Error::PoolClosed)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).extend(self.connection.take());
    }
}
