//! Each code in a sentence or two for whoever gets it: what happened, and what to do.

use semel::problem::Code;

pub(super) fn explained(code: Code) -> &'static str {
    match code {
        Code::KeyMissing => {
            "This operation needs a key, and the request has none. Nothing was carried out. Make a key, and send it with this request and \
             with every retry of it."
        }
        Code::KeyInvalid => {
            "The key does not have the form that a key must have; the detail says why. Nothing was carried out. Send a well-formed key, \
             such as a UUID."
        }
        Code::KeyReused => {
            "The key was used before, for a different request. Nothing was carried out. Send the first request unchanged, or use a new \
             key for a new operation."
        }
        Code::InProgress => {
            "The first request with this key is still being worked on. Wait as long as Retry-After says, and send the same again to \
             get its answer."
        }
        Code::OutcomeUnknown => {
            "It is not known whether the operation was carried out. It will not be carried out again while that is so. Keep the key, \
             and send the same again later to learn how it ended. A new key could carry it out twice."
        }
        Code::KeyExpired => {
            "The key was used before, and the time in which its answer is repeated is over. Nothing was carried out now. Look up what \
             became of the operation; use a new key for a new one."
        }
        Code::ResponseNotStored => {
            "The operation was carried out once and will not be again, but its answer was too large or too private to be kept, or is \
             kept no longer. Fetch what it made."
        }
        Code::ScopeUnresolved => {
            "It cannot be told whose request this is. Nothing was carried out. Authenticate, and send the same request again with the \
             same key."
        }
        Code::StoreUnavailable => {
            "The memory of past requests cannot be reached. Nothing was carried out. Send the same again after a while."
        }
        Code::UpstreamUnreachable => {
            "The service could not be reached, and nothing of the request was sent to it. Send the same again after a while."
        }
        Code::RequestTooLarge => {
            "The body is larger than this operation accepts. Nothing was carried out. Send less, with a new key."
        }
        Code::RecordDamaged => {
            "What is stored of this operation is damaged. It will not be carried out again. Ask the operators of this API, and name the \
             operation id."
        }
        Code::QuotaExceeded => {
            "You have as many keys as you may for now, or make new ones too fast. Nothing was carried out, and nothing is remembered of the \
             request. Wait as long as Retry-After says, and send the same again. Retries of what you sent before are answered as ever."
        }
        // A code of a later version of the engine: its title says the essential.
        _ => "The detail of the document says what happened and what to do.",
    }
}
