//! What makes two requests of a route the same.

use semel::canonical::NormalForm;
use std::collections::BTreeMap;

/// What counts of a request. By default everything: the host, the whole body, and no header but the media type and the content coding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FingerprintConfig {
    /// JSON Pointers to what does not count.
    pub ignore: Vec<String>,
    /// JSON Pointers to what alone counts; none: everything.
    pub only: Vec<String>,
    /// JSON texts, by JSON Pointers to the members that they are filled in for.
    pub defaults: BTreeMap<String, String>,
    /// The normal forms in which texts count, by JSON Pointer.
    pub normalise: BTreeMap<String, NormalForm>,
    /// Whether the body is compared by its bytes, whatever its media type is.
    pub bytes: bool,
    /// Headers that count.
    pub headers: Vec<String>,
    /// Whether the host counts that the client asked for.
    pub host: HostRule,
}

/// Whether the host counts that the client asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostRule {
    /// Another host is another request.
    #[default]
    Counts,
    /// All hosts are one.
    Ignored,
}
