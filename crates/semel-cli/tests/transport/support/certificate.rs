//! A certificate for servers on this machine, of an authority of its own.

use rustls::ServerConfig;
use semel_testing::tls::{Authority, Issued};
use std::path::PathBuf;

/// Files for a server on this machine.
pub(crate) struct Certificate {
    authority: Authority,
    issued: Issued,
}

impl Certificate {
    pub(crate) fn make() -> Self {
        let authority = Authority::new();
        let issued = authority.issue("gateway", &["127.0.0.1", "localhost"]);
        Self { authority, issued }
    }

    /// The file of its authority.
    pub(crate) fn ca(&self) -> PathBuf {
        self.authority.ca()
    }

    /// What a server needs that has them.
    pub(crate) fn server(&self) -> ServerConfig {
        self.issued.server(None)
    }

    /// The settings that name them.
    pub(crate) fn settings(&self) -> String {
        let Issued { certificate, key } = &self.issued;
        format!("certificate = {certificate:?}\nkey = {key:?}\n")
    }
}
