//! `[encryption]`: the keys that seal what is stored.

use super::section::{Given, Section, TextForm};
use crate::secret::Secret;
use crate::setting::InvalidValue;
use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use semel::seal::{Keyring, Plain, SealingKey};
use std::ops::Range;

/// What `seal_with` says where nothing is to be sealed yet.
const NONE: &str = "none";
const ID_EXAMPLE: &str = "2026-11";
const KEYS_EXAMPLE: &str = "[{ id = \"2026-11\", key = \"env:SEMEL_KEY_2026_11\" }]";
const MAKE_ONE: &str = "make one with `openssl rand -base64 32`";

/// A key as the file has it.
struct Told {
    key: SealingKey,
    bytes: Vec<u8>,
    at: Range<usize>,
}

pub(super) fn read(mut section: Section<'_, '_>) -> Option<Keyring> {
    let mut told: Vec<Told> = Vec::new();
    let sections = section.sections("keys", "[[encryption.keys]]");
    let whole = sections.len();
    for mut one in sections {
        if let Some(key) = read_key(&mut one) {
            if told.iter().any(|other| other.key.id() == key.key.id()) {
                let problem = format!("the key \"{}\" is given twice", key.key.id());
                one.wrong(&key.at, problem, "give every key its own id, and never reuse an id");
            } else if let Some(other) = told.iter().find(|other| other.bytes == key.bytes) {
                let problem = format!("this key is the same as \"{}\"", other.key.id());
                one.wrong(&key.at, problem, format!("use another key for each id: {MAKE_ONE}"));
            } else {
                told.push(key);
            }
        }
        one.end();
    }
    let seal_with =
        section.parsed("seal_with", TextForm { what: "the name of a key", example: ID_EXAMPLE }, |text| {
            Ok(text.to_owned())
        });
    let plain = section.choice("plain", &[("accepted", Plain::Accepted), ("refused", Plain::Refused)]);
    if section.is_there() && whole == 0 {
        section.missing_as("keys", KEYS_EXAMPLE);
    }
    let all_read = told.len() == whole;
    let keyring = Keyring::new(told.into_iter().map(|told| told.key)).ok();
    let keyring = keyring.and_then(|keyring| choose(&section, keyring, seal_with.as_ref(), all_read));
    if let (Some(keyring), Some(Given { value: Plain::Refused, at })) = (&keyring, &plain)
        && keyring.seals_with().is_none()
    {
        let problem =
            "nothing would be sealed, and plain answers would be refused: no answer could be replayed";
        section.wrong(at, problem, "write plain = \"accepted\", or name a key in `seal_with`");
    }
    section.end();
    let plain = plain.map_or_else(Plain::default, |given| given.value);
    keyring.map(|keyring| keyring.plain(plain))
}

/// The keyring with the key that seals.
fn choose(
    section: &Section<'_, '_>,
    keyring: Keyring,
    seal_with: Option<&Given<String>>,
    all_read: bool,
) -> Option<Keyring> {
    let Some(Given { value: id, at }) = seal_with else { return Some(keyring) };
    if id == NONE {
        return Some(keyring.open_only());
    }
    let ids: Vec<String> = keyring.ids().map(|id| format!("\"{id}\"")).collect();
    match keyring.seal_with(id) {
        Ok(keyring) => Some(keyring),
        Err(_) => {
            // It may be the one that could not be read, of which that is said.
            if all_read {
                let cure = format!("write one of {}, or \"{NONE}\"", ids.join(", "));
                section.wrong(at, format!("there is no key with the id \"{id}\""), cure);
            }
            None
        }
    }
}

fn read_key(section: &mut Section<'_, '_>) -> Option<Told> {
    let id = section.parsed("id", TextForm { what: "a name", example: ID_EXAMPLE }, |text| {
        let cure = "use letters, digits, dots, _ and - only, such as the month in which it was made";
        // Its bytes come later; whether the name is one is asked of whoever knows.
        match SealingKey::new(text, &[0; SealingKey::BYTES]) {
            Ok(_) if text != NONE => Ok(text.to_owned()),
            _ => Err(InvalidValue::new(format!("\"{text}\" is not a valid key id"), cure)),
        }
    });
    if !section.has("id") {
        section.missing("id", ID_EXAMPLE);
    }
    let secret = section.secret("key");
    if !section.has("key") {
        section.missing("key", "env:SEMEL_KEY_2026_11");
    }
    let Given { value: secret, at } = secret?;
    let bytes = bytes_of(&secret).filter(|bytes| bytes.len() == SealingKey::BYTES);
    let Some(bytes) = bytes else {
        let problem = "a key is 32 random bytes, as base64 or as 64 hexadecimal digits";
        section.wrong(&at, problem, MAKE_ONE);
        return None;
    };
    let key = SealingKey::new(id?.value, &bytes).ok()?;
    Some(Told { key, bytes, at })
}

/// The bytes that a secret spells, in either of the two ways that keys are handed round.
fn bytes_of(secret: &Secret) -> Option<Vec<u8>> {
    let text = secret.reveal();
    // 64 digits could be base64 too, but of 48 bytes, which are no key.
    if text.len() == 2 * SealingKey::BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        return pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    }
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [STANDARD, URL_SAFE].iter().find_map(|alphabet| GeneralPurpose::new(alphabet, lenient).decode(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_spelt_in_hexadecimal_digits_or_in_base64_of_any_sort() {
        let bytes: Vec<u8> = (0..32).map(|byte| byte * 8).collect();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        for text in [
            hex.as_str(),
            &hex.to_uppercase(),
            "AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=",
            "AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg",
        ] {
            assert_eq!(bytes_of(&Secret::new(text).unwrap()).as_ref(), Some(&bytes), "{text}");
        }
        let url_safe = bytes_of(&Secret::new("_-".repeat(21) + "8").unwrap());
        assert_eq!(url_safe, bytes_of(&Secret::new("/+".repeat(21) + "8").unwrap()));
        assert!(url_safe.is_some());
        assert_eq!(bytes_of(&Secret::new("not~base64").unwrap()), None);
    }
}
