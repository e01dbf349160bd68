//! A JWK set that the issuer publishes at a URL.

use super::key_set::KeySet;
use crate::tls::ClientTlsFiles;
use bytes::Bytes;
use http::StatusCode;
use http::header::ACCEPT;
use semel_http::{Client, Endpoint, Options, Resend};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The largest set of keys that is read.
const MAX_ANSWER: usize = 1 << 20;
/// How long one fetch may take. Requests with unknown keys wait for it.
const DEADLINE: Duration = Duration::from_secs(2);
/// How old keys get before they are fetched again in the background: for so long a key that the issuer took back may still be good.
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// At most one fetch in so long, however many unknown keys tokens name.
const PAUSE: Duration = Duration::from_secs(1);

/// Keys at a URL. While the issuer is down, or publishes something else, the last ones stay in force.
pub struct KeyUrl {
    endpoint: Endpoint,
    tls: ClientTlsFiles,
    client: OnceLock<Client>,
    known: Mutex<Known>,
    /// Held by the one request that fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    keys: Option<Arc<KeySet>>,
    /// When the last fetch ended.
    fetched: Option<Instant>,
    is_failing: bool,
}

impl KeyUrl {
    /// Nothing is fetched before the first token comes.
    #[must_use]
    pub fn new(endpoint: Endpoint, tls: ClientTlsFiles) -> Self {
        Self {
            endpoint,
            tls,
            client: OnceLock::new(),
            known: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Where the keys are.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether the two fetch the same keys in the same way.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint && self.tls == other.tls
    }

    /// The keys as they were fetched last; `None` if that never succeeded.
    pub(super) async fn current(self: &Arc<Self>) -> Option<Arc<KeySet>> {
        let (keys, is_old) = {
            let known = self.known();
            (known.keys.clone(), known.fetched.is_none_or(|fetched| fetched.elapsed() >= REFRESH))
        };
        match keys {
            None => self.refresh().await,
            Some(keys) => {
                if is_old {
                    let refreshing = Arc::clone(self);
                    tokio::spawn(async move { refreshing.refresh().await });
                }
                Some(keys)
            }
        }
    }

    /// The keys after a fetch that ended less than a second ago.
    pub(super) async fn refresh(&self) -> Option<Arc<KeySet>> {
        let _fetching = self.fetching.lock().await;
        let is_fresh = self.known().fetched.is_some_and(|fetched| fetched.elapsed() < PAUSE);
        if !is_fresh {
            let fetched = self.fetch().await;
            self.take(fetched);
        }
        self.known().keys.clone()
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let request = self.endpoint.get(self.endpoint.path()).header(ACCEPT, "application/json");
        let request = request.body(Bytes::new()).map_err(|error| error.to_string())?;
        let answer = self.client()?.send(request).await.map_err(|error| error.to_string())?;
        if answer.status() != StatusCode::OK {
            return Err(format!("{} answered {}", self.endpoint.authority(), answer.status()));
        }
        KeySet::of_jwks(answer.body()).map_err(|error| error.to_string())
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let options = Options {
            deadline: DEADLINE,
            longest_answer: MAX_ANSWER,
            resend: Resend::Once,
            ..Options::default()
        };
        let client =
            Client::new(&self.endpoint, self.tls.clone(), options).map_err(|error| error.to_string())?;
        Ok(self.client.get_or_init(|| client))
    }

    fn take(&self, fetched: Result<KeySet, String>) {
        let mut known = self.known();
        known.fetched = Some(Instant::now());
        let url = &self.endpoint;
        match fetched {
            Ok(keys) => {
                if known.keys.is_none() || known.is_failing {
                    tracing::info!(%url, %keys, "fetched token keys");
                }
                known.keys = Some(Arc::new(keys));
                known.is_failing = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut known.is_failing, true) {
                    let in_force = if known.keys.is_some() {
                        "the old keys stay in force"
                    } else {
                        "no token is accepted"
                    };
                    tracing::error!(%url, %error, "cannot fetch token keys: {in_force}");
                }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Only whole values are set under the lock: a poisoned one is as good as any.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KeyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyUrl").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
