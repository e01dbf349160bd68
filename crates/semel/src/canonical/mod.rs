//! The canonical form of a JSON text: one spelling for all texts that mean the same, written without a tree.
//!
//! It is RFC 8785 (member names sorted by UTF-16 code units, the shortest escapes, no white space, numbers as
//! ECMAScript prints them), with one exception. RFC 8785 rounds every number to a double, so that `9007199254740992` and
//! `9007199254740993` become one; two amounts must never become one here. So where the exact decimal value of a
//! number's text is not the value that RFC 8785 would print for its double, the exact value is kept, as
//! `<sign><digits>e<exponent>`: `9007199254740993e0`, `1000000000000000055e-19`, `1e999999999` (never expanded).
//!
//! The two kinds of spelling cannot meet. Both are JSON numbers that denote exactly the value they stand for, each value
//! has one spelling in each kind, and a value is either what some double prints as, then it is spelt by RFC 8785, or it
//! is not, then it is spelt exactly. So equal spellings mean equal values, equal values mean equal spellings, and the
//! canonical form of a canonical form is itself.
//!
//! What RFC 8785 does not admit has no canonical form ([`NotCanonical`]): duplicate member names, lone surrogates,
//! whatever RFC 8259 does not admit, and, to bound the work, nesting beyond [`MAX_DEPTH`] and exponents beyond 18 digits.
//!
//! Nothing recurses and no tree is built. A first pass checks the text and notes where the member names of each object
//! begin, in their canonical order; a second pass writes, reading the text again in that order. The notes take 4 bytes
//! per member and 12 per object, and none for objects with fewer than two members.
//!
//! ```
//! let text = br#"{"b": 1.0, "a": [9007199254740993, "\u20ac"]}"#;
//! assert_eq!(semel::canonical::canonical(text)?, r#"{"a":[9007199254740993e0,"€"],"b":1}"#);
//! # Ok::<(), semel::canonical::NotCanonical>(())
//! ```

mod checked;
mod normal_form;
mod number;
mod pointer;
#[cfg(test)]
mod properties;
mod scan;
mod shape;
mod string;
#[cfg(test)]
mod tests;
mod timestamp;
#[cfg(test)]
mod vectors;
mod write;

pub use checked::{CheckedJson, Value};
pub use normal_form::NormalForm;
pub use pointer::{Pointer, PointerError};
pub use shape::{Shape, ShapeError};

/// The deepest nesting of arrays and objects that has a canonical form.
pub const MAX_DEPTH: usize = 10_000;

/// Where canonical text goes, piece by piece.
pub trait Sink {
    /// Takes the next piece.
    fn write(&mut self, piece: &[u8]);
}

impl Sink for Vec<u8> {
    fn write(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }
}

/// The canonical form of a JSON text.
///
/// # Errors
/// [`NotCanonical`] where it has none.
pub fn canonical(text: &[u8]) -> Result<String, NotCanonical> {
    let mut written = Vec::with_capacity(text.len());
    write_canonical(text, &Shape::default(), &mut written)?;
    // What is written are pieces of valid UTF-8, cut at ASCII characters.
    String::from_utf8(written)
        .map_err(|error| NotCanonical::InvalidUtf8 { at: error.utf8_error().valid_up_to() })
}

/// Writes the canonical form of what `shape` leaves of a JSON text.
///
/// # Errors
/// [`NotCanonical`] where it has none; then nothing was written.
pub fn write_canonical(text: &[u8], shape: &Shape, sink: &mut impl Sink) -> Result<(), NotCanonical> {
    let text = readable(text)?;
    let objects = scan::objects(text)?;
    write::Writer::new(text, &objects, shape, sink).run();
    Ok(())
}

/// The text, if it is one and not too large.
fn readable(text: &[u8]) -> Result<&str, NotCanonical> {
    if u32::try_from(text.len()).is_err() {
        return Err(NotCanonical::TooLarge);
    }
    core::str::from_utf8(text).map_err(|error| NotCanonical::InvalidUtf8 { at: error.valid_up_to() })
}

/// Why a text has no canonical form. Offsets are in bytes; the text itself is never repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCanonical {
    /// Not JSON as RFC 8259 defines it.
    #[error("not JSON at byte {at}")]
    Syntax {
        /// Where it stops being JSON.
        at: usize,
    },
    /// Two members of one object have the same name, once unescaped.
    #[error("the object at byte {object} has two members of the same name")]
    DuplicateMember {
        /// Where the object begins.
        object: usize,
    },
    /// An escaped UTF-16 surrogate without its other half.
    #[error("half of a surrogate pair at byte {at}")]
    LoneSurrogate {
        /// Where its escape begins.
        at: usize,
    },
    /// Not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    InvalidUtf8 {
        /// Where it stops being UTF-8.
        at: usize,
    },
    /// A number whose exponent has more than 18 digits.
    #[error("the exponent of the number at byte {at} has more than 18 digits")]
    ExponentTooLarge {
        /// Where the number begins.
        at: usize,
    },
    /// Nested beyond [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels at byte {at}")]
    TooDeep {
        /// Where the first level too many begins.
        at: usize,
    },
    /// Four gigabytes or more.
    #[error("larger than 4 GiB")]
    TooLarge,
}
