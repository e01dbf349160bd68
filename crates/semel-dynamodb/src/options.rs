//! How a store is opened.

use crate::address::Address;
use crate::api::Api;
use crate::aws::{Chain, Credentials};
use crate::error::OpenError;
use crate::mark::Ticker;
use crate::store::DynamoStore;
use crate::table::{self, Migrated};
use crate::time::StoreClock;
use semel::clock::{Clock, SystemClock, Terms};
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Options, Resend};
use std::sync::Arc;
use std::time::Duration;

/// An answer is no longer than this: the service ends a page of items at 16 MB, spelled in base64.
const LONGEST_ANSWER: usize = 32 * 1024 * 1024;

/// For how long a connection is kept that nobody uses. The service closes it sooner or later, and a write that meets that is lost.
const IDLE_FOR: Duration = Duration::from_secs(5);

/// How a [`DynamoStore`] is opened. What `new()` gives is safe as it stands.
///
/// ```no_run
/// # use semel_dynamodb::{DynamoOptions, OpenError};
/// # async fn run() -> Result<(), OpenError> {
/// let store = DynamoOptions::new().open("dynamodb://semel-keys?region=eu-central-1").await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DynamoOptions {
    timeout: Duration,
    requests_at_once: usize,
    credentials: Option<Credentials>,
    clock: Arc<dyn Clock>,
    clock_terms: Terms,
}

impl std::fmt::Debug for DynamoOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamoOptions")
            .field("timeout", &self.timeout)
            .field("requests_at_once", &self.requests_at_once)
            .field("credentials", &self.credentials)
            .field("clock_terms", &self.clock_terms)
            .finish_non_exhaustive()
    }
}

impl Default for DynamoOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl DynamoOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            timeout: Duration::from_secs(1),
            requests_at_once: 128,
            credentials: None,
            clock: Arc::new(SystemClock),
            clock_terms: Terms::default(),
        }
    }

    /// How long one request to the service may take. Default 1 s. A write that takes longer is looked for by its write id, which takes one more
    /// request: below half of the engine's store time-out there is time for both.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many requests are in flight at once, at least 1. Default 128. Each has a connection of its own.
    #[must_use]
    pub fn requests_at_once(mut self, requests: usize) -> Self {
        self.requests_at_once = requests.max(1);
        self
    }

    /// Signs requests with these credentials in place of what the usual chain finds: the environment, web identity, the profile, the container's
    /// or the instance's role.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Takes the steady time that the service's clock is compared with from `clock`. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How far, and on whose word, the service's clock is believed: as for PostgreSQL's. Default: jumps of more than an hour open a clock hold. Where any
    /// operation [remembers](semel::Policy::remembered) a key for less than four hours, pass `Terms::default().within(policy.remembered())`. All
    /// processes on one table need the same.
    #[must_use]
    pub fn clock_terms(mut self, terms: Terms) -> Self {
        self.clock_terms = terms;
        self
    }

    /// Opens the store in the table of `url`: `dynamodb://TABLE?region=…`, with `&endpoint=…` for a service elsewhere. To be called within a
    /// runtime.
    ///
    /// # Errors
    /// What is wrong with the URL, the table or the credentials, and what to do about it.
    pub async fn open(self, url: &str) -> Result<DynamoStore, OpenError> {
        let api = self.api(&url.parse()?)?;
        table::check(&api).await?;
        api.time().announce();
        // Before anybody works with it: that a clock hold is open is to be known to all.
        api.mark(false).await.map_err(OpenError::Clock)?;
        let ticker = Ticker::start(api.clone());
        Ok(DynamoStore::new(api, ticker))
    }

    /// Creates the table of `url` if it is not there: on demand, with its indexes, protected from deletion and with point-in-time recovery. Checks it
    /// if it is. [`open`](Self::open) creates nothing.
    ///
    /// # Errors
    /// As there.
    pub async fn migrate(self, url: &str) -> Result<Migrated, OpenError> {
        table::migrate(&self.api(&url.parse()?)?).await
    }

    fn api(self, address: &Address) -> Result<Api, OpenError> {
        let endpoint = address.endpoint()?;
        let options = Options {
            deadline: self.timeout,
            longest_answer: LONGEST_ANSWER,
            idle_connections: self.requests_at_once,
            idle_for: IDLE_FOR,
            resend: Resend::Never,
        };
        let client = Client::new(&endpoint, ClientTlsFiles::default(), options)?;
        let credentials = self.credentials.map_or_else(|| Chain::new(&address.region), Chain::fixed);
        let time = StoreClock::new(self.clock, self.clock_terms);
        let place = (address.region.as_str(), address.table.as_str());
        Ok(Api::new(client, endpoint, place, credentials, self.requests_at_once, time))
    }
}

impl DynamoStore {
    /// Opens the store in the table of `url`, with the default [`DynamoOptions`].
    ///
    /// # Errors
    /// What is wrong with the URL, the table or the credentials, and what to do about it.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        DynamoOptions::new().open(url).await
    }
}
