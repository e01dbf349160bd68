//! The keys that seal and open.

use chacha20poly1305::aead::KeyInit;
use chacha20poly1305::{Key, XChaCha20Poly1305};
use std::fmt;

/// One key, under the name by which sealed bytes say which one opens them. `Debug` shows the name alone.
#[derive(Clone)]
pub struct SealingKey {
    id: String,
    pub(super) cipher: XChaCha20Poly1305,
}

impl SealingKey {
    /// The bytes of a key.
    pub const BYTES: usize = 32;
    /// The longest name: it is stored with everything that the key seals.
    pub const LONGEST_ID: usize = 64;

    /// The key of these 32 bytes, which should be random ones, under a name of its own for ever: a name never stands for another
    /// key later on.
    ///
    /// # Errors
    /// The name or the length is invalid.
    pub fn new(id: impl Into<String>, key: &[u8]) -> Result<Self, InvalidKey> {
        let id = id.into();
        let fit = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if id.is_empty() || id.len() > Self::LONGEST_ID || !id.bytes().all(fit) {
            return Err(InvalidKey::Id);
        }
        let key = <&Key>::try_from(key).map_err(|_| InvalidKey::Length { bytes: key.len() })?;
        Ok(Self { id, cipher: XChaCha20Poly1305::new(key) })
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({})", self.id)
    }
}

/// Why something is no key. The texts never repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The name.
    #[error("a key name has 1 to 64 characters: letters, digits, dots, _ and -")]
    Id,
    /// The length.
    #[error("a key must have 32 bytes, not {bytes}")]
    Length {
        /// How many there are.
        bytes: usize,
    },
}

/// What becomes of what is stored as it is, without a seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Plain {
    /// It is accepted: it may be older than encryption.
    #[default]
    Accepted,
    /// It is damage: an attacker with write access to the store could have put it in the place of sealed contents.
    Refused,
}

/// All keys of an engine: one of them seals, each opens what it has sealed.
///
/// ```
/// use semel::seal::{Keyring, SealingKey};
///
/// let (old, new) = (SealingKey::new("2026-05", &[1; 32])?, SealingKey::new("2026-11", &[2; 32])?);
/// let keyring = Keyring::new([new, old])?;
/// assert_eq!(keyring.seals_with(), Some("2026-11"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keyring {
    keys: Vec<SealingKey>,
    /// Which of them seals; `None`: nothing is sealed yet.
    seals: Option<usize>,
    plain: Plain,
}

/// Why keys make no keyring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKeyring {
    /// No key was given.
    #[error("the keyring is empty")]
    Empty,
    /// Two have one name.
    #[error("two keys have the name \"{0}\"")]
    Twice(String),
    /// None has the name of the one that is to seal.
    #[error("no key has the name \"{0}\"")]
    Missing(String),
}

impl Keyring {
    /// These keys. The first one seals.
    ///
    /// # Errors
    /// No key was given, or two have the same name.
    pub fn new(keys: impl IntoIterator<Item = SealingKey>) -> Result<Self, InvalidKeyring> {
        let keys: Vec<SealingKey> = keys.into_iter().collect();
        if keys.is_empty() {
            return Err(InvalidKeyring::Empty);
        }
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].iter().any(|other| other.id == key.id) {
                return Err(InvalidKeyring::Twice(key.id.clone()));
            }
        }
        Ok(Self { keys, seals: Some(0), plain: Plain::default() })
    }

    /// The key of this name seals, wherever it stands.
    ///
    /// # Errors
    /// No key has that name.
    pub fn seal_with(mut self, id: &str) -> Result<Self, InvalidKeyring> {
        let at = self.keys.iter().position(|key| key.id == id);
        self.seals = Some(at.ok_or_else(|| InvalidKeyring::Missing(id.to_owned()))?);
        Ok(self)
    }

    /// Nothing is sealed, and what is sealed is opened: the first step of instances that share a store, and none of which may meet
    /// what it cannot open.
    #[must_use]
    pub fn open_only(mut self) -> Self {
        self.seals = None;
        self
    }

    /// What becomes of what is stored without a seal. Default: it is believed.
    #[must_use]
    pub fn plain(mut self, plain: Plain) -> Self {
        self.plain = plain;
        self
    }

    /// The name of the key that seals; `None`: nothing is sealed.
    #[must_use]
    pub fn seals_with(&self) -> Option<&str> {
        self.sealing_key().map(SealingKey::id)
    }

    /// The names of all keys.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(SealingKey::id)
    }

    /// Whether what is stored without a seal is damage.
    #[must_use]
    pub fn refuses_plain(&self) -> bool {
        self.plain == Plain::Refused
    }

    pub(crate) fn keys(&self) -> &[SealingKey] {
        &self.keys
    }

    pub(crate) fn sealing_key(&self) -> Option<&SealingKey> {
        self.seals.and_then(|at| self.keys.get(at))
    }

    pub(super) fn key(&self, id: &str) -> Option<&SealingKey> {
        self.keys.iter().find(|key| key.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> SealingKey {
        SealingKey::new(id, &[7; 32]).unwrap()
    }

    #[test]
    fn a_key_has_32_bytes_and_a_name_that_fits_everywhere() {
        for (id, bytes, wrong) in [
            ("", 32, InvalidKey::Id),
            ("two words", 32, InvalidKey::Id),
            ("schl\u{fc}ssel", 32, InvalidKey::Id),
            ("k", 31, InvalidKey::Length { bytes: 31 }),
            ("k", 0, InvalidKey::Length { bytes: 0 }),
            ("k", 33, InvalidKey::Length { bytes: 33 }),
        ] {
            assert_eq!(SealingKey::new(id, &vec![7; bytes]).map(drop), Err(wrong), "{id} {bytes}");
        }
        assert_eq!(SealingKey::new("k".repeat(65), &[7; 32]).map(drop), Err(InvalidKey::Id));
        assert_eq!(key("2026-11.a_B").id(), "2026-11.a_B");
    }

    #[test]
    fn the_first_seals_unless_another_is_named_or_none_does() {
        let keyring = Keyring::new([key("new"), key("old")]).unwrap();
        assert_eq!((keyring.seals_with(), keyring.refuses_plain()), (Some("new"), false));
        assert_eq!(keyring.clone().seal_with("old").unwrap().seals_with(), Some("old"));
        assert_eq!(keyring.clone().seal_with("gone").map(drop), Err(InvalidKeyring::Missing("gone".into())));
        assert_eq!(keyring.clone().open_only().seals_with(), None);
        assert!(keyring.plain(Plain::Refused).refuses_plain());
        assert_eq!(Keyring::new([]).map(drop), Err(InvalidKeyring::Empty));
        assert_eq!(Keyring::new([key("a"), key("a")]).map(drop), Err(InvalidKeyring::Twice("a".into())));
    }

    #[test]
    fn nothing_of_a_key_is_shown() {
        let shown = format!("{:?}", Keyring::new([key("the-name")]).unwrap());
        assert!(shown.contains("the-name") && !shown.contains('7'), "{shown}");
    }
}
