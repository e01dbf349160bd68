//! The work beside the requests alone, without a gateway: `semel worker`.

use crate::admin::{self, Admin};
use crate::config::Config;
use crate::instance::{Beside, Instance, listen};
use crate::running::{StartError, serving_to_the_end};
use crate::telemetry::Exporter;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A worker that is ready to work.
pub struct Working {
    beside: Beside,
    store: String,
    exporter: Option<Exporter>,
    admin: Option<(TcpListener, SocketAddr, Admin)>,
}

impl Working {
    /// Opens the store, and takes the address of the admin API if there is to be one.
    ///
    /// # Errors
    /// What is in the way, before anything is done.
    pub async fn start(config: &Config, admin_listen: Option<SocketAddr>) -> Result<Self, StartError> {
        let instance = Instance::open(config).await?;
        let beside = instance.beside(config).await?;
        let admin = instance.admin(config, Some(&beside))?;
        let telemetry = instance.telemetry(config, &admin);
        let admin = match admin_listen {
            None => None,
            Some(address) => {
                let (listener, address) = listen(address).await?;
                Some((listener, address, admin))
            }
        };
        // There are no requests to trace here, only numbers.
        let exporter = telemetry.map(|telemetry| telemetry.start().1);
        Ok(Self { beside, store: config.store.to_string(), exporter, admin })
    }

    /// Where the admin API is, if there is one.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(_, address, _)| *address)
    }

    /// Works until `stop`, then waits for the questions that are out. The admin API answers until then, and says that the worker is
    /// not ready any more.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tracing::info!(
            store = self.store,
            "working: leases are watched, doubt is settled, windows are closed"
        );
        work(self.beside, self.admin, stop).await;
        if let Some(exporter) = self.exporter {
            exporter.end(false).await;
        }
    }
}

async fn work(
    beside: Beside,
    admin: Option<(TcpListener, SocketAddr, Admin)>,
    stop: impl Future<Output = ()>,
) {
    let Some((listener, _, admin)) = admin else { return beside.run(stop).await };
    let readiness = admin.readiness.clone();
    let (ended, end) = oneshot::channel::<()>();
    let serving = admin::serve(listener, admin, async { drop(end.await) });
    let administering = tokio::spawn(serving_to_the_end(serving));
    let stop = async {
        stop.await;
        readiness.stopping();
    };
    beside.run(stop).await;
    drop(ended);
    let _ended = administering.await;
}
