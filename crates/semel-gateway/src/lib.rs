//! The gateway of Semel: any HTTP service, in any language, behind the layer of `semel-tower`.
//!
//! The way of a request: `server` (accepts and guards the framing) → the layer of `semel-tower` (decides) → `proxy` (forwards). Beside
//! it `admin` answers on a listener of its own.

pub mod admin;
mod alarm;
mod answer;
pub mod config;
pub mod contract;
mod entrance;
mod external_host;
#[cfg(feature = "fail-points")]
mod fail_points;
mod framing;
mod gateway;
mod instance;
mod lanes;
mod limits;
pub mod metrics;
mod open_files;
mod outbox;
mod pace;
mod party;
pub mod proxy;
mod reload;
pub mod route;
mod running;
pub mod scope;
mod secret;
mod server;
mod settling;
mod shares;
mod shifts;
mod store_url;
mod telemetry;
pub mod tls;
mod working;

pub use config::Config;
pub use gateway::{Gateway, Stopped};
pub use limits::Limits;
pub use outbox::{Outbox, OutboxError};
pub use reload::{Reload, ReloadError, Reloaded};
pub use running::{Running, StartError};
pub use secret::{Environment, Secret, SecretError};
pub use server::{PeerAddress, RequestBody};
pub use settling::SettlingError;
pub use store_url::{OpenStoreError, OpenedStore, StoreUrl, StoreUrlError};
pub use working::Working;
