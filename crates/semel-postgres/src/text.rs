//! Text as PostgreSQL can hold it: everything but the character NUL.
//!
//! Keys that come by HTTP never hold one; tenants, notes and error codes that an application makes up may. They are written
//! as U+0001 `0`, and U+0001 itself as U+0001 `1`. All other text, which is all text there is in practice, stays as it is.

use semel::RecordKey;
use std::borrow::Cow;

const ESCAPE: char = '\u{1}';

/// The text as it is stored.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte <= 1) {
        return Cow::Borrowed(text);
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => stored.extend([ESCAPE, '0']),
            ESCAPE => stored.extend([ESCAPE, '1']),
            other => stored.push(other),
        }
    }
    Cow::Owned(stored)
}

/// The operation of a key, with its scope, as it is stored.
pub(crate) fn stored_operation(key: &RecordKey) -> Cow<'_, str> {
    match key.stored_operation() {
        Cow::Borrowed(operation) => stored(operation),
        Cow::Owned(operation) => Cow::Owned(stored(&operation).into_owned()),
    }
}

/// The text that is stored so; `None`: nothing is.
pub(crate) fn original(stored: &str) -> Option<String> {
    if !stored.contains(ESCAPE) {
        return Some(stored.into());
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            ESCAPE => match characters.next()? {
                '0' => '\0',
                '1' => ESCAPE,
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_no_two_are_stored_alike() {
        let texts = ["", "key", "\0", "\u{1}", "\u{1}0", "\0\u{1}1", "a\0b\u{1}c", "\u{1f512}"];
        let all: Vec<_> = texts.iter().map(|text| stored(text)).collect();
        for (at, text) in texts.iter().enumerate() {
            assert!(!all[at].contains('\0'));
            assert_eq!(original(&all[at]).as_deref(), Some(*text));
            assert_eq!(all.iter().filter(|other| **other == all[at]).count(), 1, "{text:?}");
        }
    }

    #[test]
    fn what_no_text_is_stored_as_is_not_read() {
        assert_eq!(original("\u{1}"), None);
        assert_eq!(original("a\u{1}2"), None);
    }
}
