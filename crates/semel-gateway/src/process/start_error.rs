//! Why a gateway or a worker did not start.

use super::orphans::OperationsError;
use super::publishing::OutboxError;
use super::settling::SettlingError;
use super::tier::TierError;
use crate::store::OpenStoreError;
use crate::tls::TlsError;
use crate::upstream::InvalidUpstream;
use std::net::SocketAddr;

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The service's address is invalid.
    #[error("invalid `upstream`")]
    Upstream(#[from] InvalidUpstream),
    /// Certificates and keys cannot be used.
    #[error("{error}: {cure}", cure = error.cure())]
    Tls {
        /// What is wrong.
        #[from]
        error: TlsError,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    /// Redis cannot be put in front of it.
    #[error(transparent)]
    Cache(#[from] TierError),
    /// The secret that fingerprints are keyed with cannot be had.
    #[error("cannot read the fingerprint secret from the store: {0}")]
    FingerprintSecret(semel::StoreError),
    /// Whether and how the store's client keys are sealed cannot be found out, so that no key could be looked up.
    #[error("cannot read from the store how client keys are kept: {0}")]
    ClientKeys(semel::StoreError),
    /// The store has a secret that the configured keys do not open.
    #[error("the configured keys do not decrypt the store's secrets: {0}")]
    Keyring(semel::StoreError),
    /// Live keys would not be found any more, or whether that is so cannot be found out.
    #[error(transparent)]
    Operations(#[from] OperationsError),
    /// Doubt cannot be settled as the configuration says.
    #[error(transparent)]
    Settling(#[from] SettlingError),
    /// Events cannot be published as the configuration says.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// An address cannot be listened on.
    #[error(
        "cannot listen on {address} ({error}): choose another address, such as 127.0.0.1:0 for any free port"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// There are no threads to serve connections.
    #[error("cannot start core threads ({0}): check the limits on processes and memory")]
    CoreThreads(std::io::Error),
}
