//! JSON Pointers (RFC 6901): the names on the way to one value.

/// Why a text is not a JSON Pointer to a part of a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointerError {
    /// The empty pointer.
    #[error("the empty JSON Pointer means the whole body: name a member, such as \"/metadata/trace_id\"")]
    WholeBody,
    /// A pointer that does not start with a slash.
    #[error(
        "\"{pointer}\" is not a JSON Pointer: it must start with a slash, such as \"/metadata/trace_id\""
    )]
    NoSlash {
        /// The pointer as given.
        pointer: String,
    },
    /// A tilde that is not part of `~0` or `~1`.
    #[error("\"{pointer}\" is not a JSON Pointer: a tilde is written ~0 and a slash within a name ~1")]
    BadTilde {
        /// The pointer as given.
        pointer: String,
    },
}

/// A JSON Pointer (RFC 6901) to a part of a text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pointer {
    text: Box<str>,
    names: Box<[String]>,
}

impl Pointer {
    /// The pointer that a text is.
    ///
    /// # Errors
    /// [`PointerError`] where the text is not a JSON Pointer, or means the whole document.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        Ok(Self { text: text.into(), names: tokens(text)?.into() })
    }

    /// The pointer as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The unescaped names, outermost first.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}

impl core::fmt::Display for Pointer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

/// The unescaped names that a pointer consists of, outermost first.
pub(super) fn tokens(pointer: &str) -> Result<Vec<String>, PointerError> {
    if pointer.is_empty() {
        return Err(PointerError::WholeBody);
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(PointerError::NoSlash { pointer: pointer.into() });
    };
    rest.split('/')
        .map(|token| unescape(token).ok_or_else(|| PointerError::BadTilde { pointer: pointer.into() }))
        .collect()
}

fn unescape(token: &str) -> Option<String> {
    let mut plain = String::with_capacity(token.len());
    let mut characters = token.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '~' => match characters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

/// The index that a name is in an array: decimal digits, without leading zeros.
pub(super) fn array_index(token: &str) -> Option<u32> {
    let plain = token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    if plain { token.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pointers_of_rfc_6901_name_what_it_says() {
        for (pointer, expected) in [
            ("/foo", &["foo"][..]),
            ("/foo/0", &["foo", "0"]),
            ("/", &[""]),
            ("/a~1b", &["a/b"]),
            ("/c%d", &["c%d"]),
            ("/m~0n", &["m~n"]),
            ("/ ", &[" "]),
            ("/~01", &["~1"]),
            ("/a//b", &["a", "", "b"]),
        ] {
            assert_eq!(tokens(pointer).unwrap(), expected, "{pointer}");
        }
    }

    #[test]
    fn what_is_no_pointer_is_refused_and_shown() {
        for pointer in ["foo", "/a~", "/a~2", "#/a", "/a/~x"] {
            assert!(tokens(pointer).unwrap_err().to_string().contains(pointer));
        }
        assert!(matches!(tokens(""), Err(PointerError::WholeBody)));
    }

    #[test]
    fn an_array_index_is_written_in_one_way_only() {
        assert_eq!(array_index("0"), Some(0));
        assert_eq!(array_index("10"), Some(10));
        for token in ["", "00", "01", "-", "+1", "-1", "1.0", "99999999999999999999"] {
            assert_eq!(array_index(token), None, "{token}");
        }
    }
}
