//! The first pass: checks a text against RFC 8259, and notes the members of its objects in canonical order.

use super::string::{self, Unescaped};
use super::{MAX_DEPTH, NotCanonical, number};
use core::cmp::Ordering;

/// An object with two members or more; smaller ones need no notes.
struct Object {
    start: u32,
    first: u32,
    members: u32,
}

/// The objects of a text.
pub(super) struct Objects {
    /// By where they start.
    objects: Vec<Object>,
    /// Where the names of the members start: each object's next to each other, in canonical order.
    names: Vec<u32>,
}

impl Objects {
    /// Where the names of the object at `start` are, in canonical order, if it has two members or more.
    pub(super) fn names_of(&self, start: usize) -> Option<&[u32]> {
        let found = self.objects.binary_search_by(|object| (object.start as usize).cmp(&start)).ok()?;
        let Object { first, members, .. } = self.objects[found];
        self.names.get(first as usize..(first + members) as usize)
    }
}

enum Open {
    Array,
    /// Where the object starts, and how many names of outer objects were waiting then.
    Object {
        start: usize,
        outer: usize,
    },
}

enum Expect {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    CommaOrEnd,
}

/// Checks the whole text and notes its objects.
pub(super) fn objects(text: &str) -> Result<Objects, NotCanonical> {
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut waiting: Vec<u32> = Vec::new();
    let mut found = Objects { objects: Vec::new(), names: Vec::new() };
    let mut expect = Expect::Value;
    let mut at = 0;
    loop {
        at = after_space(bytes, at);
        let Some(byte) = bytes.get(at) else {
            return match expect {
                Expect::CommaOrEnd if open.is_empty() => {
                    // Inner objects end first, so they were noted first.
                    found.objects.sort_unstable_by_key(|object| object.start);
                    Ok(found)
                }
                _ => Err(NotCanonical::Syntax { at }),
            };
        };
        match (&expect, byte, open.last()) {
            (Expect::ValueOrEnd | Expect::CommaOrEnd, b']', Some(Open::Array)) => {
                open.pop();
                expect = Expect::CommaOrEnd;
                at += 1;
            }
            (Expect::NameOrEnd | Expect::CommaOrEnd, b'}', Some(&Open::Object { start, outer })) => {
                found.note(text, start, &mut waiting[outer..])?;
                waiting.truncate(outer);
                open.pop();
                expect = Expect::CommaOrEnd;
                at += 1;
            }
            (Expect::CommaOrEnd, b',', Some(container)) => {
                expect = if matches!(container, Open::Array) { Expect::Value } else { Expect::Name };
                at += 1;
            }
            (Expect::Name | Expect::NameOrEnd, b'"', _) => {
                push(&mut waiting, at as u32);
                at = after_space(bytes, string::end_of_checked(bytes, at)?);
                if bytes.get(at) != Some(&b':') {
                    return Err(NotCanonical::Syntax { at });
                }
                expect = Expect::Value;
                at += 1;
            }
            (Expect::Value | Expect::ValueOrEnd, b'[' | b'{', _) => {
                if open.len() == MAX_DEPTH {
                    return Err(NotCanonical::TooDeep { at });
                }
                if *byte == b'[' {
                    open.push(Open::Array);
                    expect = Expect::ValueOrEnd;
                } else {
                    open.push(Open::Object { start: at, outer: waiting.len() });
                    expect = Expect::NameOrEnd;
                }
                at += 1;
            }
            (Expect::Value | Expect::ValueOrEnd, _, _) => {
                at = end_of_scalar(bytes, at)?;
                expect = Expect::CommaOrEnd;
            }
            _ => return Err(NotCanonical::Syntax { at }),
        }
    }
}

impl Objects {
    fn note(&mut self, text: &str, start: usize, names: &mut [u32]) -> Result<(), NotCanonical> {
        if names.len() < 2 {
            return Ok(());
        }
        // Unstable sorting takes no memory, and equal names are refused anyway.
        names.sort_unstable_by(|a, b| order(text, *a, *b));
        if names.windows(2).any(|pair| order(text, pair[0], pair[1]).is_eq()) {
            return Err(NotCanonical::DuplicateMember { object: start });
        }
        // All of these fit: a text of up to 4 GiB has fewer members than bytes.
        let object =
            Object { start: start as u32, first: self.names.len() as u32, members: names.len() as u32 };
        push(&mut self.objects, object);
        self.names.reserve_exact(growth(&self.names, names.len()));
        self.names.extend_from_slice(names);
        Ok(())
    }
}

fn order(text: &str, a: u32, b: u32) -> Ordering {
    let bytes = text.as_bytes();
    let (mut a, mut b) = (a as usize, b as usize);
    // Plain ASCII, which most names are, needs no decoding.
    let plain = |byte: u8| byte.is_ascii() && byte != b'"' && byte != b'\\';
    while let (Some(&left), Some(&right)) = (bytes.get(a + 1), bytes.get(b + 1)) {
        if !(plain(left) && plain(right)) {
            break;
        }
        if left != right {
            return left.cmp(&right);
        }
        (a, b) = (a + 1, b + 1);
    }
    string::order(Unescaped::at(text, a), Unescaped::at(text, b))
}

// Notes grow by half instead of doubling: at the moment of growth old and new are both there, and the notes of the
// worst body must stay a small multiple of it.
fn push<T>(notes: &mut Vec<T>, note: T) {
    notes.reserve_exact(growth(notes, 1));
    notes.push(note);
}

fn growth<T>(notes: &Vec<T>, more: usize) -> usize {
    if notes.capacity() - notes.len() >= more { 0 } else { more.max(notes.len() / 2).max(16) }
}

/// The offset of the first byte from `at` that is not white space.
pub(super) fn after_space(text: &[u8], at: usize) -> usize {
    let mut at = at;
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

fn end_of_scalar(text: &[u8], at: usize) -> Result<usize, NotCanonical> {
    match text[at] {
        b'"' => string::end_of_checked(text, at),
        b'-' | b'0'..=b'9' => number::end_of_checked(text, at),
        _ => [&b"true"[..], b"false", b"null"]
            .into_iter()
            .find(|literal| text[at..].starts_with(literal))
            .map(|literal| at + literal.len())
            .ok_or(NotCanonical::Syntax { at }),
    }
}

/// The offset after the value at `at`, in a text that has been checked.
pub(super) fn end_of_value(text: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = at;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = string::end(text, at),
            b'[' | b'{' => {
                depth += 1;
                at += 1;
            }
            b']' | b'}' => {
                // The end of the value's container, where the value is a number at its end.
                if depth == 0 {
                    return at;
                }
                depth -= 1;
                at += 1;
            }
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    at
}
