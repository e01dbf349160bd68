//! What a user may do.

/// A role. Each may do all that the one before it may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Reads lists, timelines and the audit of their tenants; of a key its first 8 characters.
    Reader,
    /// Sees full keys and stored answers, polls, settles and requeues.
    Operator,
    /// Acts on many operations at once, drops events, reloads, and sees all of the audit.
    Admin,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Reader, Self::Operator, Self::Admin];

    /// Its name, as the configuration and the API spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}
