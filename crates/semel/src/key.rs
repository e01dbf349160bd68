//! The client's key: where it is looked for, what an `Idempotency-Key` header may hold, and which key it names.
//!
//! ```
//! use http::HeaderValue;
//! use semel::key::KeyRules;
//!
//! let rules = KeyRules::default();
//! let quoted = HeaderValue::from_static("\"5f0c3c1e-8d0f-4c7b\"");
//! let bare = HeaderValue::from_static("5f0c3c1e-8d0f-4c7b");
//! assert_eq!(rules.parse([&quoted].into_iter())?, rules.parse([&bare].into_iter())?);
//! # Ok::<(), semel::key::KeyError>(())
//! ```

mod source;

pub use source::{InvalidKey, InvalidKeySource, KeySource, KeySources};

use crate::canonical::NotCanonical;
use core::fmt;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use sfv::{BareItem, Item, List, Parser};

/// The fewest characters of a key by default: fewer cannot be unique by chance.
pub const MIN_LENGTH: usize = 16;
/// The most characters of a key by default, as the known APIs have it.
pub const MAX_LENGTH: usize = 255;

/// A client's key, unquoted. `Debug` hides it: a client may have put into it what it should not have.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key itself, to keep.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({} characters)", self.0.len())
    }
}

/// Which spellings of the header are understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeySyntax {
    /// A structured-field String (`"…"`) or a bare string; both name the same key.
    #[default]
    Lenient,
    /// A structured-field String alone, as the IETF draft has it.
    Structured,
    /// The whole value as it stands, quotes and all.
    Opaque,
}

/// Which characters a key may have, and whether they have to be more than that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyForm {
    /// Visible ASCII characters.
    #[default]
    Visible,
    /// Letters, digits, `_`, `.`, `:` and `-`, as the Ad Context Protocol has it.
    Token,
    /// A UUID of version 7, as Iceberg's catalogs have it.
    Uuid7,
}

impl KeyForm {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Visible, Self::Token, Self::Uuid7];

    /// Its name, as settings spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Token => "token",
            Self::Uuid7 => "uuid7",
        }
    }

    /// What it is, for people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Visible => "visible ASCII",
            Self::Token => "letters, digits, _ . : and -",
            Self::Uuid7 => "a UUID of version 7",
        }
    }

    fn check(self, key: &[u8]) -> Result<(), KeyError> {
        match self {
            Self::Visible => Ok(()),
            Self::Token if key.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(byte)) => {
                Ok(())
            }
            Self::Token => Err(KeyError::NotToken),
            // In the form that people write, and no other: braces and `urn:uuid:` would be other keys for the same one.
            Self::Uuid7 => match uuid::Uuid::try_parse_ascii(key) {
                Ok(uuid) if key.len() == 36 && uuid.get_version_num() == 7 => Ok(()),
                _ => Err(KeyError::NotUuid7),
            },
        }
    }
}

/// What a key must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRules {
    /// Which spellings are understood. Default: lenient.
    pub syntax: KeySyntax,
    /// Which characters it may have. Default: visible ASCII.
    pub form: KeyForm,
    /// The fewest characters, after unquoting. Default: 16.
    pub min: usize,
    /// The most characters, after unquoting. Default: 255.
    pub max: usize,
}

impl Default for KeyRules {
    fn default() -> Self {
        Self { syntax: KeySyntax::default(), form: KeyForm::default(), min: MIN_LENGTH, max: MAX_LENGTH }
    }
}

impl KeyRules {
    /// The key that the lines of the header name, or `None` where there is no line.
    ///
    /// # Errors
    /// One [`KeyError`] per way of being wrong; its text may be shown to the client.
    pub fn parse<'a>(
        &self,
        mut values: impl Iterator<Item = &'a HeaderValue>,
    ) -> Result<Option<IdempotencyKey>, KeyError> {
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(KeyError::SeveralKeys);
        }
        let value = value.as_bytes();
        // A header value carries no white space at its ends; a server that let some through does not make another key.
        let trimmed = value.trim_ascii();
        let key = match self.syntax {
            KeySyntax::Opaque => value.to_vec(),
            _ if trimmed.is_empty() => return Err(KeyError::Empty),
            KeySyntax::Structured | KeySyntax::Lenient if trimmed.starts_with(b"\"") => quoted(trimmed)?,
            KeySyntax::Structured => return Err(KeyError::NotQuoted),
            KeySyntax::Lenient => bare(trimmed)?,
        };
        self.check(key).map(Some)
    }

    fn check(&self, key: Vec<u8>) -> Result<IdempotencyKey, KeyError> {
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if !key.iter().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::NotVisibleAscii);
        }
        if key.len() < self.min {
            return Err(KeyError::TooShort { min: self.min });
        }
        if key.len() > self.max {
            return Err(KeyError::TooLong { max: self.max });
        }
        self.form.check(&key)?;
        // Visible ASCII is UTF-8, so that this never fails; it is still no reason to panic.
        String::from_utf8(key).map(IdempotencyKey).map_err(|_| KeyError::NotVisibleAscii)
    }
}

fn quoted(value: &[u8]) -> Result<Vec<u8>, KeyError> {
    match Parser::new(value).parse::<Item>() {
        Ok(Item { params, .. }) if !params.is_empty() => Err(KeyError::Parameters),
        Ok(Item { bare_item: BareItem::String(key), .. }) => Ok(key.as_str().as_bytes().to_vec()),
        Ok(_) => Err(KeyError::NotQuoted),
        Err(_) => match Parser::new(value).parse::<List>() {
            Ok(several) if several.len() > 1 => Err(KeyError::SeveralKeys),
            _ => Err(KeyError::BadQuotes),
        },
    }
}

// Bare is what clients send who never heard of structured fields: letters, digits and dashes. Whatever has a meaning in
// a structured field is refused in it, because two readings would be possible, and a key must have one. A comma could be
// two header lines that a proxy has joined: taken as one key, the pair would be a new key on one path through the
// network and an error on another. Clients that need such characters quote the key.
fn bare(value: &[u8]) -> Result<Vec<u8>, KeyError> {
    if value.contains(&b'"') {
        return Err(KeyError::BadQuotes);
    }
    if value.contains(&b',') {
        return Err(KeyError::Comma);
    }
    if value.contains(&b';') {
        return Err(KeyError::Parameters);
    }
    Ok(value.to_vec())
}

/// Why a header names no key. The text is written for the client and never repeats the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Nothing, or nothing between the quotes.
    #[error("The Idempotency-Key header is empty. Send one unique key per operation, for example a UUID.")]
    Empty,
    /// Several header lines, or a list of several strings.
    #[error("The request has more than one Idempotency-Key. Send exactly one.")]
    SeveralKeys,
    /// A bare key with a comma.
    #[error(
        "The Idempotency-Key contains a comma, which may be two header lines joined into one. \
         Send exactly one key; if the comma belongs to it, put the key in double quotes."
    )]
    Comma,
    /// Quotes that do not close, in the middle of a bare key, or with something else within or after them.
    #[error(
        "The quotes of the Idempotency-Key are not a valid structured-field string. Send \"key\" with one quote at \
         each end, and a backslash before each quote or backslash within."
    )]
    BadQuotes,
    /// Something after a semicolon.
    #[error(
        "The Idempotency-Key has parameters (a semicolon and what follows), which have no meaning here. \
         Remove them; if the semicolon belongs to the key, put the key in double quotes."
    )]
    Parameters,
    /// A bare key where only the quoted form is understood.
    #[error("The Idempotency-Key must be a structured-field string. Put the key in double quotes: \"key\".")]
    NotQuoted,
    /// A space, a control character or something beyond ASCII.
    #[error(
        "The Idempotency-Key may contain visible ASCII characters only: no spaces, no control characters, no accents. \
         Use for example a UUID."
    )]
    NotVisibleAscii,
    /// A character that the API does not take.
    #[error("The Idempotency-Key may contain letters, digits, _ . : and - only. Use for example a UUID.")]
    NotToken,
    /// Not a UUID of version 7.
    #[error("The Idempotency-Key must be a UUID of version 7, such as 019a6c1e-8f5e-7c3a-9d57-7f0a9a6f2b11.")]
    NotUuid7,
    /// Something else than a string.
    #[error("The Idempotency-Key must be a string.")]
    NotText,
    /// Two sources with different keys.
    #[error("The request has different keys in different places. Send the same key everywhere, or only one.")]
    Different,
    /// The body in which the key is, or could be, is not JSON that everybody reads in the same way.
    #[error(
        "The body may hold the idempotency key, and cannot be read as JSON: {0}. Nothing was executed; correct the body."
    )]
    UnreadableBody(NotCanonical),
    /// A list of requests, or something else than an object.
    #[error(
        "The body may hold the idempotency key, and is not a JSON object. Nothing was executed; send one request at a time, \
         each with a key of its own."
    )]
    NotAnObject,
    /// A body that has to be decoded first.
    #[error(
        "The body may hold the idempotency key, and cannot be read: send JSON as UTF-8, without a content coding, under one \
         well-formed Content-Type. Nothing was executed."
    )]
    EncodedBody,
    /// Too few characters.
    #[error(
        "The Idempotency-Key is too short: at least {min} characters are needed. Use for example a UUID."
    )]
    TooShort {
        /// The fewest that will do.
        min: usize,
    },
    /// Too many characters.
    #[error("The Idempotency-Key is too long: at most {max} characters are allowed. Use for example a UUID.")]
    TooLong {
        /// The most that will do.
        max: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef";

    fn parse(syntax: KeySyntax, lines: &[&[u8]]) -> Result<Option<String>, KeyError> {
        let lines: Vec<_> = lines.iter().map(|line| HeaderValue::from_bytes(line).unwrap()).collect();
        let rules = KeyRules { syntax, ..KeyRules::default() };
        Ok(rules.parse(lines.iter())?.map(IdempotencyKey::into_string))
    }

    fn quote(key: &str) -> String {
        format!("\"{key}\"")
    }

    #[test]
    fn each_form_takes_its_own_characters() {
        let (uuid4, uuid7) = ("5f0c3c1e-8d0f-4c7b-9d57-7f0a9a6f2b11", "019a6c1e-8f5e-7c3a-9d57-7f0a9a6f2b11");
        let plain = uuid7.replace('-', "");
        let rows: &[(KeyForm, &str, Result<(), KeyError>)] = &[
            (KeyForm::Token, "aZ09_.:-aZ09_.:-", Ok(())),
            (KeyForm::Token, "order/0123456789", Err(KeyError::NotToken)),
            (KeyForm::Token, "order=0123456789", Err(KeyError::NotToken)),
            (KeyForm::Token, "short", Err(KeyError::TooShort { min: 16 })),
            (KeyForm::Uuid7, uuid7, Ok(())),
            (KeyForm::Uuid7, uuid4, Err(KeyError::NotUuid7)),
            (KeyForm::Uuid7, &plain, Err(KeyError::NotUuid7)),
            (KeyForm::Uuid7, "{019a6c1e-8f5e-7c3a-9d57-7f0a9a6f2b11}", Err(KeyError::NotUuid7)),
            (KeyForm::Uuid7, "not-a-uuid-at-all", Err(KeyError::NotUuid7)),
            (KeyForm::Visible, "order/0123456789", Ok(())),
        ];
        for (form, key, expected) in rows {
            let rules = KeyRules { form: *form, ..KeyRules::default() };
            let value = HeaderValue::from_str(key).unwrap();
            let found = rules.parse([&value].into_iter());
            assert_eq!(
                found.map(|found| found.map(IdempotencyKey::into_string)),
                expected.map(|()| Some(key.to_string())),
                "{form:?} {key}"
            );
        }
    }

    #[test]
    fn no_header_is_no_key_in_every_syntax() {
        for syntax in [KeySyntax::Lenient, KeySyntax::Structured, KeySyntax::Opaque] {
            assert_eq!(parse(syntax, &[]), Ok(None));
        }
    }

    #[test]
    fn each_syntax_takes_what_is_its_own() {
        use KeySyntax::{Lenient, Opaque, Structured};
        let quoted = quote(KEY);
        let escaped = r#""0123456789\"abc\\def""#;
        let rows: &[(KeySyntax, &str, Result<&str, KeyError>)] = &[
            (Lenient, KEY, Ok(KEY)),
            (Lenient, &quoted, Ok(KEY)),
            (Lenient, "  0123456789abcdef\t", Ok(KEY)),
            (Structured, KEY, Err(KeyError::NotQuoted)),
            (Structured, &quoted, Ok(KEY)),
            (Structured, ":MDEyMzQ1Njc4OWFiY2RlZg==:", Err(KeyError::NotQuoted)),
            (Structured, "1234567890", Err(KeyError::NotQuoted)),
            (Opaque, KEY, Ok(KEY)),
            (Opaque, &quoted, Ok(&quoted)),
            (Opaque, "0123456789,abc;def=\"", Ok("0123456789,abc;def=\"")),
            (Opaque, "0123456789 abcdef", Err(KeyError::NotVisibleAscii)),
            (Lenient, escaped, Ok(r#"0123456789"abc\def"#)),
            (Structured, escaped, Ok(r#"0123456789"abc\def"#)),
            (Lenient, r#""0123456789,abc;def""#, Ok("0123456789,abc;def")),
        ];
        for (syntax, value, expected) in rows {
            let expected = expected.map(|key| Some(key.to_owned()));
            assert_eq!(parse(*syntax, &[value.as_bytes()]), expected, "{syntax:?} {value}");
        }
    }

    #[test]
    fn lengths_are_counted_between_the_quotes_and_both_ends_are_allowed() {
        for (length, expected) in [
            (15, Err(KeyError::TooShort { min: 16 })),
            (16, Ok(())),
            (255, Ok(())),
            (256, Err(KeyError::TooLong { max: 255 })),
        ] {
            let key = "k".repeat(length);
            let expected = expected.map(|()| Some(key.clone()));
            assert_eq!(parse(KeySyntax::Lenient, &[key.as_bytes()]), expected);
            assert_eq!(parse(KeySyntax::Opaque, &[key.as_bytes()]), expected);
            assert_eq!(parse(KeySyntax::Structured, &[quote(&key).as_bytes()]), expected);
        }
    }

    #[test]
    fn what_names_no_single_clean_key_is_refused_with_its_own_reason() {
        let rows: &[(&[u8], KeyError)] = &[
            (b"", KeyError::Empty),
            (b"   ", KeyError::Empty),
            (b"\"\"", KeyError::Empty),
            (b"\"", KeyError::BadQuotes),
            (b"\"0123456789abcdef", KeyError::BadQuotes),
            (b"0123456789abcdef\"", KeyError::BadQuotes),
            (b"01234567\"89abcdef", KeyError::BadQuotes),
            (b"\"0123456789abcdef\"x", KeyError::BadQuotes),
            (b"\"0123456789abcdef\\n\"", KeyError::BadQuotes),
            (b"\"0123456789\tabcdef\"", KeyError::BadQuotes),
            ("\"0123456789abcdéf\"".as_bytes(), KeyError::BadQuotes),
            (b"\"0123456789abcdef\";v=1", KeyError::Parameters),
            (b"\"0123456789abcdef\"; v", KeyError::Parameters),
            (b"0123456789abcdef;v=1", KeyError::Parameters),
            (b"0123456789abcdef,0123456789abcdef", KeyError::Comma),
            (b"0123456789abcdef, ", KeyError::Comma),
            (b"\"0123456789abcdef\", \"0123456789abcdef\"", KeyError::SeveralKeys),
            (b"01234567 89abcdef", KeyError::NotVisibleAscii),
            (b"01234567\t89abcdef", KeyError::NotVisibleAscii),
            (b"\"01234567 89abcdef\"", KeyError::NotVisibleAscii),
            (b"0123456789abcdef\xff", KeyError::NotVisibleAscii),
            ("0123456789abcdéf".as_bytes(), KeyError::NotVisibleAscii),
        ];
        for (value, expected) in rows {
            let text = String::from_utf8_lossy(value);
            assert_eq!(parse(KeySyntax::Lenient, &[value]), Err(*expected), "{text}");
        }
    }

    #[test]
    fn control_characters_that_slip_past_the_server_are_refused_too() {
        for byte in (0..0x20).chain([0x7f]) {
            let mut key = KEY.as_bytes().to_vec();
            key.insert(8, byte);
            let rules = KeyRules::default();
            assert_eq!(rules.check(key), Err(KeyError::NotVisibleAscii), "{byte:#x}");
        }
    }

    #[test]
    fn several_lines_are_refused_even_if_they_are_the_same() {
        for syntax in [KeySyntax::Lenient, KeySyntax::Structured, KeySyntax::Opaque] {
            assert_eq!(parse(syntax, &[KEY.as_bytes(), KEY.as_bytes()]), Err(KeyError::SeveralKeys));
        }
    }

    #[test]
    fn neither_debug_nor_an_error_repeats_the_key() {
        let value = HeaderValue::from_static(KEY);
        let key = KeyRules::default().parse([&value].into_iter()).unwrap().unwrap();
        assert_eq!(format!("{key:?}"), "IdempotencyKey(16 characters)");
        let error = parse(KeySyntax::Lenient, &[b"secretsecretsecret,x"]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}
