//! The shapes that records and their history are shown in.
//!
//! Shown is what operators need to find out what happened. Never shown: the answer's body and the values of its headers,
//! which are the client's business, checkpoints, which are the service's, and owner tokens, which are capabilities. Of a client's key the
//! beginning is shown. Members without a value are absent.

use semel::seal::sealed_by;
use semel::transition::{Standing, standing, state_at};
use semel::{Body, HistoryLine, Record, Resource, StoredResponse, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// One operation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Operation {
    #[schema(format = "uuid")]
    operation_id: String,
    tenant: String,
    operation: String,
    /// The client's key: its first 8 characters and an ellipsis in a listing, the whole key for a single operation.
    key: String,
    #[schema(schema_with = super::schemas::states)]
    state: &'static str,
    /// Whether its window is over, also before the reaper has dropped its answer.
    expired: bool,
    dead_letter: bool,
    attempt: u32,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_point: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Made>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Kept>,
    reconcile_attempts: u32,
    recipe: String,
    times: Moments,
}

/// The resource that an operation created or concerns.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Resource)]
struct Made {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

/// The stored answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeptResponse)]
struct Kept {
    status: u16,
    /// The names of the kept header fields.
    headers: Vec<String>,
    /// `stored`, `not_stored` or `dropped`.
    body: &'static str,
    /// The length of the body in bytes; absent in a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_bytes: Option<usize>,
    /// The name of the encryption key that it is sealed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<String>,
}

/// Moments of an operation, past and future.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Times)]
struct Moments {
    created: Moment,
    lease_until: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_expires: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purge: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_reconcile: Option<Moment>,
}

/// A moment as RFC 3339 has it, in UTC; or `never`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(example = "2026-02-03T04:05:06.789Z")]
pub(super) struct Moment(String);

/// One line of history.
#[derive(Serialize, ToSchema)]
#[schema(as = HistoryLine)]
pub(super) struct HistoryDocument {
    at: Moment,
    version: u64,
    happening: &'static str,
    actor: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Operation {
    pub(super) fn of(record: Record, now: Timestamp) -> Self {
        let standing = standing(&record, now);
        let times = &record.times;
        Self {
            times: Moments {
                created: times.created.into(),
                lease_until: times.lease.into(),
                completed: times.completed.map(Moment::from),
                body_expires: times.body_expires.map(Moment::from),
                expires: times.expires.map(Moment::from),
                purge: times.purge.map(Moment::from),
                next_reconcile: times.reconcile.map(Moment::from),
            },
            operation_id: record.operation_id.to_string(),
            tenant: record.key.tenant.to_string(),
            operation: record.key.operation.to_string(),
            key: abbreviated(&record.key.key),
            state: state_at(&record, now).as_str(),
            expired: matches!(standing, Standing::Tombstone | Standing::Gone),
            dead_letter: record.dead_letter,
            attempt: record.attempt,
            version: record.version,
            last_error: record.last_error,
            recovery_point: record.recovery_point,
            resource: record.resource.map(|Resource { kind, id }| Made { kind, id }),
            response: record.response.map(|response| Kept::of(response, standing)),
            reconcile_attempts: record.reconcile_attempts,
            recipe: record.recipe.to_string(),
        }
    }

    /// Shows the whole client key.
    pub(super) fn with_key(self, key: String) -> Self {
        Self { key, ..self }
    }
}

/// How many characters of a client's key are shown in listings.
const SHOWN: usize = 8;

/// The beginning of a client's key: enough to recognise it by, and too little to use it.
fn abbreviated(key: &str) -> String {
    match key.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

impl Kept {
    fn of(mut response: StoredResponse, standing: Standing) -> Self {
        // Its time is over: whether its bytes are gone already makes no difference to anybody.
        if standing != Standing::Alive {
            response.headers.clear();
            if response.body != Body::NotStored {
                response.body = Body::Dropped;
            }
        }
        let (body, body_bytes) = match &response.body {
            Body::Stored(bytes) => ("stored", Some(bytes.len())),
            // How long it is, and which headers there are, is sealed along.
            Body::Sealed(_) => ("sealed", None),
            // In a listing: it is there, and was not read along.
            Body::Omitted => ("stored", None),
            Body::NotStored => ("not_stored", None),
            Body::Dropped => ("dropped", None),
            // A kind that this version does not know has nothing to show.
            _ => ("not_stored", None),
        };
        let sealed_by = match &response.body {
            Body::Sealed(bytes) => sealed_by(bytes).map(str::to_owned),
            _ => None,
        };
        Self {
            status: response.status,
            sealed_by,
            headers: response.headers.into_iter().map(|(name, _)| name).collect(),
            body,
            body_bytes,
            schema_version: response.schema_version,
        }
    }
}

impl From<HistoryLine> for HistoryDocument {
    fn from(line: HistoryLine) -> Self {
        Self {
            at: line.at.into(),
            version: line.version,
            happening: line.entry.happening.as_str(),
            actor: line.entry.actor.to_string(),
            attempt: line.entry.attempt,
            note: line.entry.note,
        }
    }
}

impl From<Timestamp> for Moment {
    fn from(moment: Timestamp) -> Self {
        Self(match jiff::Timestamp::from_millisecond(moment.as_millis()) {
            Ok(moment) => format!("{moment:.3}"),
            // Beyond the year 9999: a window that never ends.
            Err(_) => "never".into(),
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_key_the_first_eight_characters_are_shown() {
        assert_eq!(abbreviated("7fb0f4a0-8d6f-4d69"), "7fb0f4a0…");
        assert_eq!(abbreviated("schl\u{fc}ssel-eins"), "schl\u{fc}sse…");
        assert_eq!((abbreviated("12345678"), abbreviated("")), ("12345678".into(), String::new()));
    }

    #[test]
    fn moments_have_milliseconds_and_an_end() {
        let text = |millis| Moment::from(Timestamp::from_millis(millis)).0;
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(1_700_000_000_120), "2023-11-14T22:13:20.120Z");
        assert_eq!(text(i64::MAX), "never");
    }
}
