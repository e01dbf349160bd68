//! Each code in a sentence or two for the client: what happened, and what to do.

use super::Code;

impl Code {
    /// What happened and what to do, for the page that a problem document links to.
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::KeyMissing => {
                "This operation requires a key, and the request has none. Nothing was executed. Create a key, and \
                 send it with this request and every retry of it."
            }
            Self::KeyInvalid => {
                "The key is malformed; the detail says why. Nothing was executed. Send a well-formed key, for example \
                 a UUID."
            }
            Self::KeyReused => {
                "The key was already used for a different request. Nothing was executed. Send the original request \
                 unchanged, or use a new key for a new operation."
            }
            Self::InProgress => {
                "The first request with this key is still in progress. Wait for Retry-After, then send the same \
                 request again to get its answer."
            }
            Self::OutcomeUnknown => {
                "It is not known whether the operation was executed. While that is so, it will not be executed again. \
                 Keep the key, and send the same request again later to learn the outcome. A new key could execute it \
                 twice."
            }
            Self::KeyExpired => {
                "The key was used by an operation whose retention window is over. Nothing was executed now. Look up \
                 the result of that operation; use a new key for a new one."
            }
            Self::ResponseNotStored => {
                "The operation has ended and will not be executed again, but its response was not stored: too large, \
                 not meant to be kept, or kept no longer. Fetch the resource."
            }
            Self::ScopeUnresolved => {
                "The caller could not be identified. Nothing was executed. Authenticate, and send the request again \
                 with the same key."
            }
            Self::StoreUnavailable => {
                "The idempotency store is unavailable. Nothing was executed. Send the same request again later."
            }
            Self::UpstreamUnreachable => {
                "The service could not be reached, and nothing of the request was sent to it. Send the same request \
                 again later."
            }
            Self::RequestTooLarge => {
                "The body is larger than this operation accepts. Nothing was executed. Send a smaller request."
            }
            Self::RecordDamaged => {
                "The stored record of this operation is damaged. Nothing was executed. Contact the operator of this \
                 API, and name the operation id."
            }
            Self::QuotaExceeded => {
                "Your quota for new keys is exceeded. Nothing was executed, and nothing was recorded. Wait for \
                 Retry-After, then send the same request again. Retries of earlier requests are not affected."
            }
        }
    }
}
