//! `[worker]`: what is done beside the requests.

use super::section::Section;
use semel::audit::AUDIT_RETENTION;
use semel_worker::Forget;
use std::time::Duration;

/// Who watches leases, asks about doubt and closes windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerConfig {
    /// Whether the gateway does it beside its requests. Default: yes.
    pub in_gateway: bool,
    /// What becomes of a key whose tombstone's time is over. Default: it is deleted.
    pub forget: Forget,
    /// How long entries of the audit are kept. Default: 400 days.
    pub audit_retention: Duration,
}

/// The shortest time that the audit is kept.
const SHORTEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest: a hundred years.
const LONGEST: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

impl Default for WorkerConfig {
    fn default() -> Self {
        Self { in_gateway: true, forget: Forget::Hard, audit_retention: AUDIT_RETENTION }
    }
}

pub(super) fn read(mut section: Section<'_, '_>) -> WorkerConfig {
    let default = WorkerConfig::default();
    let in_gateway = section.flag("in_gateway");
    let forget = section.choice("forget", &[("hard", Forget::Hard), ("soft", Forget::Soft)]);
    let audit_retention = section.duration("audit_retention", "400d", SHORTEST..=LONGEST);
    section.end();
    WorkerConfig {
        in_gateway: in_gateway.map_or(default.in_gateway, |given| given.value),
        forget: forget.map_or(default.forget, |given| given.value),
        audit_retention: audit_retention.map_or(default.audit_retention, |given| given.value),
    }
}
