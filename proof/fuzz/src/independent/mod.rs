//! The rules a second time: written from `docs/spec.md`, `docs/decisions/` and the RFCs, as plainly as possible and without a look at
//! how the crates go about it. Slow, recursive and wasteful is fine here; the same mistake twice is not.

pub(crate) mod base64;
pub(crate) mod content;
pub(crate) mod decimal;
pub(crate) mod fingerprint;
pub(crate) mod framing;
pub(crate) mod headers;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod normal_form;
#[cfg(feature = "records")]
pub(crate) mod record;
pub(crate) mod shape;
