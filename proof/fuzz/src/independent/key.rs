//! Which key the lines of an `Idempotency-Key` header name.

use semel::key::{KeyRules, KeySyntax};

/// Why a key is refused. Reasons that depend on how far a structured field was read are one here.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Empty,
    SeveralLines,
    NotOneString,
    NotQuoted,
    Quote,
    Comma,
    Semicolon,
    Invisible,
    Short,
    Long,
}

/// The key.
pub(crate) fn key(rules: &KeyRules, lines: &[&[u8]]) -> Result<Option<String>, Refused> {
    let line = match lines {
        [] => return Ok(None),
        [line] => *line,
        _ => return Err(Refused::SeveralLines),
    };
    let text: String = line.iter().map(|byte| char::from(*byte)).collect();
    let inner = text.trim_matches([' ', '\t']);
    let key = if rules.syntax == KeySyntax::Opaque {
        text.clone()
    } else if inner.is_empty() {
        return Err(Refused::Empty);
    } else if let Some(rest) = inner.strip_prefix('"') {
        string(rest).ok_or(Refused::NotOneString)?
    } else if rules.syntax == KeySyntax::Structured {
        return Err(Refused::NotQuoted);
    } else {
        for (special, refused) in [('"', Refused::Quote), (',', Refused::Comma), (';', Refused::Semicolon)] {
            if inner.contains(special) {
                return Err(refused);
            }
        }
        inner.to_owned()
    };
    let length = key.chars().count();
    if key.is_empty() {
        Err(Refused::Empty)
    } else if key.chars().any(|character| !('!'..='~').contains(&character)) {
        Err(Refused::Invisible)
    } else if length < rules.min {
        Err(Refused::Short)
    } else if length > rules.max {
        Err(Refused::Long)
    } else {
        Ok(Some(key))
    }
}

/// What a structured-field String (RFC 9651) means, from behind its first quote on; nothing may follow it.
fn string(rest: &str) -> Option<String> {
    let mut meant = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next()? {
            '"' => break,
            '\\' => match characters.next()? {
                escaped @ ('"' | '\\') => meant.push(escaped),
                _ => return None,
            },
            plain @ ' '..='~' => meant.push(plain),
            _ => return None,
        }
    }
    characters.next().is_none().then_some(meant)
}
