//! The protocols whose clients are served, and which statuses each of them expects.

use super::Code;
use crate::key::KeyForm;
use http::StatusCode;
use std::fmt;
use std::time::Duration;

/// The statuses and formats that clients of one protocol expect. The codes are the same in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Profile {
    /// The IETF draft on the `Idempotency-Key` header, with problem documents (RFC 9457).
    #[default]
    Ietf,
    /// Stripe's API, version 1: what its official libraries understand.
    Stripe,
    /// The Agentic Commerce Protocol.
    Acp,
    /// The Universal Commerce Protocol.
    Ucp,
    /// The Ad Context Protocol, over REST.
    Adcp,
    /// The REST catalog of Apache Iceberg.
    Iceberg,
}

impl Profile {
    /// Every profile there is.
    pub const ALL: [Self; 6] = [Self::Ietf, Self::Stripe, Self::Acp, Self::Ucp, Self::Adcp, Self::Iceberg];

    /// Its name, as the configuration and the contract spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ietf => "ietf",
            Self::Stripe => "stripe",
            Self::Acp => "acp",
            Self::Ucp => "ucp",
            Self::Adcp => "adcp",
            Self::Iceberg => "iceberg",
        }
    }

    /// The fewest characters that its clients' keys have.
    #[must_use]
    pub const fn min_key_length(self) -> usize {
        match self {
            Self::Stripe => 1,
            _ => crate::key::MIN_LENGTH,
        }
    }

    /// Which characters the keys of its clients have.
    #[must_use]
    pub const fn key_form(self) -> KeyForm {
        match self {
            Self::Adcp => KeyForm::Token,
            Self::Iceberg => KeyForm::Uuid7,
            _ => KeyForm::Visible,
        }
    }

    /// For how long its protocol has a server remember a key: at least, and at most.
    #[must_use]
    pub const fn retention(self) -> (Option<Duration>, Option<Duration>) {
        const HOUR: u64 = 60 * 60;
        match self {
            Self::Acp | Self::Ucp => (Some(Duration::from_secs(24 * HOUR)), None),
            Self::Adcp => (Some(Duration::from_secs(HOUR)), Some(Duration::from_secs(7 * 24 * HOUR))),
            _ => (None, None),
        }
    }

    /// The members of a JSON body that are no part of a request, by JSON Pointer.
    #[must_use]
    pub const fn ignored_members(self) -> &'static [&'static str] {
        match self {
            Self::Adcp => &[
                "/idempotency_key",
                "/context",
                "/governance_context",
                "/push_notification_config/authentication/credentials",
            ],
            _ => &[],
        }
    }

    /// Whether its clients understand a 202 as "not done yet". The others take it for success.
    #[must_use]
    pub const fn understands_accepted(self) -> bool {
        matches!(self, Self::Ietf)
    }

    /// A status as clients of this profile may get it, whatever chose it.
    ///
    /// Iceberg's clients delete the files of a commit on 409 and 503, which destroys a table whose commit has happened: wherever that
    /// is possible they get 504, on which they look first.
    #[must_use]
    pub const fn permitted(self, status: StatusCode) -> StatusCode {
        match (self, status) {
            (
                Self::Iceberg,
                StatusCode::ACCEPTED | StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE,
            ) => StatusCode::GATEWAY_TIMEOUT,
            _ => status,
        }
    }

    pub(super) const fn status(self, code: Code) -> StatusCode {
        let status = match (self, code) {
            (Self::Stripe, Code::KeyReused | Code::KeyExpired) => StatusCode::BAD_REQUEST,
            (Self::Ucp | Self::Adcp, Code::KeyReused | Code::KeyExpired) => StatusCode::CONFLICT,
            // The commit happened, or may have: the client has to look.
            (Self::Iceberg, Code::KeyExpired) => StatusCode::GATEWAY_TIMEOUT,
            (_, Code::KeyMissing | Code::KeyInvalid) => StatusCode::BAD_REQUEST,
            (_, Code::KeyReused | Code::KeyExpired) => StatusCode::UNPROCESSABLE_ENTITY,
            (_, Code::InProgress | Code::OutcomeUnknown | Code::ResponseNotStored) => StatusCode::CONFLICT,
            (_, Code::ScopeUnresolved) => StatusCode::UNAUTHORIZED,
            (_, Code::StoreUnavailable) => StatusCode::SERVICE_UNAVAILABLE,
            (_, Code::UpstreamUnreachable) => StatusCode::BAD_GATEWAY,
            (_, Code::RequestTooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            (_, Code::RecordDamaged) => StatusCode::INTERNAL_SERVER_ERROR,
            (_, Code::QuotaExceeded) => StatusCode::TOO_MANY_REQUESTS,
        };
        self.permitted(status)
    }
}

impl Code {
    /// The status that goes with the code.
    ///
    /// [`Code::OutcomeUnknown`] has two: this is the one for retries; the request whose own execution ended in doubt
    /// gets 504, see [`Problem::for_first_request`](super::Problem::for_first_request).
    #[must_use]
    pub const fn status(self, profile: Profile) -> StatusCode {
        profile.status(self)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
