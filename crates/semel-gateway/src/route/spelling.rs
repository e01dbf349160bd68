//! The ways in which one path can be spelt, as far as services are known to see through them.
//!
//! A service may take `//payments`, `/x/../payments`, `/%70ayments`, `/payments/`, `/Payments`, `/payments;v=1` or `/payments%2F1` for
//! one of its routes; frameworks differ, and the gateway cannot know. So it undoes all of it, and whoever would then be protected is
//! not let through unprotected.

/// Whether a segment is `.` or `..`, encoded or not.
pub(super) fn is_dots(segment: &str) -> bool {
    // `%2e%2e` is the longest spelling.
    segment.len() <= 6 && segment.starts_with(['.', '%']) && matches!(&*plain(segment), b"." | b"..")
}

/// Whether a path has nothing in it that could be spelt otherwise, but for upper and lower case.
pub(super) fn is_plain(path: &str) -> bool {
    let mut before = 0;
    let usual = path.bytes().all(|byte| {
        let odd = matches!(byte, b'%' | b';' | b'\\') || before == b'/' && matches!(byte, b'/' | b'.');
        before = byte;
        !odd
    });
    usual && (path == "/" || !path.ends_with('/'))
}

/// Whether an encoded slash parts segments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EncodedSlash {
    Parts,
    IsData,
}

/// The segments of a path with every way of spelling undone.
pub(super) fn undisguised(path: &str, slash: EncodedSlash) -> Vec<Vec<u8>> {
    let decoded;
    let path = match slash {
        EncodedSlash::IsData => path,
        EncodedSlash::Parts => {
            decoded = path.replace("%2F", "/").replace("%2f", "/").replace("%5C", "/").replace("%5c", "/");
            &decoded
        }
    };
    let mut segments = Vec::new();
    for segment in path.split(['/', '\\']) {
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

/// A segment, percent-decoded and without its parameters.
pub(super) fn plain(segment: &str) -> Vec<u8> {
    let mut rest = segment.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        decoded.push(match (byte, after) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    rest = after;
                    high << 4 | low
                }
                _ => byte,
            },
            _ => byte,
        });
    }
    if let Some(parameters) = decoded.iter().position(|&byte| byte == b';') {
        decoded.truncate(parameters);
    }
    decoded
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(undisguised(path, EncodedSlash::Parts), [&b"payments"[..], b"1"], "{path}");
        }
        assert_eq!(undisguised("/a%2Fb", EncodedSlash::IsData), [b"a/b"]);
        assert_eq!(undisguised("/%zz/%4", EncodedSlash::IsData), [&b"%zz"[..], b"%4"]);
        assert_eq!(undisguised("/../..", EncodedSlash::Parts), [[0_u8; 0]; 0]);
    }

    #[test]
    fn a_usual_path_is_plain_and_needs_no_second_look() {
        for path in ["/", "/payments", "/payments/a.b-c~d/refunds", "/v1.0/x"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["//", "/payments/", "/.well-known", "/a%20b", "/a;b", "/a\\b", "/a//b", "/../a"] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
