//! How a correct API answers: each style is right by some profile.

use super::keys::{Known, Stored};

/// The style of a correct API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// 422 for another request, 409 with Retry-After for a duplicate of a running one.
    #[default]
    Ietf,
    /// A duplicate waits for the answer of the running request.
    Waits,
    /// Answers are the same for every operation: they name nothing that was made.
    NoIds,
    /// 400 for another request.
    Stripe,
    /// 409 for another request; bodies are compared by bytes.
    Ucp,
    /// 504 for a duplicate of a running request; refusals are kept.
    Iceberg,
    /// 409 for another request; bodies are compared by meaning.
    Adcp,
    /// The key is in the body, at `/key`.
    KeyInBody,
    /// One request at a time, whoever asks.
    Serial,
    /// One stream of an HTTP/2 connection at a time.
    OneStream,
    /// The first request takes a second; every later one is answered at once, whatever `X-Delay` says.
    WarmsUp,
    /// Serves everybody as the same caller.
    Open,
    /// Refuses bodies that have an array in them.
    NoArrays,
}

impl Style {
    /// What a key gets that came with another request.
    pub(super) fn reused(self, detail: &str) -> Stored {
        let status = match self {
            Self::Stripe => 400,
            Self::Ucp | Self::Adcp => 409,
            _ => 422,
        };
        Stored::problem(status, detail)
    }

    /// What a duplicate of a running request gets.
    pub(super) fn in_flight(self) -> Stored {
        match self {
            Self::Iceberg => Stored::problem(504, "in progress"),
            _ => Stored::problem(409, "in progress").with("retry-after", "1"),
        }
    }

    /// Whether a duplicate waits.
    pub(super) fn waits(self, known: &Known, fingerprint: &str) -> bool {
        self == Self::Waits && matches!(known, Known::Running { .. }) && known.fingerprint() == fingerprint
    }
}
