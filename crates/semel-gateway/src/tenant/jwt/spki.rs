//! The public key in a `SubjectPublicKeyInfo` (RFC 5280, RFC 8017, RFC 5480), of the two kinds that are used here.

/// A public key.
pub(super) enum PublicKey<'a> {
    Rsa {
        modulus: &'a [u8],
        exponent: &'a [u8],
    },
    /// As a point.
    P256(&'a [u8]),
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
/// `rsaEncryption`, and the empty parameters that go with it.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// `id-ecPublicKey` on `secp256r1`.
const P256: &[u8] = &[
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07,
];

/// The key; none if it is another one, or no key at all.
pub(super) fn read(der: &[u8]) -> Option<PublicKey<'_>> {
    let info = whole(der, SEQUENCE)?;
    let (algorithm, rest) = element(info, SEQUENCE)?;
    // Its first byte counts the bits that are left over: none.
    let key = whole(rest, BIT_STRING)?.strip_prefix(&[0])?;
    match algorithm {
        RSA => {
            let numbers = whole(key, SEQUENCE)?;
            let (modulus, rest) = element(numbers, INTEGER)?;
            Some(PublicKey::Rsa { modulus, exponent: whole(rest, INTEGER)? })
        }
        P256 => Some(PublicKey::P256(key)),
        _ => None,
    }
}

/// The content of an element that is all there is.
fn whole(der: &[u8], tag: u8) -> Option<&[u8]> {
    element(der, tag).filter(|(_, rest)| rest.is_empty()).map(|(content, _)| content)
}

/// The content of an element of this kind, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [first, length, rest @ ..] = der else { return None };
    if *first != tag {
        return None;
    }
    // Up to 127 the length is the byte itself; above, the byte says how many bytes the length has. No key has more than two.
    let (length, rest) = match (*length, rest) {
        (length @ 0..=0x7f, rest) => (usize::from(length), rest),
        (0x81, [length, rest @ ..]) => (usize::from(*length), rest),
        (0x82, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}
