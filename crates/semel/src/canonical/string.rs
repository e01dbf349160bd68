//! Strings: where they end, what they mean, how they are written, and in which order names come.

use super::{NotCanonical, Sink};
use core::cmp::Ordering;
use core::str::Chars;

/// Which bytes stand for themselves within a string, whatever comes before and after them.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < 0x20 {
        plain[control] = false;
        control += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

/// The offset of the first byte from `at` that is not plain.
fn end_of_plain(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !PLAIN[usize::from(*byte)]).unwrap_or(rest.len())
}

/// Checks the string whose opening quote is at `start`, and returns the offset after its closing quote.
pub(super) fn end_of_checked(text: &[u8], start: usize) -> Result<usize, NotCanonical> {
    let mut at = start + 1;
    loop {
        at = end_of_plain(text, at);
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = end_of_escape(text, at)?,
            _ => return Err(NotCanonical::Syntax { at }),
        }
    }
}

fn end_of_escape(text: &[u8], at: usize) -> Result<usize, NotCanonical> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match unit(text, at + 2).ok_or(NotCanonical::Syntax { at })? {
            0xD800..=0xDBFF => {
                let low =
                    text.get(at + 6..at + 8).filter(|next| next == b"\\u").and_then(|_| unit(text, at + 8));
                match low {
                    Some(0xDC00..=0xDFFF) => Ok(at + 12),
                    _ => Err(NotCanonical::LoneSurrogate { at }),
                }
            }
            0xDC00..=0xDFFF => Err(NotCanonical::LoneSurrogate { at }),
            _ => Ok(at + 6),
        },
        _ => Err(NotCanonical::Syntax { at }),
    }
}

fn unit(text: &[u8], at: usize) -> Option<u32> {
    text.get(at..at + 4)?.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

/// The offset after the closing quote of a string that has been checked.
pub(super) fn end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        at = end_of_plain(text, at);
        match text.get(at) {
            Some(b'\\') => at += 2,
            _ => return at + 1,
        }
    }
}

/// The characters that a checked string means, without taking memory for them.
#[derive(Clone)]
pub(super) struct Unescaped<'a>(Chars<'a>);

impl<'a> Unescaped<'a> {
    /// The characters of the string whose opening quote is at `start`, or those after the ASCII character there.
    pub(super) fn at(text: &'a str, start: usize) -> Self {
        Self(text.get(start + 1..).unwrap_or_default().chars())
    }

    fn unit(&mut self) -> u32 {
        (0..4).fold(0, |unit, _| unit << 4 | self.0.next().and_then(|digit| digit.to_digit(16)).unwrap_or(0))
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.0.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.unit();
                if (0xD800..=0xDBFF).contains(&first) {
                    self.0.next();
                    self.0.next();
                    let low = self.unit();
                    let scalar = 0x10000 + ((first - 0xD800) << 10) + (low & 0x3FF);
                    char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER)
                } else {
                    char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
                }
            }
            plain => plain,
        })
    }
}

impl Iterator for Unescaped<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.0.next()? {
            '"' => {
                self.0 = "".chars();
                None
            }
            '\\' => self.escaped(),
            plain => Some(plain),
        }
    }
}

/// The order of names: by UTF-16 code units. It differs from the order of UTF-8 bytes and of characters where one
/// name has a character beyond the basic plane (a surrogate pair, 0xD800 and up) and the other one from 0xE000 on.
pub(super) fn order(left: impl Iterator<Item = char>, right: impl Iterator<Item = char>) -> Ordering {
    let mut right = right;
    for a in left {
        let Some(b) = right.next() else {
            return Ordering::Greater;
        };
        if a != b {
            let (a, b) = (u32::from(a), u32::from(b));
            return match (a > 0xFFFF, b > 0xFFFF) {
                (true, false) => high_surrogate(a).cmp(&b),
                (false, true) => a.cmp(&high_surrogate(b)),
                _ => a.cmp(&b),
            };
        }
    }
    if right.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

fn high_surrogate(scalar: u32) -> u32 {
    0xD800 + ((scalar - 0x10000) >> 10)
}

/// Writes the checked string whose opening quote is at `start`, and returns the offset after its closing quote.
pub(super) fn write(text: &str, start: usize, sink: &mut impl Sink) -> usize {
    let bytes = text.as_bytes();
    // Whatever stands unescaped in a valid text stands so in the canonical form too: it is copied in runs, quotes and all.
    let mut run = start;
    let mut at = start + 1;
    loop {
        at = end_of_plain(bytes, at);
        match bytes.get(at) {
            Some(b'\\') => {
                sink.write(&bytes[run..at]);
                let mut rest = Unescaped::at(text, at - 1);
                let before = rest.0.as_str().len();
                if let Some(character) = rest.next() {
                    write_character(character, sink);
                }
                at += before - rest.0.as_str().len();
                run = at;
            }
            // A text that was checked does not end within a string.
            _ => {
                let end = bytes.len().min(at + 1);
                sink.write(&bytes[run..end]);
                return end;
            }
        }
    }
}

/// Writes a string that is not from a text: a name or a value that a rule brings in.
pub(super) fn write_plain(plain: &str, sink: &mut impl Sink) {
    sink.write(b"\"");
    plain.chars().for_each(|character| write_character(character, sink));
    sink.write(b"\"");
}

fn write_character(character: char, sink: &mut impl Sink) {
    match character {
        '"' => sink.write(b"\\\""),
        '\\' => sink.write(b"\\\\"),
        '\u{8}' => sink.write(b"\\b"),
        '\t' => sink.write(b"\\t"),
        '\n' => sink.write(b"\\n"),
        '\u{c}' => sink.write(b"\\f"),
        '\r' => sink.write(b"\\r"),
        '\0'..'\u{20}' => {
            let code = character as u8;
            sink.write(b"\\u00");
            sink.write(&[b'0' + (code >> 4), b"0123456789abcdef"[usize::from(code & 0xF)]]);
        }
        _ => sink.write(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}
