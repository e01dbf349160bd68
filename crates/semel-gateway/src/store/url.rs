//! Stores by URL: `sqlite:semel.db`, `postgres://…`, `dynamodb://…`, `memory:`.

use super::outbox::Outbox;
use semel::clock::Terms;
use semel::{MemoryStore, Store};
use semel_dynamodb::{Address, DynamoOptions};
use semel_events::outbox::postgres::PgOutbox;
use semel_events::outbox::sqlite::SqliteOutbox;
use semel_postgres::{PgOptions, Replication, Risk};
use semel_sqlite::SqliteOptions;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Which store, and where. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(Backend);

#[derive(Clone, PartialEq, Eq)]
enum Backend {
    Sqlite(PathBuf),
    Postgres(Postgres),
    DynamoDb(Address),
    Memory,
}

/// A PostgreSQL server, or several that take over from each other.
#[derive(Clone, PartialEq, Eq)]
struct Postgres {
    url: String,
    /// What is said about acknowledged commits and a failover.
    replication: Option<Replication>,
    asynchronous: bool,
}

/// A store, and the outbox beside its records.
pub struct OpenedStore {
    /// For records.
    pub store: Arc<dyn Store>,
    /// For events; a store in memory, or in DynamoDB, has none.
    pub outbox: Option<Outbox>,
    /// Whether a failover could lose what is stored; a store that has no failover has none.
    pub risk: Option<Risk>,
}

impl Default for StoreUrl {
    /// `sqlite:semel.db`, in the directory that the process runs in.
    fn default() -> Self {
        Self(Backend::Sqlite("semel.db".into()))
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(StoreUrlError::NoScheme);
        };
        match scheme {
            "sqlite" => sqlite(rest),
            "postgres" | "postgresql" => match rest.strip_prefix("//") {
                Some(rest) if !rest.is_empty() => {
                    let url = text.to_owned();
                    Ok(Self(Backend::Postgres(Postgres { url, replication: None, asynchronous: false })))
                }
                _ => Err(StoreUrlError::NoDatabase),
            },
            "dynamodb" => Ok(Self(Backend::DynamoDb(text.parse()?))),
            "memory" if rest.is_empty() => Ok(Self(Backend::Memory)),
            "memory" => Err(StoreUrlError::MemoryWithMore),
            "redis" | "rediss" | "valkey" => Err(StoreUrlError::Redis),
            // A drive letter, or a path: somebody means a file.
            other if other.len() == 1 || other.contains(['/', '.', '\\']) => Err(StoreUrlError::NoScheme),
            _ => Err(StoreUrlError::UnknownScheme),
        }
    }
}

fn sqlite(path: &str) -> Result<StoreUrl, StoreUrlError> {
    // `sqlite:///var/lib/semel.db` is how other programs write an absolute path; two slashes alone would name a host.
    let path = match path.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => return Err(StoreUrlError::TwoSlashes),
        None => path,
    };
    match path {
        "" => Err(StoreUrlError::NoPath),
        ":memory:" => Err(StoreUrlError::SqliteInMemory),
        path if path.contains('?') => Err(StoreUrlError::SqliteOptions),
        path => Ok(StoreUrl(Backend::Sqlite(path.into()))),
    }
}

impl StoreUrl {
    /// Whether records outlive the process.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.0 != Backend::Memory
    }

    /// Whether events can be appended beside its records.
    #[must_use]
    pub fn has_outbox(&self) -> bool {
        matches!(self.0, Backend::Sqlite(_) | Backend::Postgres(_))
    }

    /// The URL of a DynamoDB table.
    #[must_use]
    pub fn dynamodb(&self) -> Option<String> {
        match &self.0 {
            Backend::DynamoDb(address) => Some(address.to_string()),
            _ => None,
        }
    }

    /// The file, where the store is one.
    #[must_use]
    pub fn file(&self) -> Option<&std::path::Path> {
        match &self.0 {
            Backend::Sqlite(path) => Some(path),
            _ => None,
        }
    }

    /// The URL for a PostgreSQL client, password and all.
    #[must_use]
    pub fn postgres(&self) -> Option<&str> {
        match &self.0 {
            Backend::Postgres(postgres) => Some(&postgres.url),
            _ => None,
        }
    }

    /// How a PostgreSQL store is opened, and where it is.
    pub(crate) fn postgres_options(&self, clock: Terms) -> Option<(PgOptions, &str)> {
        match &self.0 {
            Backend::Postgres(postgres) => Some(postgres.options(clock)),
            _ => None,
        }
    }

    /// The same with what is said of replication, where it is a PostgreSQL server: how acknowledged commits outlive a failover, and whether it is
    /// accepted that they may not.
    #[must_use]
    pub fn replicated(mut self, replication: Option<Replication>, accept_asynchronous: bool) -> Self {
        if let Backend::Postgres(postgres) = &mut self.0 {
            (postgres.replication, postgres.asynchronous) = (replication, accept_asynchronous);
        }
        self
    }

    /// Opens the store, for calls that take at most `store_timeout`. `clock` says how far its clock is believed.
    ///
    /// # Errors
    /// The store's own word on what is wrong and what to do about it.
    pub async fn open(&self, store_timeout: Duration, clock: Terms) -> Result<OpenedStore, OpenStoreError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| OpenStoreError {
            store: self.to_string(),
            source,
        };
        let opened = match &self.0 {
            Backend::Sqlite(path) => {
                // Who waits for the lock of another process must get its answer while somebody still waits for it.
                let busy = SqliteOptions::new().busy_timeout((store_timeout / 2).min(Duration::from_secs(1)));
                let store = busy.clock_terms(clock).open(path).await.map_err(|error| failed(error.into()))?;
                let outbox = Some(SqliteOutbox::of(&store).into());
                OpenedStore { outbox, store: Arc::new(store), risk: None }
            }
            Backend::Postgres(postgres) => {
                let (options, url) = postgres.options(clock);
                let store = options.connect(url).await.map_err(|error| failed(error.into()))?;
                let (outbox, risk) = (Some(PgOutbox::of(&store).into()), Some(store.risk()));
                OpenedStore { outbox, store: Arc::new(store), risk }
            }
            Backend::DynamoDb(address) => {
                // A write that has no answer is looked for before the call is given up.
                let options = DynamoOptions::new().timeout(store_timeout * 2 / 5).clock_terms(clock);
                let opened = options.open(&address.to_string()).await;
                let store = opened.map_err(|error| failed(error.into()))?;
                OpenedStore { store: Arc::new(store), outbox: None, risk: None }
            }
            Backend::Memory => OpenedStore { store: Arc::new(MemoryStore::new()), outbox: None, risk: None },
        };
        #[cfg(feature = "fail-points")]
        let opened = {
            let store = super::fail_points::around(opened.store).map_err(|error| failed(error.into()))?;
            OpenedStore { store, ..opened }
        };
        Ok(opened)
    }
}

impl Postgres {
    fn options(&self, clock: Terms) -> (PgOptions, &str) {
        let mut options = PgOptions::new().clock_terms(clock);
        if let Some(replication) = self.replication {
            options = options.replication(replication);
        }
        if self.asynchronous {
            options = options.dangerously_accept_asynchronous_replication();
        }
        (options, &self.url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Backend::Postgres(postgres) => f.write_str(&without_password(&postgres.url)),
            Backend::DynamoDb(address) => address.fmt(f),
            Backend::Memory => f.write_str("memory:"),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// Hides rather too much than too little: a password may hold characters that should have been encoded.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (user, place) = match rest.rsplit_once('@') {
        Some((who, place)) => (who.split(':').next().unwrap_or_default(), place),
        None => ("", rest),
    };
    let at = if user.is_empty() { "" } else { "@" };
    let (place, options) =
        place.split_once('?').map_or((place, None), |(place, options)| (place, Some(options)));
    let options = options.map_or(String::new(), |options| {
        let shown = options.split('&').map(|option| match option.split_once('=') {
            Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}=…"),
            _ => option.to_owned(),
        });
        format!("?{}", shown.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{user}{at}{place}{options}")
}

/// Why a URL names no store. The texts never repeat it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// No scheme.
    #[error(
        "a store URL begins with its kind: \"sqlite:semel.db\", \"postgres://user@host/database\" or \"memory:\""
    )]
    NoScheme,
    /// A scheme that names no store.
    #[error(
        "unknown kind of store: use \"sqlite:semel.db\", \"postgres://user@host/database\" or \"memory:\""
    )]
    UnknownScheme,
    /// Redis, which can be in front of a store alone.
    #[error(
        "Redis is no store, for it may forget: use \"sqlite:semel.db\" or \"postgres://user@host/database\", and put Redis in front \
         with [cache] url"
    )]
    Redis,
    /// `sqlite:` alone.
    #[error("the file is missing: \"sqlite:semel.db\"")]
    NoPath,
    /// `sqlite://semel.db`.
    #[error("two slashes would name a host: \"sqlite:semel.db\", or \"sqlite:/var/lib/semel/semel.db\"")]
    TwoSlashes,
    /// `sqlite::memory:`.
    #[error("SQLite in memory is not durable: use \"memory:\" to try things out")]
    SqliteInMemory,
    /// `sqlite:semel.db?mode=ro`.
    #[error("a SQLite store takes no options: \"sqlite:semel.db\"")]
    SqliteOptions,
    /// `postgres:` alone.
    #[error("the database is missing: \"postgres://user:password@host:5432/database\"")]
    NoDatabase,
    /// `dynamodb:` with anything that names no table.
    #[error("{0}")]
    DynamoDb(#[from] semel_dynamodb::UrlError),
    /// `memory:something`.
    #[error("nothing follows \"memory:\"")]
    MemoryWithMore,
}

/// A store that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("the store {store} could not be opened")]
pub struct OpenStoreError {
    /// The store, without its password.
    store: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, StoreUrlError> {
        text.parse::<StoreUrl>().map(|store| store.to_string())
    }

    #[test]
    fn stores_are_named_by_their_kind() {
        for (url, shown) in [
            ("sqlite:semel.db", "sqlite:semel.db"),
            ("sqlite:/var/lib/semel.db", "sqlite:/var/lib/semel.db"),
            ("sqlite:///var/lib/semel.db", "sqlite:/var/lib/semel.db"),
            ("memory:", "memory:"),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://h1,h2:5433,h3/db", "postgres://h1,h2:5433,h3/db"),
            ("postgresql://host/db", "postgresql://host/db"),
            ("dynamodb://keys?region=eu-central-1", "dynamodb://keys?region=eu-central-1"),
        ] {
            assert_eq!(parse(url).unwrap(), shown);
        }
        use StoreUrlError::*;
        for (url, error) in [
            ("", NoScheme),
            ("semel.db", NoScheme),
            ("/var/lib/a:b", NoScheme),
            ("C:\\semel.db", NoScheme),
            ("mysql://host/db", UnknownScheme),
            ("redis://host", Redis),
            ("sqlite:", NoPath),
            ("sqlite://semel.db", TwoSlashes),
            ("sqlite::memory:", SqliteInMemory),
            ("sqlite:semel.db?mode=ro", SqliteOptions),
            ("postgres:", NoDatabase),
            ("postgres://", NoDatabase),
            ("dynamodb:keys", DynamoDb(semel_dynamodb::UrlError::Scheme)),
            ("dynamodb://k?region=eu-central-1", DynamoDb(semel_dynamodb::UrlError::Table)),
            ("memory://", MemoryWithMore),
        ] {
            assert_eq!(parse(url), Err(error), "{url}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://me:s3cret@host:5432/db",
            "postgres://me:s3/cret@host:5432/db",
            "postgres://me:s3@cret@host:5432/db",
            "postgres://me:s3?cret@host:5432/db",
        ] {
            let store: StoreUrl = url.parse().unwrap();
            assert_eq!(store.to_string(), "postgres://me@host:5432/db");
            assert!(!format!("{store:?}").contains("s3"));
            assert_eq!(store.postgres(), Some(url));
        }
        assert_eq!(parse("postgres://me:s3cret@h1,h2/db").unwrap(), "postgres://me@h1,h2/db");
        assert_eq!(
            parse("postgres:///db?host=/run/postgresql&user=me&password=s3cret").unwrap(),
            "postgres:///db?host=/run/postgresql&user=me&password=…"
        );
    }

    #[tokio::test]
    async fn a_store_is_opened_and_one_that_is_not_there_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("semel.db").display());
        let store =
            url.parse::<StoreUrl>().unwrap().open(Duration::from_secs(2), Terms::default()).await.unwrap();
        assert_eq!(store.store.recall("nothing".into()).await.unwrap(), None);
        assert!(store.outbox.is_some());
        let missing = format!("sqlite:{}", directory.path().join("no/such/semel.db").display());
        let error = missing
            .parse::<StoreUrl>()
            .unwrap()
            .open(Duration::from_secs(2), Terms::default())
            .await
            .map(drop)
            .unwrap_err();
        assert!(error.to_string().contains("no/such/semel.db"), "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("does not exist: create it first"), "{cause}");
    }

    #[tokio::test]
    async fn a_database_that_does_not_answer_is_named_without_its_password() {
        // A port that was free a moment ago: nobody listens there.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let url: StoreUrl = format!("postgres://me:s3cret@{address}/db").parse().unwrap();
        let error = url.open(Duration::from_secs(2), Terms::default()).await.map(drop).unwrap_err();
        assert_eq!(error.to_string(), format!("the store postgres://me@{address}/db could not be opened"));
        let mut cause = std::error::Error::source(&error);
        assert!(cause.is_some());
        while let Some(error) = cause {
            assert!(!error.to_string().contains("s3cret"), "{error}");
            cause = error.source();
        }
    }
}
