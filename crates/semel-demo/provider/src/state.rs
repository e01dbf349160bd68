//! What handlers and webhooks share.

use crate::ledger::Ledger;
use crate::misbehaviour::Fates;
use crate::settings::Settings;
use crate::stall::Stalls;
use tokio::sync::watch;

/// What the handlers share.
pub(crate) struct ProviderState {
    pub(crate) ledger: Ledger,
    pub(crate) settings: watch::Sender<Settings>,
    pub(crate) fates: Fates,
    pub(crate) stalls: Stalls,
}
