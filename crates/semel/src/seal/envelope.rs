//! Sealed bytes: which key, a nonce, what is sealed, and the tag.
//!
//! ```text
//! 00 's' 'e' 'm' 'e' 'l' f5 01 | length of the key's name (1) | the name | nonce (24) | sealed (n) | tag (16)
//! ```
//!
//! The first eight bytes tell what is sealed from what is not; the last of them is the version of this format.

use super::keyring::{Keyring, SealingKey};
use bytes::{Bytes, BytesMut};
use chacha20poly1305::XNonce;
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::aead::common::Generate;

const HEAD: [u8; 8] = *b"\0semel\xf5\x01";
const NONCE: usize = 24;
const TAG: usize = 16;

/// Why sealed bytes do not open.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Unopened {
    #[error("is sealed by the key \"{0}\", which is not configured")]
    KeyMissing(String),
    #[error("is not what was sealed for this record")]
    Tampered,
}

/// Whether these bytes are sealed ones.
pub(super) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(&HEAD)
}

/// The name of the key that sealed these bytes, as they say themselves.
pub(super) fn sealed_by(bytes: &[u8]) -> Option<&str> {
    Parts::of(bytes).map(|parts| parts.id)
}

/// Seals what `fill` appends, some `length` bytes, for a place that `bound` names.
pub(super) fn seal(key: &SealingKey, bound: &[u8], length: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    // 192 random bits: that two are ever alike is out of the question, however many are sealed by one key.
    let nonce = XNonce::generate();
    let id = key.id().as_bytes();
    let mut bytes = Vec::with_capacity(HEAD.len() + 1 + id.len() + NONCE + length + TAG);
    bytes.extend_from_slice(&HEAD);
    // A name has 64 bytes at most.
    bytes.push(id.len() as u8);
    bytes.extend_from_slice(id);
    bytes.extend_from_slice(&nonce);
    let begin = bytes.len();
    fill(&mut bytes);
    #[expect(clippy::expect_used, reason = "it fails beyond 256 GiB alone, which no memory holds")]
    let tag = key
        .cipher
        .encrypt_inout_detached(&nonce, bound, (&mut bytes[begin..]).into())
        .expect("what is kept of an operation is short enough to be sealed");
    bytes.extend_from_slice(&tag);
    bytes.into()
}

/// Opens what was sealed for a place that `bound` names, given the name of the key.
pub(super) fn open(
    keyring: Option<&Keyring>,
    bound: impl FnOnce(&str) -> Vec<u8>,
    bytes: Bytes,
) -> Result<Bytes, Unopened> {
    let parts = Parts::of(&bytes).ok_or(Unopened::Tampered)?;
    let key = keyring
        .and_then(|keyring| keyring.key(parts.id))
        .ok_or_else(|| Unopened::KeyMissing(parts.id.to_owned()))?;
    let bound = bound(parts.id);
    let (nonce, tag, sealed) = (parts.nonce, parts.tag, parts.sealed);
    // In place if these bytes are not shared, as after a read from a store.
    let mut bytes = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    key.cipher
        .decrypt_inout_detached(&nonce.into(), &bound, (&mut bytes[sealed.clone()]).into(), &tag.into())
        .map_err(|_| Unopened::Tampered)?;
    Ok(bytes.freeze().slice(sealed))
}

/// Sealed bytes, taken apart.
struct Parts<'b> {
    id: &'b str,
    nonce: [u8; NONCE],
    tag: [u8; TAG],
    /// Where the sealed ones are.
    sealed: std::ops::Range<usize>,
}

impl<'b> Parts<'b> {
    fn of(bytes: &'b [u8]) -> Option<Self> {
        let (length, rest) = bytes.strip_prefix(&HEAD)?.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*length))?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE>()?;
        let (sealed, tag) = rest.split_last_chunk::<TAG>()?;
        let begin = bytes.len() - rest.len();
        let id = std::str::from_utf8(id).ok()?;
        // Messages show only valid key names, whatever is stored.
        let fit = id.bytes().all(|byte| byte.is_ascii_graphic());
        fit.then_some(Self { id, nonce: *nonce, tag: *tag, sealed: begin..begin + sealed.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, byte: u8) -> SealingKey {
        SealingKey::new(id, &[byte; 32]).unwrap()
    }

    fn sealed(key: &SealingKey, bound: &[u8], text: &[u8]) -> Bytes {
        seal(key, &place(bound, key.id()), text.len(), |bytes| bytes.extend_from_slice(text))
    }

    fn opened(keyring: &Keyring, bound: &[u8], bytes: &[u8]) -> Result<Bytes, Unopened> {
        open(Some(keyring), |id| place(bound, id), Bytes::copy_from_slice(bytes))
    }

    /// As the sealer has it: the name of the key is part of it.
    fn place(bound: &[u8], id: &str) -> Vec<u8> {
        [bound, id.as_bytes()].concat()
    }

    #[test]
    fn what_is_sealed_opens_to_the_same_bytes_and_no_two_seals_are_alike() {
        let keyring = Keyring::new([key("one", 1), key("two", 2)]).unwrap();
        for text in [&b""[..], b"x", &[0; 100_000]] {
            for (id, byte) in [("one", 1), ("two", 2)] {
                let (first, second) =
                    (sealed(&key(id, byte), b"a", text), sealed(&key(id, byte), b"a", text));
                assert_ne!(first, second);
                assert!(is_sealed(&first) && sealed_by(&first) == Some(id));
                assert_eq!(opened(&keyring, b"a", &first).unwrap(), text);
                assert_eq!(opened(&keyring, b"a", &second).unwrap(), text);
            }
        }
    }

    #[test]
    fn bytes_that_somebody_else_holds_are_opened_and_left_alone() {
        let keyring = Keyring::new([key("one", 1)]).unwrap();
        let bytes = sealed(&key("one", 1), b"a", b"secret");
        let held = bytes.clone();
        assert_eq!(open(Some(&keyring), |id| place(b"a", id), bytes).unwrap(), &b"secret"[..]);
        assert_eq!(opened(&keyring, b"a", &held).unwrap(), &b"secret"[..]);
    }

    #[test]
    fn no_bit_can_be_flipped_and_nothing_cut_off_or_added() {
        let keyring = Keyring::new([key("one", 1), key("ooe", 1)]).unwrap();
        let whole = sealed(&key("one", 1), b"a", b"a secret of some length");
        for at in 0..whole.len() * 8 {
            let mut flipped = whole.to_vec();
            flipped[at / 8] ^= 1 << (at % 8);
            assert!(opened(&keyring, b"a", &flipped).is_err(), "bit {at}");
        }
        for length in 0..whole.len() {
            assert!(opened(&keyring, b"a", &whole[..length]).is_err(), "cut to {length}");
        }
        assert!(opened(&keyring, b"a", &[&whole[..], &[0]].concat()).is_err());
        assert_eq!(opened(&keyring, b"b", &whole), Err(Unopened::Tampered), "in another place");
    }

    #[test]
    fn without_its_key_it_does_not_open_and_says_which() {
        let bytes = sealed(&key("old", 1), b"a", b"secret");
        let missing = Err(Unopened::KeyMissing("old".into()));
        let other = Keyring::new([key("new", 1)]).unwrap();
        assert_eq!(opened(&other, b"a", &bytes), missing);
        assert_eq!(open(None, |_| b"a".to_vec(), bytes.clone()), missing);
        let namesake = Keyring::new([key("old", 2)]).unwrap();
        assert_eq!(opened(&namesake, b"a", &bytes), Err(Unopened::Tampered));
    }
}
