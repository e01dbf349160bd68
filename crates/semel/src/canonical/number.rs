//! Numbers: RFC 8785 where a double prints as exactly that value, and the exact value where it does not.

use super::{NotCanonical, Sink};
use std::io::Write as _;

// No double needs more digits than these to be told from its neighbours.
const MOST_DIGITS: usize = 17;
// Beyond it (18 digits) an exponent could not be added to without overflow.
const EXPONENT_LIMIT: i64 = 1_000_000_000_000_000_000;

/// A number as its text has it: `0.<fraction>` would be `integer + fraction`, so the value is
/// `±(integer ++ fraction) × 10^exponent`.
struct Parts<'a> {
    negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    /// `None` where it has more than 18 digits.
    exponent: Option<i64>,
    end: usize,
}

/// Checks the number that starts at `start` and returns the offset after it.
pub(super) fn end_of_checked(text: &[u8], start: usize) -> Result<usize, NotCanonical> {
    let (mut at, _) = sign(text, start);
    at = match text.get(at) {
        Some(b'0') => at + 1,
        Some(b'1'..=b'9') => end_of_digits(text, at),
        _ => return Err(NotCanonical::Syntax { at }),
    };
    if text.get(at) == Some(&b'.') {
        at = some_digits(text, at + 1)?;
    }
    let Some(b'e' | b'E') = text.get(at) else {
        return Ok(at);
    };
    at = some_digits(text, at + 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-'))))?;
    // Of what was checked and no more.
    match significant(&parts(&text[..at], start)) {
        Some(Significant { exponent: None, .. }) => Err(NotCanonical::ExponentTooLarge { at: start }),
        _ => Ok(at),
    }
}

fn some_digits(text: &[u8], at: usize) -> Result<usize, NotCanonical> {
    let end = end_of_digits(text, at);
    if end > at { Ok(end) } else { Err(NotCanonical::Syntax { at }) }
}

fn sign(text: &[u8], at: usize) -> (usize, bool) {
    if text.get(at) == Some(&b'-') { (at + 1, true) } else { (at, false) }
}

fn end_of_digits(text: &[u8], at: usize) -> usize {
    at + text[at.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn parts(text: &[u8], start: usize) -> Parts<'_> {
    let (at, negative) = sign(text, start);
    let mut end = end_of_digits(text, at);
    let integer = &text[at..end];
    let mut fraction: &[u8] = &[];
    if text.get(end) == Some(&b'.') {
        let from = end + 1;
        end = end_of_digits(text, from);
        fraction = &text[from..end];
    }
    let mut exponent = Some(0);
    if let Some(b'e' | b'E') = text.get(end) {
        let signed = end + 1;
        let digits = signed + usize::from(matches!(text.get(signed), Some(b'+' | b'-')));
        end = end_of_digits(text, digits);
        exponent = small(&text[digits..end]).map(|size| if text[signed] == b'-' { -size } else { size });
    }
    Parts { negative, integer, fraction, exponent, end }
}

fn small(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |value, digit| {
        value.checked_mul(10)?.checked_add(i64::from(digit - b'0')).filter(|value| *value < EXPONENT_LIMIT)
    })
}

/// The digits from the first that is not zero to the last, in the one or two pieces that a decimal point leaves, and
/// the power of ten that the last of them counts.
struct Significant<'a> {
    head: &'a [u8],
    tail: &'a [u8],
    /// `None` where it does not fit in 18 digits.
    exponent: Option<i64>,
}

/// `None` is zero, whatever its sign and exponent.
fn significant<'a>(parts: &Parts<'a>) -> Option<Significant<'a>> {
    let head = without_leading_zeros(parts.integer);
    let leading = if head.is_empty() { without_leading_zeros(parts.fraction) } else { parts.fraction };
    let tail = without_trailing_zeros(leading);
    let mut shift =
        -i64::try_from(parts.fraction.len()).ok()? + i64::try_from(leading.len() - tail.len()).ok()?;
    let mut head = head;
    if tail.is_empty() {
        let trimmed = without_trailing_zeros(head);
        shift += i64::try_from(head.len() - trimmed.len()).ok()?;
        head = trimmed;
        if head.is_empty() {
            return None;
        }
    }
    let exponent =
        parts.exponent.map(|exponent| exponent + shift).filter(|exponent| exponent.abs() < EXPONENT_LIMIT);
    Some(Significant { head, tail, exponent })
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|digit| **digit == b'0').count()..]
}

fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    &digits[..digits.len() - digits.iter().rev().take_while(|digit| **digit == b'0').count()]
}

/// Writes the checked number that starts at `start` and returns the offset after it.
pub(super) fn write(text: &[u8], start: usize, sink: &mut impl Sink) -> usize {
    let parts = parts(text, start);
    let Some(number) = significant(&parts) else {
        sink.write(b"0");
        return parts.end;
    };
    // A number that was checked has an exponent.
    let exponent = number.exponent.unwrap_or_default();
    if parts.negative {
        sink.write(b"-");
    }
    if prints_as_it_stands(&parts) {
        sink.write(parts.integer);
        let fraction = without_trailing_zeros(parts.fraction);
        if !fraction.is_empty() {
            sink.write(b".");
            sink.write(fraction);
        }
        return parts.end;
    }
    let mut buffer = ryu_js::Buffer::new();
    match printed_as_double(&number, exponent, &mut buffer) {
        Some(printed) => sink.write(printed.as_bytes()),
        None => {
            sink.write(number.head);
            sink.write(number.tail);
            sink.write(format!("e{exponent}").as_bytes());
        }
    }
    parts.end
}

/// Whether RFC 8785 prints the number as its text has it, but for zeros at the end of the fraction. Most numbers are so: two decimals
/// of up to 15 digits never have the same double, so the shortest decimal of a double that has one of these is this one. Below a
/// millionth there is an exponent.
fn prints_as_it_stands(parts: &Parts<'_>) -> bool {
    parts.exponent == Some(0)
        && parts.integer.len() + parts.fraction.len() <= 15
        && !(parts.integer == b"0" && parts.fraction.starts_with(b"000000"))
}

/// What RFC 8785 prints for the nearest double, if that is the very same value.
fn printed_as_double<'b>(
    number: &Significant<'_>,
    exponent: i64,
    buffer: &'b mut ryu_js::Buffer,
) -> Option<&'b str> {
    let digits = number.head.len() + number.tail.len();
    if digits > MOST_DIGITS || exponent.abs() > 400 {
        return None;
    }
    let mut decimal = [0; MOST_DIGITS + "e-400".len()];
    let mut rest = &mut decimal[..];
    rest.write_all(number.head).ok()?;
    rest.write_all(number.tail).ok()?;
    write!(rest, "e{exponent}").ok()?;
    let left = rest.len();
    let double: f64 = core::str::from_utf8(&decimal[..decimal.len() - left]).ok()?.parse().ok()?;
    if !double.is_finite() || double == 0.0 {
        return None;
    }
    let printed = buffer.format_finite(double);
    let parts = parts(printed.as_bytes(), 0);
    let same = significant(&parts).is_some_and(|back| {
        back.exponent == Some(exponent)
            && back.head.iter().chain(back.tail).eq(number.head.iter().chain(number.tail))
    });
    same.then_some(printed)
}
