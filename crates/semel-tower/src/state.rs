//! What all services of one layer share.

use crate::body::BodyBudget;
use crate::contract::Described;
use crate::protection::ValidProtection;
use crate::replay_check::ReplayCheck;
use crate::tenant::TenantLookup;
use http::request::Parts;
use semel::fingerprint::FingerprintSecret;
use semel::key::KeyRules;
use semel::problem::{DocsBase, Format, Profile};
use semel::{Engine, OperationId};
use std::borrow::Cow;
use std::sync::Arc;

/// A request to protect: the operation's name, and how it is protected.
pub type Protected = (String, ValidProtection);

pub(crate) type Select = Arc<dyn Fn(&Parts) -> Option<Protected> + Send + Sync>;

pub(crate) type HostOf = Arc<dyn for<'a> Fn(&'a Parts) -> Option<Cow<'a, [u8]>> + Send + Sync>;

/// The settings of a layer, and the engine that it protects by.
#[derive(Clone)]
pub(crate) struct LayerState {
    pub(crate) engine: Engine,
    pub(crate) tenants: TenantLookup,
    /// Who is asked before a replay.
    pub(crate) replay_check: Option<Arc<dyn ReplayCheck>>,
    pub(crate) select: Select,
    pub(crate) host_of: HostOf,
    /// What the contract tells of.
    pub(crate) described: Vec<Described>,
    pub(crate) key_rules: KeyRules,
    /// The application has set them, whatever the profile has.
    pub(crate) has_own_key_rules: bool,
    pub(crate) profile: Profile,
    pub(crate) format: Format,
    pub(crate) docs: DocsBase,
    pub(crate) secret: Option<Arc<FingerprintSecret>>,
    pub(crate) body_budget: BodyBudget,
}

impl LayerState {
    /// Whether nothing is open about an operation any more: it has a final state, or was released.
    pub(crate) async fn has_ended(&self, id: OperationId) -> bool {
        match self.engine.store().find(vec![id]).await {
            Ok(answer) => answer.items.iter().flatten().all(|record| record.state.is_final()),
            Err(_) => false,
        }
    }
}

/// The path as the client has sent it: a router that another one nests is shown the rest of it alone.
pub(crate) fn path(parts: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(whole)) = parts.extensions.get() {
        return whole.path();
    }
    parts.uri.path()
}
