//! The secret that all instances on one store share, and what is derived from it.

use hmac::{Hmac, KeyInit as _, Mac as _};
use semel::RecordKey;
use sha2::Sha256;

type HmacSha256 = Hmac<Sha256>;

/// What every name in Redis begins with: the pattern for an ACL is `~semel:*`.
const PREFIX: &str = "semel:";

/// The keys for names and for MACs. Made of a secret that the durable store remembers, so that another store, or a new one under the old
/// address, has other names and other MACs.
#[derive(Clone)]
pub(crate) struct Secret {
    names: HmacSha256,
    macs: HmacSha256,
}

impl Secret {
    /// Under which the durable store remembers it.
    pub(crate) const NAME: &str = "secret/cache";

    pub(crate) fn new(remembered: &[u8]) -> Self {
        let derived = |purpose: &[u8]| {
            let key = keyed(remembered).chain_update(purpose).finalize().into_bytes();
            keyed(&key)
        };
        Self { names: derived(b"semel cache: names"), macs: derived(b"semel cache: entries 1") }
    }

    /// The name of a record's key in Redis. It tells nothing about tenant, operation or key.
    pub(crate) fn name(&self, key: &RecordKey) -> Vec<u8> {
        // Across operations, a key has one name whatever is asked for.
        let key = key.unique();
        let mut hash = self.names.clone();
        for part in [key.scope.as_str(), &key.tenant, &key.operation, &key.key] {
            // The length keeps ("ab", "c") and ("a", "bc") apart.
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let mut name = Vec::with_capacity(PREFIX.len() + 40);
        name.extend(PREFIX.as_bytes());
        for byte in &hash.finalize().into_bytes()[..20] {
            name.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        name
    }

    /// The MAC of a value under this name.
    pub(crate) fn mac(&self, name: &[u8], value: &[u8]) -> [u8; 32] {
        self.over(name, value).finalize().into_bytes().into()
    }

    /// Whether this is the MAC, in constant time.
    pub(crate) fn is_mac(&self, name: &[u8], value: &[u8], mac: &[u8]) -> bool {
        self.over(name, value).verify_slice(mac).is_ok()
    }

    fn over(&self, name: &[u8], value: &[u8]) -> HmacSha256 {
        self.macs
            .clone()
            .chain_update((name.len() as u64).to_be_bytes())
            .chain_update(name)
            .chain_update(value)
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
fn keyed(key: &[u8]) -> HmacSha256 {
    HmacSha256::new_from_slice(key).expect("HMAC takes keys of every length")
}
