//! A whole gateway as a configuration has it, on sockets of its own.

use super::{Answer, Ask, Client, Service};
use semel_gateway::{Config, GatewayProcess};
use std::net::SocketAddr;
use std::path::Path;

/// A running gateway.
pub(crate) struct Configured {
    pub(crate) address: SocketAddr,
}

impl Configured {
    /// In front of a service, with these sections in its file. Without a route it protects every POST and PATCH that brings a key.
    pub(crate) async fn before(service: &Service, sections: &str) -> Self {
        Self::before_port(service.port, sections).await
    }

    /// The same, with refusals in the format of this profile.
    pub(crate) async fn of_profile(service: &Service, profile: &str, sections: &str) -> Self {
        Self::with(service.port, &format!("profile = \"{profile}\""), sections).await
    }

    pub(crate) async fn before_port(port: u16, sections: &str) -> Self {
        Self::with(port, "", sections).await
    }

    /// With these settings at the top of its file, and these sections.
    pub(crate) async fn with(port: u16, settings: &str, sections: &str) -> Self {
        let toml = format!(
            "upstream = \"http://127.0.0.1:{port}\"\nlisten = \"127.0.0.1:0\"\nstore = \"memory:\"\n{settings}\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{sections}"
        );
        let config =
            Config::from_toml(&toml, Path::new("semel.toml")).unwrap_or_else(|errors| panic!("{errors}"));
        let running = GatewayProcess::start(config).await.unwrap();
        let address = running.address();
        tokio::spawn(running.serve(std::future::pending(), std::future::pending()));
        Self { address }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends a request over a connection of its own.
    pub(crate) async fn send(&self, ask: &Ask) -> Answer {
        self.connect().await.send(ask).await
    }
}
