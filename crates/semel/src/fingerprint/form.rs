//! Form pairs (`application/x-www-form-urlencoded`): the order of names does not matter, that of one name's values does.
//!
//! They are decoded lazily, to bytes: pairs of strings would take many times the memory of a body such as `a&a&a…`, and
//! decoding to text would make one of all bytes that are not UTF-8.

use super::parts::Parts;
use core::cmp::Ordering;

/// Adds the pairs, sorted by name, stably.
pub(super) fn add_pairs(parts: &mut Parts, text: &[u8]) {
    // Four bytes per pair, allotted once: the shortest pair has two bytes.
    if u32::try_from(text.len()).is_err() {
        return parts.part("too large", text);
    }
    let mut starts: Vec<u32> = Vec::with_capacity(segments(text).count());
    starts.extend(segments(text).map(|start| start as u32));
    // Where a pair starts makes an unstable sort, which takes no memory, a stable one.
    starts.sort_unstable_by(|a, b| by_name(text, *a, *b).then(a.cmp(b)));
    parts.count(starts.len());
    for start in starts {
        let (name, value) = pair(text, start);
        for half in [name, value] {
            parts.count(Decoded(half).count());
            add_decoded(parts, half);
        }
    }
}

/// Where the pairs start. As everywhere, nothing between two ampersands is no pair.
fn segments(text: &[u8]) -> impl Iterator<Item = usize> {
    (0..text.len()).filter(|at| text[*at] != b'&' && (*at == 0 || text[*at - 1] == b'&'))
}

/// Reads no further than the names differ. What a comparison took must not depend on a value, or one long value among many short pairs
/// would be read again and again.
fn by_name(text: &[u8], a: u32, b: u32) -> Ordering {
    let name = |start: u32| Name(Decoded(&text[start as usize..]));
    name(a).cmp(name(b))
}

fn pair(text: &[u8], start: u32) -> (&[u8], &[u8]) {
    let rest = &text[start as usize..];
    let segment = &rest[..rest.iter().position(|byte| *byte == b'&').unwrap_or(rest.len())];
    match segment.iter().position(|byte| *byte == b'=') {
        Some(equals) => (&segment[..equals], &segment[equals + 1..]),
        None => (segment, &[]),
    }
}

fn add_decoded(parts: &mut Parts, half: &[u8]) {
    let mut buffer = [0; 256];
    let mut filled = 0;
    for byte in Decoded(half) {
        buffer[filled] = byte;
        filled += 1;
        if filled == buffer.len() {
            parts.raw(&buffer);
            filled = 0;
        }
    }
    parts.raw(&buffer[..filled]);
}

/// The bytes that an encoded name or value means. A percent sign without two digits means itself.
struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                self.0 = &rest[2..];
                Some((high << 4 | low) as u8)
            }
            (b'+', ..) => {
                self.0 = rest;
                Some(b' ')
            }
            _ => {
                self.0 = rest;
                Some(*first)
            }
        }
    }
}

/// The bytes of a name whose end was not looked for: there is an equals sign or an ampersand after it, or nothing.
struct Name<'a>(Decoded<'a>);

impl Iterator for Name<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        self.0.0.first().filter(|byte| !matches!(byte, b'=' | b'&'))?;
        self.0.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(text: &[u8]) -> [u8; 32] {
        let mut parts = Parts::new("test", None);
        add_pairs(&mut parts, text);
        parts.finish()
    }

    /// The same by way of a crate that decodes to strings.
    fn hash_by_crate(text: &[u8]) -> [u8; 32] {
        let mut pairs: Vec<_> = form_urlencoded::parse(text).collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        let mut parts = Parts::new("test", None);
        parts.count(pairs.len());
        for (name, value) in pairs {
            parts.piece(name.as_bytes());
            parts.piece(value.as_bytes());
        }
        parts.finish()
    }

    proptest! {
        #[test]
        fn pairs_are_those_that_everybody_reads(text in "(x|y|=|&|\\+|%20|%61|%|é|%C3%A9|%26|%3D){0,40}") {
            prop_assert_eq!(hash(text.as_bytes()), hash_by_crate(text.as_bytes()));
        }

        #[test]
        fn arbitrary_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..80)) {
            hash(&text);
        }
    }

    #[test]
    fn the_order_of_names_does_not_matter_and_that_of_values_does() {
        assert_eq!(hash(b"a=1&b=2"), hash(b"b=2&a=1"));
        assert_eq!(hash(b"a=1&b=2&a=3"), hash(b"a=1&a=3&b=2"));
        assert_ne!(hash(b"a=1&a=3"), hash(b"a=3&a=1"));
        assert_eq!(hash(b"%61=x+y&&"), hash(b"a=x%20y"));
    }

    #[test]
    fn nothing_moves_between_names_values_and_pairs() {
        let texts: &[&[u8]] =
            &[b"", b"a", b"a=b", b"ab", b"=ab", b"a=&b", b"a%3Db", b"a=b&=", b"a%26b", b"a=%26b"];
        for (index, one) in texts.iter().enumerate() {
            for other in &texts[..index] {
                assert_ne!(hash(one), hash(other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_comparison_reads_names_and_no_values() {
        let mut name = Name(Decoded(b"%61+b=a long value&c=1"));
        assert_eq!(name.by_ref().collect::<Vec<_>>(), b"a b");
        assert_eq!(name.0.0, b"=a long value&c=1");
        assert_eq!(Name(Decoded(b"a%3&b")).collect::<Vec<_>>(), b"a%3");
    }

    #[test]
    fn bytes_that_are_not_utf_8_stay_apart() {
        assert_ne!(hash(b"a=%FF"), hash(b"a=%FE"));
        assert_ne!(hash(b"a=%FF"), hash(b"a=%EF%BF%BD"));
    }
}
