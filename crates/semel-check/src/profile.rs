//! What clients of one protocol expect of refusals.

/// When two bodies are the same request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sameness {
    /// By meaning: another spelling of the same JSON is the same request.
    Meaning,
    /// By bytes.
    Bytes,
    /// Not known: both are accepted.
    Either,
}

/// What a key stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One request of one operation: another operation may use the key for itself.
    Operation,
    /// One request of the caller: another operation under the key is refused.
    Caller,
    /// Not known: both are accepted.
    Either,
}

/// What a request that was corrected after a refusal gets under the same key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Corrected {
    /// It is executed: refusals of validation are not kept.
    Executed,
    /// It is another request, and refused as such: refusals are kept.
    Refused,
    /// Not known: both are accepted.
    Either,
}

/// What a request with an expired key gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterWindow {
    /// It is executed again, as the protocol tells its clients.
    Executed,
    /// It is refused.
    Refused,
    /// Left to the API, and better refused.
    Either,
}

/// The rules of one protocol, as far as a client can see them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The name in the configuration.
    pub name: &'static str,
    /// Statuses for a key that comes with another request. Empty: any 4xx.
    pub reused: &'static [u16],
    /// Statuses for a duplicate while the first request runs. Empty: 409, 423, 425 or 429.
    pub in_flight: &'static [u16],
    /// When two bodies are the same.
    pub same: Sameness,
    /// What a key stands for.
    pub scope: Scope,
    /// What a corrected request gets.
    pub corrected: Corrected,
    /// What an expired key gets.
    pub after_window: AfterWindow,
    /// The version of the UUIDs that its keys are.
    pub key_version: u8,
    /// Whether the protocol lets a key execute again after a 5xx.
    pub executes_after_5xx: bool,
    /// Texts in an answer that say that the outcome is unknown.
    pub doubt: &'static [&'static str],
}

/// Texts by which the implementations that know doubt say so.
const DOUBT: &[&str] = &["outcome_unknown", "operation_uncertain", "outcome is unknown"];

const AUTO: Profile = Profile {
    name: "auto",
    reused: &[],
    in_flight: &[],
    same: Sameness::Either,
    scope: Scope::Either,
    corrected: Corrected::Either,
    after_window: AfterWindow::Either,
    key_version: 4,
    executes_after_5xx: false,
    doubt: DOUBT,
};

const PROFILES: [Profile; 7] = [
    AUTO,
    Profile {
        name: "ietf",
        reused: &[422],
        in_flight: &[409],
        same: Sameness::Meaning,
        scope: Scope::Operation,
        ..AUTO
    },
    Profile {
        name: "stripe",
        reused: &[400],
        in_flight: &[409],
        same: Sameness::Meaning,
        scope: Scope::Caller,
        corrected: Corrected::Executed,
        after_window: AfterWindow::Executed,
        doubt: &["outcome_unknown", "api_error"],
        ..AUTO
    },
    Profile {
        name: "acp",
        reused: &[422],
        in_flight: &[409],
        same: Sameness::Meaning,
        scope: Scope::Operation,
        executes_after_5xx: true,
        doubt: &["outcome_unknown", "processing_error"],
        ..AUTO
    },
    Profile {
        name: "ucp",
        reused: &[409],
        in_flight: &[409],
        same: Sameness::Bytes,
        scope: Scope::Caller,
        ..AUTO
    },
    Profile {
        name: "adcp",
        reused: &[409, 422],
        in_flight: &[409],
        same: Sameness::Meaning,
        scope: Scope::Caller,
        after_window: AfterWindow::Refused,
        executes_after_5xx: true,
        doubt: &["outcome_unknown", "SERVICE_UNAVAILABLE"],
        ..AUTO
    },
    Profile {
        name: "iceberg",
        reused: &[422],
        in_flight: &[504],
        same: Sameness::Meaning,
        scope: Scope::Caller,
        corrected: Corrected::Refused,
        key_version: 7,
        doubt: &["outcome_unknown", "CommitStateUnknownException"],
        ..AUTO
    },
];

impl Profile {
    /// All that there are.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &PROFILES
    }

    /// The profile of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    /// Whether a status refuses a key that came with another request.
    #[must_use]
    pub fn is_reused(&self, status: u16) -> bool {
        if self.reused.is_empty() { (400..500).contains(&status) } else { self.reused.contains(&status) }
    }

    /// Whether a status says that the first request is still running.
    #[must_use]
    pub fn is_in_flight(&self, status: u16) -> bool {
        let statuses = if self.in_flight.is_empty() { &[409, 423, 425, 429] } else { self.in_flight };
        statuses.contains(&status)
    }
}
