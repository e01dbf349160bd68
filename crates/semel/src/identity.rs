//! The names that a record is known by: its key, its operation id, its owner, its fingerprint.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use uuid::Uuid;

/// The longest name of a tenant, in bytes. Stores have it in an index, where there is room for so much and not for everything.
pub const MAX_TENANT: usize = 255;

/// Within what a client's key names one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum KeyScope {
    /// Within one operation of a tenant: the same key may name a request of each operation.
    #[default]
    Operation,
    /// Within a tenant: a key names one request across all operations, and another operation under it is key reuse.
    Tenant,
}

impl KeyScope {
    /// Both scopes.
    pub const ALL: [Self; 2] = [Self::Operation, Self::Tenant];

    /// Its name, as settings and the contract spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Tenant => "tenant",
        }
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one record stands for: a client's key within a tenant, and within an operation or across all of them ([`KeyScope`]).
///
/// Two tenants never meet, nor do two operations, unless the scope is the tenant: then the operation is a property of the record, and
/// whoever asks for another operation under the key [finds it](Self::is_same_record). Keys of different scopes never meet.
///
/// `Debug` hides the key, which may carry what a client should not have put into it. A record is copied several times on its way through
/// the engine, and its names with it: they are shared.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey {
    /// Who asks: account, merchant, user or the keyed hash of a credential. At most [`MAX_TENANT`] bytes.
    pub tenant: Arc<str>,
    /// What is asked for: the name of the operation, such as `create_payment`.
    pub operation: Arc<str>,
    /// The client's `Idempotency-Key`.
    pub key: Arc<str>,
    /// Within what the key names one request.
    pub scope: KeyScope,
}

impl RecordKey {
    /// A key within a tenant and an operation.
    pub fn new(
        tenant: impl Into<Arc<str>>,
        operation: impl Into<Arc<str>>,
        key: impl Into<Arc<str>>,
    ) -> Self {
        let (tenant, operation, key) = (tenant.into(), operation.into(), key.into());
        Self { tenant, operation, key, scope: KeyScope::Operation }
    }

    /// The same in this scope.
    #[must_use]
    pub fn in_scope(self, scope: KeyScope) -> Self {
        Self { scope, ..self }
    }

    /// Whether both name one record. A store has at most one record of all keys for which this holds.
    #[must_use]
    pub fn is_same_record(&self, other: &Self) -> bool {
        self.scope == other.scope
            && self.key == other.key
            && self.tenant == other.tenant
            && (self.scope == KeyScope::Tenant || self.operation == other.operation)
    }

    /// What a store has at most one record of: the key, without the operation where that is no part of it. Equal for two keys exactly where
    /// they [name one record](Self::is_same_record).
    #[must_use]
    pub fn unique(&self) -> Self {
        match self.scope {
            KeyScope::Operation => self.clone(),
            KeyScope::Tenant => Self { operation: Arc::from(""), ..self.clone() },
        }
    }

    /// The operation's name with the scope, as one text for a store: `create_payment`, or `* create_payment` across all operations.
    /// [`from_stored`](Self::from_stored) reads it.
    #[must_use]
    pub fn stored_operation(&self) -> Cow<'_, str> {
        match self.scope {
            KeyScope::Tenant => Cow::Owned(format!("{ACROSS}{}", self.operation)),
            KeyScope::Operation if has_stars(&self.operation) => Cow::Owned(format!("*{}", self.operation)),
            KeyScope::Operation => Cow::Borrowed(&self.operation),
        }
    }

    /// The key of which a store has this tenant, [operation](Self::stored_operation) and key.
    pub fn from_stored(
        tenant: impl Into<Arc<str>>,
        operation: impl Into<Arc<str>>,
        key: impl Into<Arc<str>>,
    ) -> Self {
        let operation = operation.into();
        if let Some(name) = operation.strip_prefix(ACROSS) {
            return Self::new(tenant, name, key).in_scope(KeyScope::Tenant);
        }
        match operation.strip_prefix('*').filter(|name| has_stars(name)) {
            Some(name) => Self::new(tenant, name, key),
            None => Self::new(tenant, operation, key),
        }
    }

    /// An operation's name as stores may have it, in either scope.
    #[must_use]
    pub fn stored_operations(operation: &str) -> [String; 2] {
        let key = Self::new("", operation, "");
        KeyScope::ALL.map(|scope| key.clone().in_scope(scope).stored_operation().into_owned())
    }
}

/// What the stored name of an operation begins with where keys are across all operations.
const ACROSS: &str = "* ";

/// Whether a name could be taken for one with a mark before it: stars and a space.
fn has_stars(name: &str) -> bool {
    name.starts_with('*') && name.trim_start_matches('*').starts_with(' ')
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordKey")
            .field("operation", &self.operation)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

macro_rules! uuid_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// The name with these 128 bits.
            #[must_use]
            pub const fn from_u128(bits: u128) -> Self {
                Self(Uuid::from_u128(bits))
            }

            /// The name as 16 bytes, big end first.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The name that these 16 bytes are.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

uuid_name! {
    /// The operation's id, fixed for the record's life: what is shown to clients, services, providers and operators.
    OperationId
}

uuid_name! {
    /// A random token per ownership. Only its holder can write as the owner.
    Owner
}

impl OperationId {
    /// A new id (UUIDv7: ids sort by the time of their making, which keeps index pages together).
    #[cfg(feature = "std")]
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Owner {
    /// A new token, from the operating system's randomness.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperationId({})", self.0)
    }
}

impl core::str::FromStr for OperationId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

// An owner token is a capability: its first bits are enough to tell two apart in a log.
impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:04x}…)", self.0.as_u128() >> 112)
    }
}

/// The hash of what was asked for: 32 bytes of SHA-256 or HMAC-SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// Names the rules that a fingerprint was made by: the first 16 bytes of the SHA-256 of the recipe's canonical text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecipeId(pub [u8; 16]);

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(")?;
        hex(&self.0[..4], f)?;
        f.write_str("…)")
    }
}

impl fmt::Display for RecipeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for RecipeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecipeId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_read_back_in_its_scope_whatever_its_name_is() {
        let names =
            ["create_payment", "POST /a b", "", "*", " ", "* x", "** x", "*** x", "**", "*x", "* * x", "* "];
        let mut stored = Vec::new();
        for name in names {
            for scope in KeyScope::ALL {
                let key = RecordKey::new("acme", name, "key").in_scope(scope);
                let text = key.stored_operation().into_owned();
                assert_eq!(RecordKey::from_stored("acme", &*text, "key"), key, "{text}");
                assert!(RecordKey::stored_operations(name).contains(&text));
                stored.push(text);
            }
        }
        stored.sort_unstable();
        stored.dedup();
        assert_eq!(stored.len(), 2 * names.len(), "each has a text of its own");
    }

    #[test]
    fn a_key_across_operations_is_one_whatever_is_asked_for() {
        let of = |operation: &str, scope| RecordKey::new("acme", operation, "key").in_scope(scope);
        for (one, other, same) in [
            (of("pay", KeyScope::Tenant), of("refund", KeyScope::Tenant), true),
            (of("pay", KeyScope::Operation), of("refund", KeyScope::Operation), false),
            (of("pay", KeyScope::Tenant), of("pay", KeyScope::Operation), false),
            (of("", KeyScope::Tenant), of("", KeyScope::Operation), false),
        ] {
            assert_eq!(one.is_same_record(&other), same, "{one:?} {other:?}");
            assert_eq!(one.unique() == other.unique(), same, "{one:?} {other:?}");
        }
    }
}
