//! What every service of AWS wants of a client: requests signed with credentials.

mod credentials;
mod date;
mod signature;

pub(crate) use credentials::Chain;
pub use credentials::{Credentials, CredentialsError};
pub(crate) use date::parse as parse_date;
pub(crate) use signature::Signer;
