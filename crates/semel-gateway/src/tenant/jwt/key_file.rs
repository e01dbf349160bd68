//! A JWK set in a file that may change while the gateway runs.

use super::key_set::{KeySet, KeySetError};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The largest file of keys.
const MAX_FILE: u64 = 1 << 20;
/// How long what was read is believed without looking: for so long a key that was taken out may still be good.
const BELIEVED: Duration = Duration::from_secs(1);

/// A file of keys. What is wrong with a new content is logged once, and the keys stay as they were.
pub struct KeyFile {
    path: PathBuf,
    known: Mutex<Known>,
    /// Whose turn it is to look at the file.
    looking: tokio::sync::Mutex<()>,
}

struct Known {
    keys: Arc<KeySet>,
    /// What was there at the last look; none: it could not be read.
    content: Option<Vec<u8>>,
    looked: Instant,
}

/// Why a file gives no keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("it cannot be read ({0})")]
    Unreadable(#[from] io::Error),
    /// It is too large to be one.
    #[error("it is larger than 1 MiB")]
    TooLarge,
    /// What is in it is wrong.
    #[error(transparent)]
    Wrong(#[from] KeySetError),
}

impl KeyFile {
    /// The keys in this file.
    ///
    /// # Errors
    /// It cannot be read, or there are no keys in it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, KeyFileError> {
        let path = path.into();
        let content = read(&path)?;
        let keys = Arc::new(KeySet::of_jwks(&content)?);
        let known = Known { keys, content: Some(content), looked: Instant::now() };
        Ok(Self { path, known: Mutex::new(known), looking: tokio::sync::Mutex::default() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The keys as they were at the last look.
    #[must_use]
    pub fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.known().keys)
    }

    /// The keys as they are now, or were a moment ago.
    pub(super) async fn current(&self) -> Arc<KeySet> {
        let stale = self.known().looked.elapsed() >= BELIEVED;
        // One request looks; those that come meanwhile go by what is known.
        if stale && let Ok(_turn) = self.looking.try_lock() {
            self.read_again().await;
        }
        self.keys()
    }

    /// The keys as they are now.
    pub(super) async fn look(&self) -> Arc<KeySet> {
        let asked = Instant::now();
        let _turn = self.looking.lock().await;
        // Whoever had the turn before may have looked for all who waited.
        if self.known().looked < asked {
            self.read_again().await;
        }
        self.keys()
    }

    async fn read_again(&self) {
        let path = self.path.clone();
        let begun = Instant::now();
        let content = tokio::task::spawn_blocking(move || read(&path)).await;
        self.take(
            content.unwrap_or_else(|_| Err(io::Error::other("the read task was cancelled").into())),
            begun,
        );
    }

    fn take(&self, content: Result<Vec<u8>, KeyFileError>, looked: Instant) {
        let mut known = self.known();
        known.looked = looked;
        let file = self.path.display();
        match content {
            Ok(content) if known.content.as_ref() == Some(&content) => {}
            Ok(content) => {
                match KeySet::of_jwks(&content) {
                    Ok(keys) => {
                        tracing::info!(%file, %keys, "token keys reloaded");
                        known.keys = Arc::new(keys);
                    }
                    Err(error) => {
                        tracing::error!(%file, %error, "the new token keys are invalid: the old ones stay in force");
                    }
                }
                known.content = Some(content);
            }
            Err(error) => {
                if known.content.take().is_some() {
                    tracing::error!(%file, %error, "cannot read the token keys again: the old ones stay in force");
                }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Only whole values are set under the lock: a poisoned one is as good as any.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content may hold secrets.
impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile")
            .field("path", &self.path)
            .field("keys", &self.keys())
            .finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, KeyFileError> {
    let mut content = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_FILE { Err(KeyFileError::TooLarge) } else { Ok(content) }
}
