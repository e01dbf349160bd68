//! Fields of an answer that hold for pages of one origin: browsers show the answer to no other page.
//!
//! A service that answers `Access-Control-*` by itself, or a layer of the handler's, does so in first answers. Replays have these fields too,
//! for the same origin alone: for another one they would be wrong, and the service is not asked again.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, ORIGIN};

/// Under which name the origin of the first request is kept with the answer. It never goes out.
const KEPT_AS: &str = "semel-origin";

/// The page that a request comes from.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It comes from no page of another origin, as far as it says.
    #[default]
    Absent,
    /// It does not say from which: `null`, or several. Equal to none, itself included.
    Opaque,
    Named(HeaderValue),
}

impl Origin {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Self::Absent,
            (Some(origin), None) if origin != "null" => Self::Named(origin.clone()),
            (Some(_), _) => Self::Opaque,
        }
    }

    /// Keeps it with the answer whose fields are for it.
    pub(crate) fn keep(&self, kept: &mut Vec<(String, Bytes)>) {
        if let Self::Named(origin) = self {
            kept.push((KEPT_AS.to_owned(), Bytes::copy_from_slice(origin.as_bytes())));
        }
    }

    /// Whether what a stored answer says of origins is for a page of this one.
    pub(crate) fn is_of(&self, kept: &[(String, Bytes)]) -> bool {
        let first = kept.iter().find(|(name, _)| name == KEPT_AS).map(|(_, origin)| origin);
        match (self, first) {
            (Self::Absent, None) => true,
            (Self::Named(origin), Some(first)) => origin.as_bytes() == &first[..],
            _ => false,
        }
    }
}

/// Whether a stored field is kept for us alone.
pub(crate) fn is_internal(name: &str) -> bool {
    name == KEPT_AS
}
