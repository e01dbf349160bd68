//! Form pairs (`application/x-www-form-urlencoded`), in bodies and in queries.
//!
//! They are decoded lazily, to bytes: pairs of strings would take many times the memory of a body such as `a&a&a…`, and
//! decoding to text would make one of all bytes that are not UTF-8.

use super::parts::Parts;
use core::cmp::Ordering;

/// Adds the pairs so that two forms are one only where every service reads them alike.
///
/// Pairs are sorted where no service looks at their order: names differ (in more than their case, which ASP.NET ignores) and are made of
/// letters, digits, `_` and `-` alone. Of `items[][sku]` and `a.b` services make lists and objects as the pairs come, and PHP makes `a_b`
/// of `a.b`, `a b` and others. All other pairs go by their order. What is not even read as the same pairs by everybody, with a stray
/// percent sign or a semicolon (which some parsers take for a separator), is compared by bytes.
pub(super) fn add_form(parts: &mut Parts, text: &[u8]) {
    if is_unclean(text) || u32::try_from(text.len()).is_err() {
        return parts.part("as sent", text);
    }
    // Four bytes per pair, allotted once: the shortest pair has two bytes.
    let mut starts: Vec<u32> = Vec::with_capacity(segments(text).count());
    starts.extend(segments(text).map(|start| start as u32));
    if sort_plain(text, &mut starts) {
        parts.piece(b"by name");
    } else {
        // Where they start is their order.
        starts.sort_unstable();
        parts.piece(b"in order");
    }
    parts.count(starts.len());
    for start in starts {
        let (name, value) = pair(text, start);
        // `a` is nothing to some services, and `a=` an empty text.
        let has_value = text.get(start as usize + name.len()) == Some(&b'=');
        parts.raw(&[u8::from(has_value)]);
        for half in [name, value] {
            parts.count(Decoded(half).count());
            add_decoded(parts, half);
        }
    }
}

/// Whether there is a percent sign without two digits, or a semicolon.
fn is_unclean(text: &[u8]) -> bool {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_hexdigit);
    text.iter().enumerate().any(|(at, byte)| match byte {
        b'%' => !is_digit(at + 1) || !is_digit(at + 2),
        b';' => true,
        _ => false,
    })
}

/// Sorts the pairs by name, without case, if all names are plain and differ so.
fn sort_plain(text: &[u8], starts: &mut [u32]) -> bool {
    let name = |start: &u32| Name(Decoded(&text[*start as usize..]));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !starts.iter().all(|start| name(start).all(is_plain)) {
        return false;
    }
    let without_case = |a: &u32, b: &u32| {
        let lower_case = |start| name(start).map(|byte: u8| byte.to_ascii_lowercase());
        lower_case(a).cmp(lower_case(b))
    };
    starts.sort_unstable_by(without_case);
    starts.windows(2).all(|pair| without_case(&pair[0], &pair[1]) == Ordering::Less)
}

/// Adds the pairs, sorted by name, stably: as the first version of recipes has it.
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

    fn hash_by(add: fn(&mut Parts, &[u8]), text: &[u8]) -> [u8; 32] {
        let mut parts = Parts::new("test", None);
        add(&mut parts, text);
        parts.finish()
    }

    fn hash(text: &[u8]) -> [u8; 32] {
        hash_by(add_form, text)
    }

    fn hash_1(text: &[u8]) -> [u8; 32] {
        hash_by(add_pairs, text)
    }

    /// The first version by way of a crate that decodes to strings.
    fn hash_1_by_crate(text: &[u8]) -> [u8; 32] {
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
            prop_assert_eq!(hash_1(text.as_bytes()), hash_1_by_crate(text.as_bytes()));
        }

        /// Whatever is one form here is one to a reader that keeps the order, once its pairs are sorted; and to be one in another
        /// order, its names must be plain and differ.
        #[test]
        fn one_form_is_read_alike_by_everybody(
            one in "(x|Y|_|-|=|&|&|\\+|%20|%61|é|\\[|\\.|%26|%3D){0,12}",
            other in "(x|Y|_|-|=|&|&|\\+|%20|%61|é|\\[|\\.|%26|%3D){0,12}",
        ) {
            let read = |text: &str| {
                let pairs = form_urlencoded::parse(text.as_bytes());
                pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect::<Vec<_>>()
            };
            for other in [other.as_str(), &one.split('&').rev().collect::<Vec<_>>().join("&")] {
                let (mut ones, mut others) = (read(&one), read(other));
                let in_order = ones == others;
                ones.sort();
                others.sort();
                let is_one = hash(one.as_bytes()) == hash(other.as_bytes());
                prop_assert!(!is_one || ones == others, "{:?} {:?}", one, other);
                let mut names: Vec<_> = ones.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
                names.dedup();
                let plain = names.len() == ones.len()
                    && names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
                prop_assert!(!is_one || in_order || plain, "{:?} {:?}", one, other);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..80)) {
            hash(&text);
            hash_1(&text);
        }
    }

    #[test]
    fn to_the_first_version_the_order_of_names_does_not_matter_and_that_of_values_does() {
        assert_eq!(hash_1(b"a=1&b=2"), hash_1(b"b=2&a=1"));
        assert_eq!(hash_1(b"a=1&b=2&a=3"), hash_1(b"a=1&a=3&b=2"));
        assert_ne!(hash_1(b"a=1&a=3"), hash_1(b"a=3&a=1"));
        assert_eq!(hash_1(b"%61=x+y&&"), hash_1(b"a=x%20y"));
    }

    #[test]
    fn the_order_counts_unless_all_names_are_plain_and_differ() {
        for (one, other) in [
            ("a=1&b=2", "b=2&a=1"),
            ("a_b=1&a-b=2&%39=", "9=&a-b=2&a_b=1"),
            ("%61=x+y&&b", "b&a=x%20y&"),
            ("a=[1].x&b=%26", "b=%26&a=[1].x"),
        ] {
            assert_eq!(hash(one.as_bytes()), hash(other.as_bytes()), "{one}");
        }
        for (one, other) in [
            ("a=1&b=2&a=3", "a=1&a=3&b=2"),
            ("a=1&A=2", "A=2&a=1"),
            ("i[][s]=A&i[][q]=9&i[][s]=B", "i[][s]=A&i[][s]=B&i[][q]=9"),
            ("a[x]=1&b=2", "b=2&a[x]=1"),
            ("a%5Bx%5D=1&b=2", "b=2&a%5Bx%5D=1"),
            ("a.b=1&c=2", "c=2&a.b=1"),
            ("a+b=1&c=2", "c=2&a+b=1"),
            ("\u{e9}=1&c=2", "c=2&\u{e9}=1"),
            ("a=1;b=2&c=3", "c=3&a=1;b=2"),
            ("a", "a="),
            ("a=%", "a=%25"),
            ("a=%4&b=1", "b=1&a=%4"),
        ] {
            assert_ne!(hash(one.as_bytes()), hash(other.as_bytes()), "{one}");
            assert_eq!(hash(one.as_bytes()), hash(one.as_bytes()));
        }
        assert_eq!(hash(b"a[]=x+y&a[]=%62&&"), hash(b"a%5B%5d=x%20y&a[]=b"), "one order, another spelling");
    }

    #[test]
    fn nothing_moves_between_names_values_and_pairs() {
        let texts: &[&[u8]] =
            &[b"", b"a", b"a=b", b"ab", b"=ab", b"a=&b", b"a%3Db", b"a=b&=", b"a%26b", b"a=%26b"];
        for (index, one) in texts.iter().enumerate() {
            for other in &texts[..index] {
                assert_ne!(hash(one), hash(other), "{one:?} {other:?}");
                assert_ne!(hash_1(one), hash_1(other), "{one:?} {other:?}");
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
