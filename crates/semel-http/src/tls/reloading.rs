//! Follows files: what is built from them is rebuilt when they change.

use super::files::TlsError;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

/// Something that is made of files.
pub trait FromFiles: Send + Sync + 'static {
    /// What is made.
    type Made: Send + Sync + 'static;

    /// Everything that is in the files now.
    ///
    /// # Errors
    /// One of them cannot be read.
    fn read(&self) -> Result<Vec<u8>, TlsError>;

    /// What the files come to now.
    ///
    /// # Errors
    /// What is wrong with them.
    fn make(&self) -> Result<Self::Made, TlsError>;
}

/// What was made of the files last.
pub struct Reloading<T>(Arc<RwLock<Arc<T>>>);

impl<T: Send + Sync + 'static> Reloading<T> {
    /// Makes it, and follows the files as long as this lives. To be called within a runtime.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub fn start<F: FromFiles<Made = T>>(files: F, every: Duration) -> Result<Self, TlsError> {
        let seen = files.read()?;
        let current = Arc::new(RwLock::new(Arc::new(files.make()?)));
        tokio::spawn(follow(files, seen, every, Arc::downgrade(&current)));
        Ok(Self(current))
    }

    /// What the files came to last.
    #[must_use]
    pub fn current(&self) -> Arc<T> {
        // A whole value is set under the lock: a poisoned one is as good as any.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Checks the files periodically. An error in them is logged once, and the certificates loaded before stay in use.
async fn follow<F: FromFiles>(
    files: F,
    mut seen: Vec<u8>,
    every: Duration,
    current: Weak<RwLock<Arc<F::Made>>>,
) {
    let files = Arc::new(files);
    let mut was_unreadable = false;
    loop {
        tokio::time::sleep(every).await;
        let looking = Arc::clone(&files);
        let last = std::mem::take(&mut seen);
        // A disk may take its time.
        let looked = tokio::task::spawn_blocking(move || look(&*looking, last)).await;
        let Some(current) = current.upgrade() else { return };
        let Ok((read, found)) = looked else { continue };
        seen = read;
        match found {
            Found::Same => was_unreadable = false,
            Found::New(made) => {
                was_unreadable = false;
                *current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
                tracing::info!("certificates reloaded");
            }
            Found::Wrong(error) => {
                tracing::error!(%error, "new certificates are invalid: the old ones stay in use");
            }
            Found::Unreadable(error) if !was_unreadable => {
                was_unreadable = true;
                tracing::error!(%error, "cannot read certificates: the old ones stay in use");
            }
            Found::Unreadable(_) => {}
        }
    }
}

enum Found<T> {
    Same,
    New(T),
    Wrong(TlsError),
    Unreadable(TlsError),
}

/// Compares what is in the files with what was in them: times and sizes can be the same for two contents.
fn look<F: FromFiles>(files: &F, last: Vec<u8>) -> (Vec<u8>, Found<F::Made>) {
    match files.read() {
        Err(error) => (last, Found::Unreadable(error)),
        Ok(now) if now == last => (now, Found::Same),
        Ok(now) => match files.make() {
            Ok(made) => (now, Found::New(made)),
            Err(error) => (now, Found::Wrong(error)),
        },
    }
}
