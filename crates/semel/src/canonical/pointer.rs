//! JSON Pointers (RFC 6901): the names on the way to one value.

use super::shape::ShapeError;

/// The unescaped names that a pointer consists of, outermost first.
pub(super) fn tokens(pointer: &str) -> Result<Vec<String>, ShapeError> {
    if pointer.is_empty() {
        return Err(ShapeError::WholeBody);
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(ShapeError::NoSlash { pointer: pointer.into() });
    };
    rest.split('/')
        .map(|token| unescape(token).ok_or_else(|| ShapeError::BadTilde { pointer: pointer.into() }))
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
        assert!(matches!(tokens(""), Err(ShapeError::WholeBody)));
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
