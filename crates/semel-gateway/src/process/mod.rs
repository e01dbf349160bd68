//! All of it put together: as a gateway, or as a worker alone.
//!
//! - `gateway.rs`, `worker.rs`: the two kinds of process;
//! - `state.rs`: what outlives a reload (`tier.rs`: the Redis in front of its store); `build.rs`, `live.rs`: what requests meet, and how one takes another's place;
//! - `background.rs`: what is done beside the requests (`settling.rs`, `publishing.rs`);
//! - `orphans.rs`: refuses names of operations by which live keys would be lost;
//! - `reloader.rs`: puts one configuration in the place of another; `restart.rs`: which settings it cannot change.

mod background;
mod bind;
mod build;
mod gateway;
mod live;
mod open_files;
mod orphans;
mod publishing;
mod reloader;
mod restart;
mod settling;
mod start_error;
mod state;
mod tier;
mod worker;

pub use gateway::GatewayProcess;
pub use live::{Gateway, Stopped};
pub use orphans::{OperationsError, OrphanedKeys};
pub use publishing::OutboxError;
pub use settling::SettlingError;
pub use start_error::StartError;
pub use tier::TierError;
pub use worker::WorkerProcess;

async fn serving_to_the_end(serving: impl Future<Output = std::io::Result<()>>) {
    if let Err(error) = serving.await {
        tracing::error!(%error, "the admin API has ended");
    }
}
