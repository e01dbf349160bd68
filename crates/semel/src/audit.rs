//! The audit: who did what as an operator, by which way, and what was refused.
//!
//! A record's history belongs to the record and goes with it. The audit outlives records, covers acts that concern none, and says where each one
//! came from. It holds no keys of clients and no bodies.

use crate::identity::OperationId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use uuid::Uuid;

/// How long entries are kept by default: a year, and a month to look at it.
pub const AUDIT_RETENTION: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// What was done, or tried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AuditAction {
    /// Somebody signed in.
    SignIn,
    /// Somebody tried to sign in.
    SignInFailed,
    /// Somebody signed out.
    SignOut,
    /// A stored body, or a whole client key, was shown.
    Reveal,
    /// A poll was asked for.
    Poll,
    /// Doubt was settled.
    Settle,
    /// A list of operations was frozen, to be settled together.
    BulkFreeze,
    /// Settling a frozen list began.
    BulkStart,
    /// One operation of a frozen list.
    BulkItem,
    /// Settling a frozen list was stopped.
    BulkAbort,
    /// A dead letter of the outbox was requeued.
    Republish,
    /// A dead letter of the outbox was dropped.
    Drop,
    /// The configuration was reloaded.
    Reload,
    /// A clock was accepted.
    AcceptClock,
    /// The audit was exported.
    Export,
    /// Something was refused for want of a role or a tenant.
    Denied,
}

impl AuditAction {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::SignIn,
        Self::SignInFailed,
        Self::SignOut,
        Self::Reveal,
        Self::Poll,
        Self::Settle,
        Self::BulkFreeze,
        Self::BulkStart,
        Self::BulkItem,
        Self::BulkAbort,
        Self::Republish,
        Self::Drop,
        Self::Reload,
        Self::AcceptClock,
        Self::Export,
        Self::Denied,
    ];

    /// Its name, as stores and the admin API spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SignIn => "sign_in",
            Self::SignInFailed => "sign_in_failed",
            Self::SignOut => "sign_out",
            Self::Reveal => "reveal",
            Self::Poll => "poll",
            Self::Settle => "settle",
            Self::BulkFreeze => "bulk.freeze",
            Self::BulkStart => "bulk.start",
            Self::BulkItem => "bulk.item",
            Self::BulkAbort => "bulk.abort",
            Self::Republish => "republish",
            Self::Drop => "drop",
            Self::Reload => "reload",
            Self::AcceptClock => "accept_clock",
            Self::Export => "export",
            Self::Denied => "denied",
        }
    }

    /// The action of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AuditResult {
    /// It was done.
    Done,
    /// It was refused, and nothing was changed.
    Refused,
    /// It begins; what became of it is another entry.
    Begun,
    /// It was tried and failed.
    Failed,
}

impl AuditResult {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Done, Self::Refused, Self::Begun, Self::Failed];

    /// Its name, as stores and the admin API spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Begun => "begun",
            Self::Failed => "failed",
        }
    }

    /// The result of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|result| result.as_str() == name)
    }
}

/// The identity of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuditId(Uuid);

impl AuditId {
    /// A new id (UUIDv7).
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id as 16 bytes, big end first.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id that these 16 bytes are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl From<Uuid> for AuditId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl From<AuditId> for Uuid {
    fn from(id: AuditId) -> Self {
        id.0
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditId({})", self.0)
    }
}

/// An entry of the audit, to be written; the store adds the time.
///
/// What it is found by has fields of its own; the rest is in its details.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// Its identity.
    pub id: AuditId,
    /// Who: `token:oncall`, `proxy:user@example.com`, `loopback`.
    pub actor: String,
    /// What was done.
    pub action: AuditAction,
    /// How it ended.
    pub result: AuditResult,
    /// What it was done to: an operation id, an event id, a path of the API.
    pub target: Option<String>,
    /// Whose operation it was.
    pub tenant: Option<String>,
    /// The operation's name.
    pub operation: Option<String>,
    /// Everything else.
    pub details: AuditDetails,
}

/// What an entry says that it is not found by. Absent: it does not apply, or is unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditDetails {
    /// Where the actor's name comes from: `token`, `user`, `proxy`, `loopback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The actor's role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The address of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Whom a trusted peer forwarded it for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded_for: Option<String>,
    /// A hash that tells the actor's sessions apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// By which way: `console`, `api`, `cli`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The process that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The attempt that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The record's version before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_before: Option<u64>,
    /// The record's version afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_after: Option<u64>,
    /// The record's state before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_before: Option<String>,
    /// The record's state afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_after: Option<String>,
    /// The outcome that was stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where else it is written about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The SHA-256 of the body that was given or shown, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_sha256: Option<String>,
    /// The length of that body, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
    /// The code of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// What else there is to say: the number of operations of a list, say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl AuditEntry {
    /// An entry about nothing in particular, done, with a new id.
    #[must_use]
    pub fn new(actor: impl Into<String>, action: AuditAction) -> Self {
        Self {
            id: AuditId::random(),
            actor: actor.into(),
            action,
            result: AuditResult::Done,
            target: None,
            tenant: None,
            operation: None,
            details: AuditDetails::default(),
        }
    }

    /// The operation that it is about, if its target is one.
    #[must_use]
    pub fn operation_id(&self) -> Option<OperationId> {
        self.target.as_deref().and_then(|target| target.parse().ok())
    }
}

impl AuditDetails {
    /// The details as stores keep them: JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts and numbers, written to memory: nothing here can fail.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".into())
    }

    /// The details that this JSON spells.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }
}

/// An entry as a store returns it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditLine {
    /// When it was written, by the store's clock.
    pub at: Timestamp,
    /// The entry.
    pub entry: AuditEntry,
}

/// Which entries. All that is given has to hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditFilter {
    /// Only this actor's.
    pub actor: Option<String>,
    /// Only this action.
    pub action: Option<AuditAction>,
    /// Only about this.
    pub target: Option<String>,
    /// Only about this tenant.
    pub tenant: Option<String>,
    /// Only about this operation.
    pub operation: Option<String>,
    /// Only with this result.
    pub result: Option<AuditResult>,
    /// Not before this moment.
    pub from: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
}

impl AuditFilter {
    /// Whether an entry passes. For stores that look at each.
    #[must_use]
    pub fn passes(&self, line: &AuditLine) -> bool {
        let entry = &line.entry;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is(&self.actor, Some(&entry.actor))
            && self.action.is_none_or(|action| action == entry.action)
            && is(&self.target, entry.target.as_deref())
            && is(&self.tenant, entry.tenant.as_deref())
            && is(&self.operation, entry.operation.as_deref())
            && self.result.is_none_or(|result| result == entry.result)
            && self.from.is_none_or(|from| line.at >= from)
            && self.until.is_none_or(|until| line.at < until)
    }
}

/// A place in the audit, opaque to callers: a moment and a number within it, as [`at`](Self::at) spells them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditCursor(pub String);

/// One page of the audit, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditPage {
    /// The entries.
    pub lines: Vec<AuditLine>,
    /// How many damaged entries were skipped on this page. Each takes up a place.
    pub damaged: usize,
    /// Where the next page begins; `None`: this was the last.
    pub next: Option<AuditCursor>,
}

/// Entries in memory: what stores without a disk keep the audit in.
#[derive(Clone, Debug, Default)]
pub struct AuditTable {
    lines: BTreeMap<(Timestamp, u64), AuditLine>,
    appended: u64,
}

impl AuditTable {
    /// Appends an entry.
    pub fn append(&mut self, at: Timestamp, entry: AuditEntry) {
        self.appended += 1;
        self.lines.insert((at, self.appended), AuditLine { at, entry });
    }

    /// A page, newest first; `None`: the cursor is from elsewhere.
    #[must_use]
    pub fn page(&self, filter: &AuditFilter, from: Option<&AuditCursor>, limit: usize) -> Option<AuditPage> {
        let place = match from {
            None => None,
            Some(from) => Some(from.place().map(|(at, number)| (at, number.unsigned_abs()))?),
        };
        let found = self.lines.iter().rev();
        let found = found.filter(|(at, line)| place.is_none_or(|place| **at < place) && filter.passes(line));
        let mut found: Vec<_> = found.take(limit.saturating_add(1)).collect();
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| more).map(|(place, _)| **place);
        Some(AuditPage {
            next: last.map(|(at, number)| AuditCursor::at(at, i64::try_from(number).unwrap_or(i64::MAX))),
            lines: found.into_iter().map(|(_, line)| line.clone()).collect(),
            damaged: 0,
        })
    }

    /// Removes entries that were written before this moment, the oldest first; how many.
    pub fn purge(&mut self, before: Timestamp, at_most: usize) -> u64 {
        let over: Vec<_> = self.lines.range(..(before, 0)).map(|(place, _)| *place).take(at_most).collect();
        for place in &over {
            self.lines.remove(place);
        }
        over.len() as u64
    }
}

impl AuditCursor {
    /// The cursor after the entry of this moment with this number. Numbers tell apart what a store wrote in one millisecond.
    #[must_use]
    pub fn at(at: Timestamp, number: i64) -> Self {
        Self(format!("{:016x}{:016x}", at.as_millis(), number))
    }

    /// The place that [`at`](Self::at) made it of; `None`: it is no such cursor.
    #[must_use]
    pub fn place(&self) -> Option<(Timestamp, i64)> {
        let hex = |text: Option<&str>| {
            let bits = text.filter(|text| text.len() == 16 && !text.starts_with('+'));
            bits.and_then(|text| u64::from_str_radix(text, 16).ok()).map(u64::cast_signed)
        };
        Some((Timestamp::from_millis(hex(self.0.get(..16))?), hex(self.0.get(16..))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_one_action_or_result() {
        for action in AuditAction::ALL {
            assert_eq!(AuditAction::from_name(action.as_str()), Some(action));
        }
        for result in AuditResult::ALL {
            assert_eq!(AuditResult::from_name(result.as_str()), Some(result));
        }
    }

    #[test]
    fn a_place_survives_being_text() {
        for place in [0, 1, i64::MAX, -1, i64::MIN] {
            let cursor = AuditCursor::at(Timestamp::from_millis(place), 7);
            assert_eq!(cursor.place(), Some((Timestamp::from_millis(place), 7)));
        }
        for text in ["", "1", "000000000000000000000000000003eg", "+00000000000003e8+0000000000003e8"] {
            assert!(AuditCursor(text.into()).place().is_none(), "{text}");
        }
    }

    #[test]
    fn details_that_a_later_version_added_are_passed_over() {
        let read = AuditDetails::from_json(r#"{"via":"cli","later":1}"#).unwrap();
        assert_eq!(read, AuditDetails { via: Some("cli".into()), ..AuditDetails::default() });
        assert_eq!(read.to_json(), r#"{"via":"cli"}"#);
    }
}
