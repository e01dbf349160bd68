//! Who acts, and by which way they came.

use crate::identity::Identity;
use semel::audit::{AuditAction, AuditEntry};
use std::net::IpAddr;

/// By which way an operator came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Via {
    /// By a page of the console.
    Console,
    /// By the admin API.
    Api,
    /// By the admin API, with `semel` as the client.
    Cli,
}

impl Via {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Console, Self::Api, Self::Cli];

    /// Its name, as the audit spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Api => "api",
            Self::Cli => "cli",
        }
    }
}

/// An authenticated user, and what the audit says of how they came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operator {
    /// Who it is, with role and tenants.
    pub identity: Identity,
    /// By which way.
    pub via: Via,
    /// The address of the peer.
    pub peer: Option<IpAddr>,
    /// Whom a trusted peer forwarded it for. `None` from all others.
    pub forwarded_for: Option<String>,
    /// A hash that tells sessions apart, never the key of one.
    pub session: Option<String>,
    /// The id of the request.
    pub request_id: Option<String>,
}

impl Operator {
    /// This user, by this way, and nothing more known.
    #[must_use]
    pub fn new(identity: Identity, via: Via) -> Self {
        Self { identity, via, peer: None, forwarded_for: None, session: None, request_id: None }
    }

    /// An entry of the audit about what they do.
    #[must_use]
    pub fn entry(&self, action: AuditAction) -> AuditEntry {
        let mut entry = AuditEntry::new(self.identity.to_string(), action);
        let details = &mut entry.details;
        details.kind = Some(self.identity.source.as_str().into());
        details.role = Some(self.identity.role.as_str().into());
        details.peer = self.peer.map(|peer| peer.to_canonical().to_string());
        details.forwarded_for.clone_from(&self.forwarded_for);
        details.session.clone_from(&self.session);
        details.request_id.clone_from(&self.request_id);
        details.via = Some(self.via.as_str().into());
        entry
    }
}
