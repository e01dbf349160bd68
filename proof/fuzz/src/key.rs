//! The `Idempotency-Key` header.
//!
//! The first line of the input is the syntax (`L`enient, `S`tructured or `O`paque; in lower case with keys of 1 to 8 characters), each
//! other line is one line of the header.

use crate::independent::key::{Refused, key};
use http::HeaderValue;
use semel::key::{KeyError, KeyRules, KeySyntax};

/// What the parser makes of it is what RFC 9651 makes of it.
pub fn target(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let mode = lines.next().and_then(|line| line.first().copied()).unwrap_or(b'L');
    let syntax = match mode.to_ascii_uppercase() {
        b'S' => KeySyntax::Structured,
        b'O' => KeySyntax::Opaque,
        _ => KeySyntax::Lenient,
    };
    let rules = match mode.is_ascii_lowercase() {
        true => KeyRules { syntax, min: 1, max: 8, ..KeyRules::default() },
        false => KeyRules { syntax, ..KeyRules::default() },
    };
    let values: Vec<HeaderValue> = lines.filter_map(|line| HeaderValue::from_bytes(line).ok()).collect();
    let lines: Vec<&[u8]> = values.iter().map(HeaderValue::as_bytes).collect();
    let parsed = rules.parse(values.iter());
    match (&parsed, key(&rules, &lines)) {
        (Ok(parsed), Ok(expected)) => {
            assert_eq!(parsed.as_ref().map(|key| key.as_str()), expected.as_deref());
        }
        (Err(error), Err(refused)) => assert!(agree(*error, &refused), "{error:?} against {refused:?}"),
        (parsed, expected) => assert!(parsed.is_ok() == expected.is_ok(), "{parsed:?} against {expected:?}"),
    }
    if let Ok(Some(key)) = parsed {
        spelt_otherwise(&rules, key.as_str());
    }
}

fn agree(error: KeyError, refused: &Refused) -> bool {
    match refused {
        Refused::Empty => error == KeyError::Empty,
        Refused::SeveralLines => error == KeyError::SeveralKeys,
        Refused::NotOneString => {
            matches!(error, KeyError::BadQuotes | KeyError::SeveralKeys | KeyError::Parameters)
        }
        Refused::NotQuoted => error == KeyError::NotQuoted,
        Refused::Quote => error == KeyError::BadQuotes,
        Refused::Comma => error == KeyError::Comma,
        Refused::Semicolon => error == KeyError::Parameters,
        Refused::Invisible => error == KeyError::NotVisibleAscii,
        Refused::Short => matches!(error, KeyError::TooShort { .. }),
        Refused::Long => matches!(error, KeyError::TooLong { .. }),
    }
}

/// The key in quotes, which every syntax but the opaque one understands, names the same key.
fn spelt_otherwise(rules: &KeyRules, key: &str) {
    if rules.syntax == KeySyntax::Opaque {
        return;
    }
    let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
    let Ok(value) = HeaderValue::from_str(&quoted) else { return };
    let again = rules.parse([&value].into_iter());
    assert!(matches!(&again, Ok(Some(again)) if again.as_str() == key), "{quoted}: {again:?}");
}
