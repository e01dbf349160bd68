//! The ways in which one path can be spelt, as far as services are known to see through them.
//!
//! A service may take `//payments`, `/x/../payments`, `/%70ayments`, `/payments/`, `/Payments`, `/payments;v=1`, `/payments%20` or
//! `/payments%2F1` for one of its routes; frameworks differ, and the gateway cannot know. So there are three rules:
//!
//! - [`legible`]: characters that no client sends on purpose, and some services drop, are refused for every request;
//! - [`readings`]: what a declared route is compared with, apart from the path as it is written;
//! - [`is_canonical`]: what a path has to look like where nothing but the path itself names the operation.

use std::borrow::Cow;
use std::str::from_utf8;

/// How often a path is decoded, at the most. Services decode once; behind a proxy, or by mistake, twice.
const DEPTH: usize = 3;

/// What makes a path illegible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Illegible {
    /// A control character or a line separator, NUL among them: frameworks end a path there, or pass over one at its end.
    ControlCharacter,
    /// Bytes that are not UTF-8: frameworks drop them, or take them for other characters.
    NotUtf8,
}

/// Whether a path is text that a service cannot but take for what it is.
///
/// Control characters are looked for however often the path was encoded. What comes out of a second decoding need not be UTF-8: `%25ab` is
/// how `%ab` is written.
pub(crate) fn legible(path: &str) -> Result<(), Illegible> {
    if path.bytes().all(|byte| byte != b'%' && byte < 0x7f) {
        return Ok(());
    }
    let mut text = Cow::Borrowed(path.as_bytes());
    for depth in 0..=DEPTH {
        let has_control = match from_utf8(&text) {
            Ok(text) => text.chars().any(|next| next.is_control() || matches!(next, '\u{2028}' | '\u{2029}')),
            Err(_) if depth == 1 => return Err(Illegible::NotUtf8),
            Err(_) => text.iter().any(u8::is_ascii_control),
        };
        if has_control {
            return Err(Illegible::ControlCharacter);
        }
        match decoded(&text) {
            Some(next) => text = Cow::Owned(next),
            None => break,
        }
    }
    Ok(())
}

/// Whether there is one way alone to spell a path, but for capital letters, a slash at the end, and reserved characters such as `:`,
/// which may be encoded or not: segments that are not empty, no dots that lead elsewhere, and percent-encoding, in capital letters, of
/// nothing but what needs it.
pub(super) fn is_canonical(path: &str) -> bool {
    let Some(inner) = path.strip_prefix('/') else {
        return false;
    };
    let mut segments = inner.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        let fits = match segment {
            "" => is_last,
            segment => is_canonical_segment(segment.as_bytes()),
        };
        if !fits {
            return false;
        }
    }
    true
}

fn is_canonical_segment(segment: &[u8]) -> bool {
    let mut rest = segment;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'%' => match after {
                [high @ (b'0'..=b'9' | b'A'..=b'F'), low @ (b'0'..=b'9' | b'A'..=b'F'), after @ ..] => {
                    let is_twice =
                        matches!(after, [high, low, ..] if hex(*high).is_some() && hex(*low).is_some());
                    match hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low) {
                        Some(b'%') if !is_twice => after,
                        Some(b'%' | b'/' | b'\\' | b';' | b'?' | b'#') | None => return false,
                        Some(byte) if is_unreserved(byte) || byte.is_ascii_control() => return false,
                        Some(_) => after,
                    }
                }
                _ => return false,
            },
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b'=' | b':' | b'@' => after,
            byte if is_unreserved(byte) => after,
            _ => return false,
        };
    }
    // `.`, `..`, and what frameworks cut off the end of a segment.
    !matches!(segment, b"." | b"..")
        && (!segment.ends_with(b".") || segment.iter().all(|&byte| byte == b'.'))
        && decoded(segment).is_none_or(|decoded| trimmed(&decoded).len() == decoded.len())
}

/// The characters that RFC 3986 says not to encode.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a segment is `.` or `..`, encoded or not.
pub(super) fn is_dots(segment: &str) -> bool {
    // Most segments begin otherwise.
    segment.starts_with(['.', '%', ' ']) && matches!(&*plain_literal(segment), b"." | b"..")
}

/// Whether a path has nothing in it that could be spelt otherwise, but for upper and lower case.
pub(super) fn is_plain(path: &str) -> bool {
    let mut before = 0;
    let usual = path.bytes().all(|byte| {
        let odd = matches!(byte, b'%' | b';' | b'\\' | 0x7f..)
            || before == b'/' && matches!(byte, b'/' | b'.')
            || before == b'.' && byte == b'/';
        before = byte;
        !odd
    });
    usual && (path == "/" || !path.ends_with(['/', '.']))
}

/// The segments of a path in plain spelling.
pub(super) type Reading<'p> = Vec<Cow<'p, [u8]>>;

/// Calls `judge` with every way to read a path, until it says yes: decoded before it is split into segments or after, once or more
/// often, and cut off or not at what looks like a query then.
pub(super) fn any_reading(path: &str, mut judge: impl FnMut(&Reading<'_>) -> bool) -> bool {
    let mut levels = vec![Cow::Borrowed(path.as_bytes())];
    while levels.len() <= DEPTH
        && let Some(next) = levels.last().and_then(|level| decoded(level))
    {
        levels.push(Cow::Owned(next));
    }
    levels.iter().enumerate().any(|(depth, text)| {
        let cut = text.iter().position(|byte| matches!(byte, b'?' | b'#'));
        let texts = [Some(&**text), cut.map(|at| &text[..at])];
        (0..levels.len() - depth).any(|more| {
            let mut texts = texts.into_iter().flatten();
            texts.any(|text| judge(&segments(text, more)))
        })
    })
}

/// The segments of a text, each decoded so many times more.
fn segments(text: &[u8], times: usize) -> Reading<'_> {
    let mut segments = Vec::new();
    for segment in text.split(|byte| matches!(byte, b'/' | b'\\')) {
        let mut segment = Cow::Borrowed(segment);
        for _ in 0..times {
            match decoded(&segment) {
                Some(next) => segment = Cow::Owned(next),
                None => break,
            }
        }
        let segment = plain(segment);
        match &*segment {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    segments
}

/// A segment of a pattern, decoded and in plain spelling.
pub(super) fn plain_literal(segment: &str) -> Vec<u8> {
    let decoded = decoded(segment.as_bytes()).map_or(Cow::Borrowed(segment.as_bytes()), Cow::Owned);
    plain(decoded).into_owned()
}

/// A segment without its parameters, without what frameworks cut off its ends, and without letters that only differ by case from
/// those of ASCII.
fn plain(segment: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if segment.iter().all(|&byte| is_unreserved(byte)) && !segment.ends_with(b".") {
        return segment;
    }
    let without_parameters = segment.split(|&byte| byte == b';').next().unwrap_or_default();
    let plain = trimmed(without_parameters);
    let plain = match plain.iter().rposition(|&byte| byte != b'.') {
        Some(last) => &plain[..=last],
        // Dots alone are not cut off: `.` and `..` mean something, and more of them nothing.
        None => plain,
    };
    match from_utf8(plain) {
        Ok(text) if !text.is_ascii() => {
            let folded: String =
                text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
            Cow::Owned(folded.into_bytes())
        }
        _ => Cow::Owned(plain.to_vec()),
    }
}

/// Without white space at its ends.
fn trimmed(segment: &[u8]) -> &[u8] {
    from_utf8(segment).map_or_else(|_| segment.trim_ascii(), |text| text.trim().as_bytes())
}

/// Percent-decoded, once; `None` where there is nothing to decode.
pub(super) fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut rest = text;
    let mut decoded = Vec::new();
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        let (before, encoded) = rest.split_at(at);
        let byte = match encoded {
            [_, high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        decoded.extend_from_slice(before);
        decoded.push(byte.unwrap_or(b'%'));
        rest = &encoded[if byte.is_some() { 3 } else { 1 }..];
    }
    decoded.extend_from_slice(rest);
    (decoded.len() < text.len()).then_some(decoded)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_as(path: &str, segments: &[&str]) -> bool {
        any_reading(path, |reading| {
            reading.iter().map(|segment| &**segment).eq(segments.iter().map(|s| s.as_bytes()))
        })
    }

    #[test]
    fn every_spelling_leads_to_the_plain_one() {
        for path in [
            "/payments/1",
            "//payments///1",
            "/payments/1/",
            "/./payments/./1",
            "/x/../payments/1",
            "/x/%2e%2E/payments/1",
            "/x/..;a=b/payments/1",
            "/../payments/1",
            "/%70ayment%73/1",
            "/payments;v=1/1;w",
            "/payments%3Bv/1",
            "\\payments\\1",
            "/payments%2F1",
            "/payments%5c1",
            "/payments%252F1",
            "/payments./1...",
            "/payments%20/%C2%A01",
            "/payments/1%3Fx=/y",
            "/payments/1%2523",
            "/payment%C5%BF/1",
        ] {
            assert!(reads_as(path, &["payments", "1"]), "{path}");
        }
        assert!(reads_as("/a%2Fb", &["a/b"]) && reads_as("/a%2Fb", &["a", "b"]));
        assert!(reads_as("/%zz/%4", &["%zz", "%4"]));
        assert!(reads_as("/../..", &[]));
        assert!(reads_as("/.../x", &["...", "x"]));
        for path in ["/paymentsx/1", "/payments/1/2", "/pay%2Bments/1", "/payments1"] {
            assert!(!reads_as(path, &["payments", "1"]), "{path}");
        }
    }

    #[test]
    fn a_usual_path_is_plain_and_needs_no_second_look() {
        for path in ["/", "/payments", "/payments/a.b-c~d/refunds", "/v1.0/x"] {
            assert!(is_plain(path) && is_canonical(path), "{path}");
        }
        for path in [
            "//",
            "/payments/",
            "/.well-known",
            "/a%20b",
            "/a;b",
            "/a\\b",
            "/a//b",
            "/../a",
            "/a./b",
            "/a.",
            "/é",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn dots_are_known_however_they_are_written() {
        for segment in [".", "..", "%2e", "%2E%2e", ".%2e", "..;x", "%2e%2e%3b", "%20.."] {
            assert!(is_dots(segment), "{segment}");
        }
        for segment in ["...", "a..", "..a", "", "%41"] {
            assert!(!is_dots(segment), "{segment}");
        }
    }

    #[test]
    fn decoding_comes_to_an_end() {
        let deep = format!("/%{}41", "25".repeat(1000));
        assert_eq!(legible(&deep), Ok(()));
        assert!(!reads_as(&deep, &["A"]));
        assert_eq!(legible("/%25%32%35%30%41"), Err(Illegible::ControlCharacter));
        assert_eq!(legible("/%25ff"), Ok(()));
        assert_eq!(legible("/%ff"), Err(Illegible::NotUtf8));
    }
}
