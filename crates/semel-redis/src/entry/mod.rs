//! What is kept in Redis under one key.
//!
//! ```text
//! "SML" kind operation-id version | format observed-at record | MAC
//!  3    1    16           8         1      8           …        32
//! ```
//!
//! The head is the same in all formats: by it [`put.lua`](../connection/put.lua) decides what may replace what, also between builds that
//! cannot read each other's records. The MAC is over the name in Redis, which stands for the record's key, and everything before it.

mod bytes;
mod record;

use self::bytes::Reader;
use crate::secret::Secret;
use ::bytes::Bytes;
use semel::{OperationId, Record, Timestamp};

/// The length of the head.
pub(crate) const HEAD: usize = 28;
const MAGIC: &[u8; 3] = b"SML";
const MAC: usize = 32;
/// How records are written. Another build may have another one: what it wrote is not read.
const FORMAT: u8 = 1;

/// What a value says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The operation has ended, and this is its record.
    Entry,
    /// The operation was in progress when this was observed.
    Guard,
    /// Nothing of this operation is to be written here, or read.
    Marker,
}

impl Kind {
    const fn letter(self) -> u8 {
        match self {
            Self::Entry => b'E',
            Self::Guard => b'G',
            Self::Marker => b'M',
        }
    }
}

/// A value whose MAC is right, read.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) kind: Kind,
    /// What the store's time was, at the earliest, when it said so.
    pub(crate) observed: Timestamp,
    pub(crate) record: Record,
}

/// Why a value says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unreadable {
    /// It is no value of ours, or broken off.
    Garbage,
    /// Another build wrote it.
    Format,
    /// Somebody else wrote it, or changed it, or it belongs under another name.
    Mac,
    /// It is a marker.
    Marker,
}

fn head(kind: Kind, id: OperationId, version: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(512);
    value.extend(MAGIC);
    value.push(kind.letter());
    value.extend(id.as_bytes());
    value.extend(version.to_be_bytes());
    value
}

/// The value of an entry or a guard.
pub(crate) fn write(
    secret: &Secret,
    name: &[u8],
    kind: Kind,
    record: &Record,
    observed: Timestamp,
) -> Vec<u8> {
    let mut value = head(kind, record.operation_id, record.version);
    value.push(FORMAT);
    value.extend(observed.as_millis().to_be_bytes());
    record::write(record, &mut value);
    let mac = secret.mac(name, &value);
    value.extend(mac);
    value
}

/// The value of a marker.
pub(crate) fn marker(id: OperationId, version: u64) -> Vec<u8> {
    head(Kind::Marker, id, version)
}

/// Reads a value.
///
/// # Errors
/// Why it says nothing.
pub(crate) fn read(secret: &Secret, name: &[u8], value: &Bytes) -> Result<Opened, Unreadable> {
    if value.len() < HEAD || &value[..3] != MAGIC {
        return Err(Unreadable::Garbage);
    }
    let kind = match value[3] {
        b'E' => Kind::Entry,
        b'G' => Kind::Guard,
        b'M' => return Err(Unreadable::Marker),
        _ => return Err(Unreadable::Garbage),
    };
    match value.get(HEAD) {
        None => return Err(Unreadable::Garbage),
        Some(&format) if format != FORMAT => return Err(Unreadable::Format),
        Some(_) => {}
    }
    let Some(signed) = value.len().checked_sub(MAC).filter(|signed| *signed > HEAD) else {
        return Err(Unreadable::Garbage);
    };
    if !secret.is_mac(name, &value[..signed], &value[signed..]) {
        return Err(Unreadable::Mac);
    }
    let mut reader = Reader::of(value.slice(HEAD + 1..signed));
    let opened = (|| {
        let observed = Timestamp::from_millis(reader.i64()?);
        let record = record::read(&mut reader)?;
        let is_of_head = record.operation_id.as_bytes()[..] == value[4..20]
            && record.version.to_be_bytes()[..] == value[20..28];
        (reader.is_at_end() && is_of_head && record.check().is_ok()).then_some(Opened {
            kind,
            observed,
            record,
        })
    })();
    opened.ok_or(Unreadable::Garbage)
}

#[cfg(test)]
mod tests;
