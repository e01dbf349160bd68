//! How SQL stores encode values that a column cannot hold directly: the same in all stores.

use crate::identity::{KeyScope, RecordKey};
use crate::record::{Body, StoredResponse};
use bytes::Bytes;
use crc32fast::Hasher;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What a store's one unique index holds of a record key: four bytes of the client key's hash, then twelve of the hash of the whole
/// key.
///
/// The index is narrow whatever the length of tenant, operation and key (random keys dirty one page each, and narrow entries
/// share pages), it finds a record by its key, and, by its first four bytes, the records of a client key whatever their tenant and
/// operation. The full key is compared after the reading: two keys of one hash are damage, never taken for each other.
pub type KeyHash = [u8; 16];

const PREFIX: usize = 4;

/// The hash of a record key. Where it is across all operations, the operation is no part of it.
#[must_use]
pub fn key_hash(key: &RecordKey) -> KeyHash {
    let mut hasher = Sha256::new();
    let operation = (key.scope == KeyScope::Operation).then_some(&key.operation);
    // The lengths keep ("ab", "c") and ("a", "bc") apart, and two parts from three.
    for part in [Some(&key.tenant), operation, Some(&key.key)].into_iter().flatten() {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let whole = hasher.finalize();
    let mut hash = [0; 16];
    hash[..PREFIX].copy_from_slice(&prefix(&key.key));
    hash[PREFIX..].copy_from_slice(&whole[..16 - PREFIX]);
    hash
}

/// The lowest and the highest hash that a record of this client key can have.
#[must_use]
pub fn client_key_range(client_key: &str) -> (KeyHash, KeyHash) {
    let prefix = prefix(client_key);
    let (mut low, mut high) = ([0; 16], [0xff; 16]);
    low[..PREFIX].copy_from_slice(&prefix);
    high[..PREFIX].copy_from_slice(&prefix);
    (low, high)
}

fn prefix(client_key: &str) -> [u8; PREFIX] {
    let hash = Sha256::digest(client_key.as_bytes());
    let mut prefix = [0; PREFIX];
    prefix.copy_from_slice(&hash[..PREFIX]);
    prefix
}

/// A stored answer as its columns have it.
#[derive(Debug)]
pub struct AnswerColumns<'a> {
    /// `response_status`
    pub status: u16,
    /// `headers`, see [`headers_json`]
    pub headers: String,
    /// `response_schema`
    pub schema: Option<&'a str>,
    /// `body_kind`
    pub kind: &'static str,
    /// `body`
    pub body: Option<&'a [u8]>,
    /// `response_sum`, see [`answer_sum`]
    pub sum: i32,
}

impl<'a> AnswerColumns<'a> {
    /// What is written of this answer.
    #[must_use]
    pub fn of(response: &'a StoredResponse) -> Self {
        let StoredResponse { status, headers, body, schema_version } = response;
        let (status, headers, schema) = (*status, headers_json(headers), schema_version.as_deref());
        let (kind, body) = body_columns(body);
        let sum = answer_sum(status, &headers, schema, (kind, body));
        Self { status, headers, schema, kind, body, sum }
    }

    /// The headers, where they or the body are anything to be kept: apart from the record, for they go before it.
    #[must_use]
    pub fn headers_apart(&self) -> Option<&str> {
        (self.body.is_some() || self.headers != NO_HEADERS).then_some(&self.headers)
    }
}

/// What was read of an answer's headers and body, which are kept apart from the record.
#[derive(Clone, Copy, Debug)]
pub enum Apart<'a> {
    /// They were not read.
    NotRead,
    /// There never were any, or their time was over.
    Nothing,
    /// These, as their columns have them.
    Kept(&'a str, Option<&'a [u8]>),
}

/// The answer whose columns say this (`response_status`, `response_schema`, `body_kind`, `response_sum`), with what was read of it beside.
///
/// # Errors
/// What is wrong with it.
pub fn answer_of(
    status: u16,
    schema_version: Option<String>,
    kind: &str,
    sum: i32,
    apart: Apart<'_>,
) -> Result<StoredResponse, &'static str> {
    let schema = schema_version.as_deref();
    let (headers, body) = match apart {
        Apart::NotRead | Apart::Nothing => (Vec::new(), None),
        Apart::Kept(headers, body) if adds_up(sum, status, headers, schema, (kind, body)) => {
            (headers_of(headers).ok_or("its headers cannot be read")?, body)
        }
        // Of an answer before this one, which has nothing to be kept.
        Apart::Kept(..) if adds_up(sum, status, NO_HEADERS, schema, (kind, None)) => (Vec::new(), None),
        Apart::Kept(..) => return Err("its answer does not match its checksum"),
    };
    let body = match (kind, body, apart) {
        ("stored" | "sealed", None, Apart::NotRead) => Body::Omitted,
        ("stored" | "sealed", None, Apart::Nothing) => Body::Dropped,
        ("stored", Some(bytes), _) => Body::Stored(Bytes::copy_from_slice(bytes)),
        ("sealed", Some(bytes), _) => Body::Sealed(Bytes::copy_from_slice(bytes)),
        ("not_stored", None, _) => Body::NotStored,
        ("dropped", None, _) => Body::Dropped,
        _ => return Err("its body_kind is invalid"),
    };
    Ok(StoredResponse { status, headers, body, schema_version })
}

/// The column `body_kind`, and what goes into `body`.
fn body_columns(body: &Body) -> (&'static str, Option<&[u8]>) {
    match body {
        Body::Stored(bytes) => ("stored", Some(bytes)),
        Body::Sealed(bytes) => ("sealed", Some(bytes)),
        Body::NotStored => ("not_stored", None),
        Body::Dropped => ("dropped", None),
        // Refused before it comes here; should it ever, the column's content is one that no reading accepts.
        Body::Omitted => ("omitted", None),
    }
}

/// How no headers at all are spelt.
const NO_HEADERS: &str = "[]";

/// Headers as JSON: `[["content-type", "application/json"], …]`, in order. A value that is not UTF-8, which a header may
/// hold, is an array of its bytes: `["x-legacy", [255, 254]]`. Nothing is lost, and what is text stays readable.
#[must_use]
pub fn headers_json(headers: &[(String, Bytes)]) -> String {
    // Neither texts nor numbers fail to be written; should they ever, what is left is damage to every reading.
    serde_json::to_string(&headers.iter().map(Spelt::of).collect::<Vec<_>>()).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(untagged)]
enum Spelt<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Spelt<'a> {
    /// The name of a header, and its value.
    fn of((name, value): &'a (String, Bytes)) -> (&'a str, Self) {
        (name, std::str::from_utf8(value).map_or(Self::Bytes(value), Self::Text))
    }
}

/// The headers that [`headers_json`] spelt; `None` if it did not.
#[must_use]
pub fn headers_of(json: &str) -> Option<Vec<(String, Bytes)>> {
    let pairs: Vec<(String, Value)> = serde_json::from_str(json).ok()?;
    let value = |value: Value| match value {
        Value::String(text) => Some(Bytes::from(text)),
        Value::Array(_) => serde_json::from_value::<Vec<u8>>(value).ok().map(Bytes::from),
        _ => None,
    };
    pairs.into_iter().map(|(name, bytes)| Some((name, value(bytes)?))).collect()
}

/// The column `response_sum`: the CRC-32 of a stored answer, as its columns have it. An answer that does not add up to it any more is damaged, and
/// is never replayed.
///
/// It detects what a disk, memory or a careless UPDATE changes. An attacker can compute it too: against attackers there is sealing.
#[must_use]
pub fn answer_sum(status: u16, headers: &str, schema: Option<&str>, body: (&str, Option<&[u8]>)) -> i32 {
    let (kind, bytes) = body;
    let mut sum = Hasher::new();
    sum.update(&status.to_le_bytes());
    for part in [Some(headers.as_bytes()), schema.map(str::as_bytes), Some(kind.as_bytes()), bytes] {
        // The length keeps parts apart that read the same in a row, and nothing from what is empty.
        let length = part.map_or(u64::MAX, |part| part.len() as u64);
        sum.update(&length.to_le_bytes());
        sum.update(part.unwrap_or_default());
    }
    sum.finalize().cast_signed()
}

/// Whether these columns of a stored answer are what was written with this sum.
fn adds_up(sum: i32, status: u16, headers: &str, schema: Option<&str>, body: (&str, Option<&[u8]>)) -> bool {
    sum == answer_sum(status, headers, schema, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_lies_in_the_range_of_its_client_key() {
        let hash = key_hash(&RecordKey::new("tenant", "operation", "key-of-the-client"));
        let (low, high) = client_key_range("key-of-the-client");
        assert!(low <= hash && hash <= high);
    }

    #[test]
    fn a_key_across_operations_has_one_hash_and_never_that_of_a_key_within_one() {
        let of = |operation: &str, scope| key_hash(&RecordKey::new("acme", operation, "key").in_scope(scope));
        assert_eq!(of("pay", KeyScope::Tenant), of("refund", KeyScope::Tenant));
        for operation in ["pay", "", "* pay"] {
            assert_ne!(of("pay", KeyScope::Tenant), of(operation, KeyScope::Operation));
        }
        let hex: String = of("pay", KeyScope::Operation).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "2c70e12b3feecd8df60fbf58f215bc02", "as it is in every store");
    }

    #[test]
    fn parts_that_read_the_same_in_a_row_are_different_keys() {
        let (one, other) = (RecordKey::new("ab", "c", "key"), RecordKey::new("a", "bc", "key"));
        assert_ne!(key_hash(&one), key_hash(&other));
        assert_ne!(
            key_hash(&one)[8..],
            key_hash(&other)[8..],
            "a lock that stands for the key is of this half"
        );
    }

    #[test]
    fn an_answer_adds_up_to_what_is_in_every_file() {
        let sum = answer_sum(201, r#"[["content-type","application/json"]]"#, None, ("stored", Some(b"{}")));
        assert_eq!(sum, -1_793_133_647);
    }

    #[test]
    fn any_change_to_an_answer_changes_its_sum() {
        let one = answer_sum(200, "[]", Some("v1"), ("stored", Some(b"body")));
        let others = [
            answer_sum(201, "[]", Some("v1"), ("stored", Some(b"body"))),
            answer_sum(200, "[ ]", Some("v1"), ("stored", Some(b"body"))),
            answer_sum(200, "[]", None, ("stored", Some(b"body"))),
            answer_sum(200, "[]", Some(""), ("stored", Some(b"body"))),
            answer_sum(200, "[]", Some("v1"), ("sealed", Some(b"body"))),
            answer_sum(200, "[]", Some("v1"), ("stored", Some(b"bodx"))),
            answer_sum(200, "[]", Some("v1"), ("stored", Some(b""))),
            answer_sum(200, "[]", Some("v1"), ("stored", None)),
            answer_sum(200, "[]v", Some("1"), ("stored", Some(b"body"))),
        ];
        for (number, other) in others.into_iter().enumerate() {
            assert_ne!(one, other, "{number}");
        }
    }

    #[test]
    fn an_answer_comes_back_as_far_as_it_was_read() {
        let header = ("location".to_owned(), Bytes::from("/payments/1"));
        let bodies = [
            (Body::Stored(Bytes::from("body")), Body::Omitted, Body::Dropped),
            (Body::Sealed(Bytes::new()), Body::Omitted, Body::Dropped),
            (Body::NotStored, Body::NotStored, Body::NotStored),
            (Body::Dropped, Body::Dropped, Body::Dropped),
        ];
        for (body, listed, over) in bodies {
            for headers in [vec![], vec![header.clone()]] {
                let response =
                    StoredResponse { status: 201, headers, body: body.clone(), schema_version: None };
                let columns = AnswerColumns::of(&response);
                let read = |apart| answer_of(201, None, columns.kind, columns.sum, apart);
                let bare =
                    |body: &Body| StoredResponse { headers: vec![], body: body.clone(), ..response.clone() };
                assert_eq!(read(Apart::NotRead), Ok(bare(&listed)));
                assert_eq!(read(Apart::Nothing), Ok(bare(&over)));
                let kept = Apart::Kept(&columns.headers, columns.body);
                assert_eq!(read(kept), Ok(response.clone()));
                // What was kept of another answer is never taken for this one's.
                let other = read(Apart::Kept("[[\"a\",\"b\"]]", Some(b"other")));
                match columns.headers_apart() {
                    Some(_) => assert_eq!(other, Err("its answer does not match its checksum")),
                    None => assert_eq!(other, Ok(response)),
                }
            }
        }
        assert!(answer_of(201, None, "omitted", 0, Apart::NotRead).is_err());
        assert!(answer_of(201, None, "nonsense", 0, Apart::Nothing).is_err());
    }

    #[test]
    fn headers_come_back_as_they_were() {
        let headers = vec![
            ("content-type".to_owned(), Bytes::from("application/json")),
            ("x-legacy".to_owned(), Bytes::from_static(&[255, 0, b'"'])),
            ("link".to_owned(), Bytes::from("</a>; title=\"\u{e9}\"")),
            ("link".to_owned(), Bytes::new()),
            ("x-nul".to_owned(), Bytes::from_static(b"a\0b")),
        ];
        let json = headers_json(&headers);
        assert!(json.contains("application/json") && json.contains("[255,0,34]"), "{json}");
        assert!(!json.contains('\0'), "not every database holds text with a NUL");
        assert_eq!(headers_of(&json), Some(headers));
        for wrong in ["", "{}", "[1]", r#"[["a"]]"#, "[[1,2]]", r#"[["a",[256]]]"#, r#"[["a",null]]"#] {
            assert_eq!(headers_of(wrong), None, "{wrong}");
        }
    }
}
