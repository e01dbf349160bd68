//! Normal forms of texts: several spellings that a service takes for one value, as one.

use super::{Sink, number, string, timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A form in which a text within JSON counts, where a rule says that its service reads all spellings of it alike.
///
/// A text that is not of the kind counts as it is, and so does what is not a text. No such text is the normal form of another one, and the
/// normal form of a normal form is itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NormalForm {
    /// A to Z as a to z; every other character as it is. Which characters have a lower case changes with Unicode, and no recipe may.
    Lowercase,
    /// A decimal, spelt as a JSON number is: by its exact value. `"10.00"` and `"1e1"` count as `"10"`, and never as the number 10.
    Decimal,
    /// A timestamp (RFC 3339) by its instant: in UTC, without zeros at the end of the fraction. `"2026-11-01T10:00:00.50+01:00"` counts
    /// as `"2026-11-01T09:00:00.5Z"`. Leap seconds and the unknown offset `-00:00` count as they are.
    Timestamp,
}

impl NormalForm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lowercase, Self::Decimal, Self::Timestamp];

    /// Its name, as recipes and configurations have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lowercase => "lowercase",
            Self::Decimal => "decimal",
            Self::Timestamp => "timestamp",
        }
    }

    /// Writes the checked string whose opening quote is at `start`, and returns the offset after its closing quote.
    pub(super) fn write(self, text: &str, start: usize, sink: &mut impl Sink) -> usize {
        match self {
            Self::Lowercase => string::write(text, start, &mut Lowercased(sink)),
            Self::Decimal => {
                let (plain, end) = unescaped(text, start);
                let plain = plain.as_bytes();
                if number::end_of_checked(plain, 0) != Ok(plain.len()) {
                    return string::write(text, start, sink);
                }
                sink.write(b"\"");
                number::write(plain, 0, sink);
                sink.write(b"\"");
                end
            }
            Self::Timestamp => {
                let (plain, end) = unescaped(text, start);
                let Some(in_utc) = timestamp::in_utc(&plain) else { return string::write(text, start, sink) };
                string::write_plain(&in_utc, sink);
                end
            }
        }
    }
}

/// What a checked string means, and the offset after its closing quote.
fn unescaped(text: &str, start: usize) -> (Cow<'_, str>, usize) {
    let end = string::end(text.as_bytes(), start);
    match text.get(start + 1..end - 1) {
        Some(plain) if !plain.contains('\\') => (Cow::Borrowed(plain), end),
        _ => (string::Unescaped::at(text, start).collect(), end),
    }
}

/// Writes in lower case. The letters of escapes are in lower case already.
struct Lowercased<'s, S>(&'s mut S);

impl<S: Sink> Sink for Lowercased<'_, S> {
    fn write(&mut self, piece: &[u8]) {
        let mut buffer = [0; 64];
        for chunk in piece.chunks(buffer.len()) {
            let lowercased = &mut buffer[..chunk.len()];
            lowercased.copy_from_slice(chunk);
            lowercased.make_ascii_lowercase();
            self.0.write(lowercased);
        }
    }
}
