//! The three processes together, and the directory that they work in.

use super::DemoError;
use super::ledger::Ledger;
use super::part::{GatewayArguments, Part, ProviderArguments, ServiceArguments};
use super::process::Process;
use super::reserved_port::ReservedPort;
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;

/// Everything is gone when this is dropped: however the demo ends.
pub(super) struct Environment {
    pub(super) provider: Process,
    pub(super) service: Process,
    pub(super) gateway: Process,
    directory: TempDir,
    /// Keeps the port of a process that is down for a while.
    _ports: Vec<ReservedPort>,
}

/// What the gateway is asked for.
pub(super) struct Wanted {
    pub(super) listen: SocketAddr,
    /// Another port will do, if this one is taken.
    pub(super) or_another: bool,
    pub(super) misconfigured: bool,
}

impl Environment {
    pub(super) async fn set(wanted: Wanted) -> Result<Self, DemoError> {
        let directory = tempfile::Builder::new().prefix("semel-demo-").tempdir();
        let directory = directory.map_err(DemoError::Directory)?;
        let at = directory.path();
        let [provider_at, service_at, admin_at] =
            [ReservedPort::any()?, ReservedPort::any()?, ReservedPort::any()?];
        let listen = match wanted.listen.port() {
            0 => Some(ReservedPort::any_at(wanted.listen.ip())?),
            _given => None,
        };
        let provider = ProviderArguments { listen: provider_at.address() };
        let provider = Process::start(Part::Provider(provider), at).await?;
        let service = ServiceArguments { listen: service_at.address(), provider: provider.address() };
        let service = Process::start(Part::Service(service), at).await?;
        let gateway = GatewayArguments {
            upstream: service.address(),
            listen: listen.as_ref().map_or(wanted.listen, ReservedPort::address),
            or_another: wanted.or_another,
            admin_listen: admin_at.address(),
            misconfigured: wanted.misconfigured,
        };
        let gateway = Process::start(Part::Gateway(gateway), at).await?;
        let ports = [provider_at, service_at, admin_at].into_iter().chain(listen).collect();
        Ok(Self { provider, service, gateway, directory, _ports: ports })
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn ledger(&self) -> Ledger {
        Ledger { address: self.provider.address() }
    }

    pub(super) async fn restart_service(&mut self) -> Result<(), DemoError> {
        self.service.restart(self.directory.path()).await
    }

    pub(super) async fn restart_gateway(&mut self) -> Result<(), DemoError> {
        self.gateway.restart(self.directory.path()).await
    }

    /// Waits until one of them is gone, and starts it again. Tells which, and its new process.
    pub(super) async fn revive(&mut self) -> Result<(&'static str, Option<u32>), DemoError> {
        let gone = tokio::select! {
            ended = self.gateway.ended() => ended.map(|_| &mut self.gateway),
            ended = self.service.ended() => ended.map(|_| &mut self.service),
            ended = self.provider.ended() => ended.map(|_| &mut self.provider),
        }?;
        // Time to see what it is like without.
        tokio::time::sleep(super::ABSENCE).await;
        gone.restart(self.directory.path()).await?;
        Ok((gone.name(), gone.pid()))
    }

    /// Ends all of them in good order: nobody loses the one that it asks.
    pub(super) async fn strike(mut self) {
        for process in [&mut self.gateway, &mut self.service, &mut self.provider] {
            process.stop().await;
        }
    }
}
