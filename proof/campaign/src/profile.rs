//! Which rules a round goes by: the policy of its routes, how doubt is settled, and what is spoken.

use std::fmt;

/// One column of the matrix. Each has its own rule of what may be seen: see `check.rs` and `started.rs`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub(crate) enum Profile {
    /// 409 while the first request is at work, doubt settled by polls, expired keys refused.
    Usual,
    /// An expired key is a new operation: a second charge, and only after the window.
    ExpiredNew,
    /// A retry resumes what lost its owner. The provider deduplicates by operation id, as such a service has to.
    Resume,
    /// Duplicates wait for the first request's answer.
    Wait,
    /// Duplicates get 202.
    Accepted,
    /// The provider reports by webhook, late, twice and in any order; an operator settles the rest.
    WebhooksById,
    /// Somebody reports by tenant, operation and key, late and again long after. Keys are used again after their windows, so this settles nothing; an operator does.
    WebhooksByKey,
    /// Nobody but an operator settles: truthfully, by the ledger, and late.
    LateOperator,
    /// Configurations are reloaded and encryption keys replaced.
    Reload,
    /// HTTP/2 from the clients and to the service.
    Http2,
    /// No gateway: services with Semel's layer, whose effect is in the completing transaction.
    SameTransaction,
}

impl Profile {
    pub(crate) const ALL: [Self; 11] = [
        Self::Usual,
        Self::ExpiredNew,
        Self::Resume,
        Self::Wait,
        Self::Accepted,
        Self::WebhooksById,
        Self::WebhooksByKey,
        Self::LateOperator,
        Self::Reload,
        Self::Http2,
        Self::SameTransaction,
    ];

    /// They take turns from one seed to the next. Their number has no divisor in common with that of the scenes, so that all pairs come up.
    pub(crate) fn of(seed: u64) -> Self {
        Self::ALL[usize::try_from(seed % Self::ALL.len() as u64).unwrap_or_default()]
    }

    /// As the command line has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::ExpiredNew => "expired-new",
            Self::Resume => "resume",
            Self::Wait => "wait",
            Self::Accepted => "accepted",
            Self::WebhooksById => "webhooks-by-id",
            Self::WebhooksByKey => "webhooks-by-key",
            Self::LateOperator => "late-operator",
            Self::Reload => "reload",
            Self::Http2 => "http2",
            Self::SameTransaction => "same-transaction",
        }
    }

    /// What this profile allows that the others do not, for the report.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Self::Usual | Self::Http2 => {
                "one start and one effect, unless it is proved that the start before did nothing"
            }
            Self::ExpiredNew => {
                "a second effect under one key, as another operation and after the window only"
            }
            Self::Resume => "a second start of one operation that took over from the first, and one effect",
            Self::Wait => "\"in progress\" only after the wait, or where too many wait",
            Self::Accepted => "202 and never 409 while it is in progress or unknown",
            Self::WebhooksById => "doubt settled by webhooks and the operator alone",
            Self::WebhooksByKey => "nothing settled by a webhook that names a key",
            Self::LateOperator => "evidence about an earlier attempt never settles a later one",
            Self::Reload => {
                "no answer is lost when a key is taken out after `semel rekey` said that it may be"
            }
            Self::SameTransaction => "a second start that took over from the first, and one row",
        }
    }

    /// Whether an expired key is a new operation.
    pub(crate) fn renews(self) -> bool {
        matches!(self, Self::ExpiredNew | Self::WebhooksByKey)
    }

    /// Whether a retry may take over from an owner that is gone.
    pub(crate) fn takes_over(self) -> bool {
        matches!(self, Self::Resume | Self::SameTransaction)
    }

    /// Whether somebody has to settle what the gateway does not ask about.
    pub(crate) fn has_operator(self) -> bool {
        matches!(self, Self::WebhooksById | Self::WebhooksByKey | Self::LateOperator)
    }

    /// Whether services with Semel's layer are asked directly.
    pub(crate) fn has_no_gateway(self) -> bool {
        self == Self::SameTransaction
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;
    use crate::store::StoreKind;
    use clap::ValueEnum as _;
    use std::collections::BTreeSet;

    #[test]
    fn consecutive_seeds_come_to_every_pair_of_profile_and_scene() {
        for store in [StoreKind::Sqlite, StoreKind::Postgres] {
            let scenes = Scene::all(store).len();
            let pairs: BTreeSet<_> =
                (5..5 + 11 * scenes as u64).map(|seed| (Profile::of(seed), Scene::of(store, seed))).collect();
            assert_eq!(pairs.len(), 11 * scenes);
        }
    }

    #[test]
    fn each_is_forced_by_its_name() {
        for profile in Profile::ALL {
            assert_eq!(Profile::from_str(profile.name(), false), Ok(profile));
        }
    }
}
