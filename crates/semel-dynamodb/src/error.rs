//! What can go wrong: when a store is opened, and when an application shares its transaction.

use semel::StoreError;
use semel::transition::Refusal;
use semel_http::InvalidEndpoint;
use semel_http::tls::TlsError;

/// Why a table was not opened as a store. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no table.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// There is no such table.
    #[error(
        "there is no table {table}: run `semel migrate`, which creates it, or create it as the guide says"
    )]
    NoTable {
        /// Its name.
        table: String,
    },
    /// The table, or one of its indexes, is being made or removed.
    #[error("the table {table} is {status}: try again once it is ACTIVE")]
    NotReady {
        /// The table, or the index.
        table: String,
        /// What it is doing.
        status: String,
    },
    /// The table has another form.
    #[error(
        "the table {table} was not made for Semel: {what}; name another table, which `semel migrate` creates"
    )]
    NotOurs {
        /// Its name.
        table: String,
        /// What is wrong with it.
        what: String,
    },
    /// The table is replicated, and its replicas agree only in the end.
    #[error(
        "the table {table} is a global table with eventual consistency (MREC), in which two regions may execute one key: use one with multi-Region strong consistency (MRSC), or remove its replicas"
    )]
    Eventual {
        /// Its name.
        table: String,
    },
    /// The credentials may not do something that is needed.
    #[error("not allowed: give the role dynamodb:{action} on the table and its indexes ({message})")]
    Denied {
        /// What it may not do.
        action: &'static str,
        /// What the service says.
        message: String,
    },
    /// Nothing could be sent: nobody listens there, or there are no credentials.
    #[error("{address} cannot be reached: {why}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// Why.
        why: String,
    },
    /// The service did not do what was asked.
    #[error("{action} failed: {why}")]
    Service {
        /// What was asked.
        action: &'static str,
        /// What the service says.
        why: String,
    },
    /// What time it is by the service could not be found, or not be written down.
    #[error("the service's clock could not be checked: {0}")]
    Clock(#[source] StoreError),
    /// The machine's certificates cannot be used.
    #[error("TLS cannot be used")]
    Tls(#[from] TlsError),
}

/// Why a transaction of the application's was not committed. Nothing was written, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The owner may not act any more.
    #[error("the claim does not hold any more: {0:?}")]
    Refused(Refusal),
    /// The condition of one of the application's own actions did not hold.
    #[error("the condition of action {action} did not hold")]
    Condition {
        /// Which, counted from 0.
        action: usize,
    },
    /// The store failed. With [`StoreError::Lost`] it is unknown whether anything was written.
    #[error(transparent)]
    Store(StoreError),
}

/// Why a URL names no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It has another scheme, or none.
    #[error("write dynamodb://TABLE?region=eu-central-1")]
    Scheme,
    /// The name of the table is missing or not valid.
    #[error(
        "a table's name has 3 to 255 letters, digits, dots, dashes and underscores: dynamodb://TABLE?region=eu-central-1"
    )]
    Table,
    /// No region is named.
    #[error("name the region: dynamodb://TABLE?region=eu-central-1, or set AWS_REGION")]
    NoRegion,
    /// The region is not the name of one.
    #[error("a region's name has lower-case letters, digits and dashes, such as eu-central-1")]
    Region,
    /// There is an unknown option, or one twice.
    #[error("the options of dynamodb://TABLE are region=… and endpoint=…, each once")]
    Option,
    /// The endpoint is no URL.
    #[error("the endpoint: {0}")]
    Endpoint(InvalidEndpoint),
}
