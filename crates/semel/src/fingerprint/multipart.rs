//! `multipart/form-data`, part by part: the boundary is random on every attempt, and does not count.

use memchr::memmem;
use sha2::{Digest, Sha256};

/// As RFC 2046 has it.
pub(super) const LONGEST_BOUNDARY: usize = 70;

/// The digest of the parts, in their order: the lines of each one's header and its content, byte for byte. Two bodies with one digest are
/// the same bytes but for their boundaries.
///
/// `None` where parsers could find other parts in it: text before the first delimiter or after the last, a delimiter that is not a line
/// of its own or ends in a bare LF, a bare CR or LF in a part's header, or the delimiter's text anywhere else.
///
/// Nothing is copied, and each byte is looked at a fixed number of times.
pub(super) fn digest(boundary: &[u8], body: &[u8]) -> Option<[u8; 32]> {
    let mut room = [b'-'; 2 + LONGEST_BOUNDARY];
    room.get_mut(2..2 + boundary.len())?.copy_from_slice(boundary);
    let delimiter = &room[..2 + boundary.len()];
    if !body.starts_with(delimiter) {
        return None;
    }
    let finder = memmem::Finder::new(delimiter);
    let mut hash = Sha256::new();
    // Where the current delimiter begins.
    let mut at = 0;
    loop {
        let after = at + delimiter.len();
        // Not after its end: of `-----` and the boundary `-` another delimiter begins within the first.
        let next = finder.find(&body[at + 1..]).map(|found| at + 1 + found);
        match (body[after..].strip_prefix(b"\r\n"), next) {
            (Some(_), Some(next)) => {
                let part = body.get(after + 2..next)?.strip_suffix(b"\r\n")?;
                let (header, content) = halves(part)?;
                hash.update([1]);
                for half in [header, content] {
                    hash.update((half.len() as u64).to_be_bytes());
                    hash.update(half);
                }
                at = next;
            }
            (None, None) => {
                let ends_its_line = match &body[after..] {
                    b"--" => 0,
                    b"--\r\n" => 1,
                    _ => return None,
                };
                hash.update([0, ends_its_line]);
                return Some(hash.finalize().into());
            }
            _ => return None,
        }
    }
}

/// A part's header, without the empty line that ends it, and its content.
fn halves(part: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(content) = part.strip_prefix(b"\r\n") {
        return Some((&[], content));
    }
    let end = memmem::find(part, b"\r\n\r\n")?;
    let header = &part[..end];
    (!has_bare_ends(header)).then_some((header, &part[end + 4..]))
}

/// Whether there is a CR without LF, or an LF without CR.
fn has_bare_ends(header: &[u8]) -> bool {
    let mut before = 0;
    for byte in header {
        if (before == b'\r') != (*byte == b'\n') {
            return true;
        }
        before = *byte;
    }
    before == b'\r'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(boundary: &str, body: &str) -> Option<[u8; 32]> {
        digest(boundary.as_bytes(), body.as_bytes())
    }

    #[test]
    fn parts_are_the_same_under_any_boundary() {
        for body in [
            "--B--",
            "--B--\r\n",
            "--B\r\n\r\n\r\n--B--\r\n",
            "--B\r\nA: 1\r\n\r\ncontent\r\n--B--\r\n",
            "--B\r\nA: 1\r\nC: 2\r\n\r\n\r\n\r\n--b\n\r\n--B\r\n\r\n-\r\n--B--",
        ] {
            let other = body.replace("--B", "------------------------d74496d66958873e");
            let made = hash("B", body);
            assert!(made.is_some(), "{body}");
            assert_eq!(made, hash("----------------------d74496d66958873e", &other), "{body}");
        }
    }

    #[test]
    fn what_parsers_could_read_otherwise_has_no_parts() {
        for body in [
            "",
            "--",
            "--B",
            "--B-",
            "--B---",
            "--B--\n",
            "--B--\r\nepilogue",
            "\r\n--B--",
            "preamble\r\n--B--",
            "--B\r\n--B--",
            "--B\r\n\r\n--B--",
            "--B\r\nA: 1\r\n--B--",
            "--B\r\nA: 1\r\n\r\ncontent--B--",
            "--B\r\nA: 1\r\n\r\ncontent\n--B--",
            "--B\r\nA: 1\r\n\r\ncontent\r--B--",
            "--B\nA: 1\r\n\r\ncontent\r\n--B--",
            "--B \r\nA: 1\r\n\r\ncontent\r\n--B--",
            "--B\r\nA: 1\nC: 1\r\n\r\ncontent\r\n--B--",
            "--B\r\nA: 1\rC: 1\r\n\r\ncontent\r\n--B--",
            "--B\r\nA: 1\r\r\n\r\ncontent\r\n--B--",
            "--B\r\nA: 1\r\n\r\ncontent\r\n--B",
            "--B\r\nA: 1\r\n\r\ncontent\r\n--B-- \r\n",
            "--B\r\nA: 1\r\n\r\ncontent\r\n",
            "--B\r\nA: 1--B\r\n\r\ncontent\r\n--B--",
            "--B\r\nA: 1\r\n\r\ncontent\r\n--Bx\r\n--B--",
            "--B\r\nA: 1\r\n\r\ncontent\r\n---B--\r\n--B--",
        ] {
            assert_eq!(hash("B", body), None, "{body:?}");
        }
        assert_eq!(hash("-", "-----"), None, "another delimiter within the last");
        assert_eq!(hash("B-", "--B--"), None);
    }

    #[test]
    fn no_byte_moves_between_headers_contents_and_parts() {
        let bodies = [
            "--B\r\n\r\n\r\n--B--",
            "--B\r\n\r\n\r\n--B--\r\n",
            "--B\r\n\r\nA: 1\r\n\r\nx\r\n--B--",
            "--B\r\nA: 1\r\n\r\nx\r\n--B--",
            "--B\r\nA: 1\r\n\r\n\r\nx\r\n--B--",
            "--B\r\nA: 1\r\n\r\nx\r\n\r\n--B--",
            "--B\r\nA: 1x\r\n\r\n\r\n--B--",
            "--B\r\nA: 1\r\n\r\nx\r\n--B\r\n\r\n\r\n--B--",
            "--B\r\n\r\n\r\n--B\r\nA: 1\r\n\r\nx\r\n--B--",
        ];
        for (number, one) in bodies.iter().enumerate() {
            assert!(hash("B", one).is_some(), "{one:?}");
            for other in &bodies[..number] {
                assert_ne!(hash("B", one), hash("B", other), "{one:?} {other:?}");
            }
        }
    }

    proptest! {
        /// What has a digest is made of its parts alone: the same bytes under another boundary have the same one, and others another.
        #[test]
        fn two_bodies_are_one_where_only_their_boundaries_differ(
            one in "(--B|--B|\r\n|\r\n|--|A: 1|x|-|\r|\n){0,12}",
            other in "(--B|--B|\r\n|\r\n|--|A: 1|x|-|\r|\n){0,12}",
        ) {
            if let Some(made) = hash("B", &one) {
                prop_assert_eq!(hash("another", &one.replace("--B", "--another")), Some(made));
                if let Some(others) = hash("B", &other) {
                    prop_assert_eq!(made == others, one == other);
                }
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(
            boundary in "[-aB]{1,4}",
            body in prop::collection::vec(prop::sample::select(b"-aB\r\n:".to_vec()), 0..60),
        ) {
            digest(boundary.as_bytes(), &body);
        }
    }
}
