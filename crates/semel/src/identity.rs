//! The names that a record is known by: its key, its operation id, its owner, its fingerprint.

use alloc::sync::Arc;
use core::fmt;
use uuid::Uuid;

/// The longest name of a tenant, in bytes. Stores have it in an index, where there is room for so much and not for everything.
pub const MAX_TENANT: usize = 255;

/// What one record stands for: a client's key within a tenant and an operation.
///
/// Two tenants, or two operations, never meet. `Debug` hides the key, which may carry what a client should not have
/// put into it. A record is copied several times on its way through the engine, and its names with it: they are shared.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey {
    /// Who asks: account, merchant, user or the keyed hash of a credential. At most [`MAX_TENANT`] bytes.
    pub tenant: Arc<str>,
    /// What is asked for: the name of the operation, such as `create_payment`.
    pub operation: Arc<str>,
    /// The client's `Idempotency-Key`.
    pub key: Arc<str>,
}

impl RecordKey {
    /// A key within a tenant and an operation.
    pub fn new(
        tenant: impl Into<Arc<str>>,
        operation: impl Into<Arc<str>>,
        key: impl Into<Arc<str>>,
    ) -> Self {
        Self { tenant: tenant.into(), operation: operation.into(), key: key.into() }
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordKey").field("operation", &self.operation).finish_non_exhaustive()
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
