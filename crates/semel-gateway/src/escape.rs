//! Other people's words on an operator's terminal, and on the console's pages: whatever cannot be seen, or changes how the rest is seen, is spelt out.
//!
//! Keys, notes and errors hold what clients, services and brokers chose. A control character moves the cursor; U+202E and its like turn the
//! order of what follows around, so that one account reads as another; what has no width makes two names look alike.

use std::borrow::Cow;
use std::fmt::Write as _;

/// In one line.
#[must_use]
pub fn escape(text: &str) -> String {
    spelt_out(text, |_| false)
}

/// In as many lines as it has.
#[must_use]
pub fn escape_lines(text: &str) -> String {
    spelt_out(text, |next| next == '\n')
}

fn spelt_out(text: &str, is_left: impl Fn(char) -> bool) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, next| {
        if is_hidden(next) && !is_left(next) {
            safe.extend(next.escape_default());
        } else {
            safe.push(next);
        }
        safe
    })
}

/// In JSON, or in lines of the log, which may be JSON: spelt out as JSON has it, so that a document says what it said before. Line ends, tabs
/// and the escapes of colours stay.
#[must_use]
pub fn escape_json(text: &[u8]) -> Cow<'_, [u8]> {
    let is_left = |byte: &u8| matches!(byte, b'\n' | b'\t' | 0x1b);
    if text.iter().all(|byte| matches!(byte, b' '..=b'~') || is_left(byte)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for next in String::from_utf8_lossy(text).chars() {
        if is_hidden(next) && !matches!(next, '\n' | '\t' | '\u{1b}') {
            for unit in next.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(next);
        }
    }
    Cow::Owned(safe.into_bytes())
}

/// Whether a character has no shape of its own: control and format characters, spaces that look like others, unassigned ones.
fn is_hidden(next: char) -> bool {
    match next {
        ' '..='~' => false,
        // Shapeless too, though their categories are those of letters and accents.
        '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}'
        | '\u{e0100}'..='\u{e01ef}' => true,
        // The standard library knows what can be printed. Accents it escapes where they stand first: they have a letter before them here.
        next => {
            let mut text = [b'a'; 5];
            let length = 1 + next.encode_utf8(&mut text[1..]).len();
            std::str::from_utf8(&text[..length]).is_ok_and(|text| text.escape_debug().nth(1) == Some('\\'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        for (text, shown) in [
            ("a\u{1b}[2Jb\n", "a\\u{1b}[2Jb\\n"),
            ("acct_\u{202e}001", "acct_\\u{202e}001"),
            ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("a\u{200b}b\u{200d}c\u{feff}", "a\\u{200b}b\\u{200d}c\\u{feff}"),
            ("a\u{9b}31m\u{7f}", "a\\u{9b}31m\\u{7f}"),
            ("a\u{ad}\u{a0}\u{2028}", "a\\u{ad}\\u{a0}\\u{2028}"),
            ("\u{3164}\u{fe0f}\u{e0001}", "\\u{3164}\\u{fe0f}\\u{e0001}"),
            (r#"it's "C:\x""#, r#"it's "C:\x""#),
            ("é e\u{301} नमस्ते 支払い €", "é e\u{301} नमस्ते 支払い €"),
        ] {
            assert_eq!(escape(text), shown);
        }
        assert_eq!(escape_lines("one\ntwo\u{202e}"), "one\ntwo\\u{202e}");
    }

    #[test]
    fn json_says_what_it_said_before() {
        let document =
            serde_json::json!({ "key": "a\u{202e}b\u{e0001}\u{9b}é", "note": "\u{1b}" }).to_string();
        let safe = escape_json(document.as_bytes());
        assert!(safe.windows(6).any(|window| window == b"\\u202e"));
        let text = std::str::from_utf8(&safe).unwrap();
        assert!(!text.contains(['\u{202e}', '\u{e0001}', '\u{9b}']) && text.contains('é'));
        let [before, after]: [serde_json::Value; 2] =
            [&document, text].map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(before, after);
        assert!(matches!(escape_json(b"\x1b[2mINFO\x1b[0m a line\n"), Cow::Borrowed(_)));
    }
}
