//! Numbers with their exact decimal value, and how ECMAScript prints doubles.

use std::cmp::Ordering;

/// From here on an exponent is not spelt.
const EXPONENT_LIMIT: i128 = 1_000_000_000_000_000_000;

/// `±digits × 10^exponent`; the digits neither begin nor end with a zero, and zero has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decimal {
    negative: bool,
    digits: String,
    exponent: i128,
    /// The exponent as it was written is one that can be spelt.
    written_small: bool,
    /// It was written in digits alone.
    written_plainly: bool,
}

impl Decimal {
    /// The exponent: whether it is negative, and its digits.
    pub(crate) fn new(negative: bool, integer: &str, fraction: &str, exponent: Option<(bool, &str)>) -> Self {
        let written_plainly = !negative && fraction.is_empty() && exponent.is_none();
        let (below_one, exponent) = exponent.unwrap_or((false, "0"));
        // What does not fit into 30 digits is beyond every limit anyhow.
        let size: String = exponent.trim_start_matches('0').chars().take(30).collect();
        let size: i128 = size.parse().unwrap_or(0);
        let written = if below_one { -size } else { size };
        let all = format!("{integer}{fraction}");
        let without_zeros = all.trim_end_matches('0');
        let zeros = (all.len() - without_zeros.len()) as i128;
        let digits = without_zeros.trim_start_matches('0').to_owned();
        let written_small = size < EXPONENT_LIMIT;
        if digits.is_empty() {
            return Self { negative: false, digits, exponent: 0, written_small: true, written_plainly };
        }
        Self {
            negative,
            digits,
            exponent: written - fraction.len() as i128 + zeros,
            written_small,
            written_plainly,
        }
    }

    pub(crate) fn is_spellable(&self) -> bool {
        self.written_small && self.exponent.abs() < EXPONENT_LIMIT
    }

    /// The nearest double.
    pub(crate) fn double(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        format!("{sign}{digits}e{}", self.exponent.clamp(-100_000_000, 100_000_000))
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// Whether it is the very decimal that ECMAScript prints for this double, its nearest one.
    fn is_what_prints(&self, double: f64) -> bool {
        // No two decimals of 15 digits have one double, but where doubles have lost digits of their own.
        if self.digits.len() <= 15 && double.is_normal() {
            return true;
        }
        self.digits.len() == fewest_digits(double) && shortest(double) == (self.digits.clone(), self.exponent)
    }

    /// The byte that it is, where a byte alone is meant.
    #[cfg(feature = "records")]
    pub(crate) fn byte(&self) -> Option<u8> {
        if self.written_plainly { self.canonical().parse().ok() } else { None }
    }

    /// One of several ways to write the same value.
    pub(crate) fn spelling(&self, way: usize) -> String {
        let sign = if self.negative { "-" } else { "" };
        if self.digits.is_empty() {
            return ["0", "-0", "0.00", "0e5"][way % 4].to_owned();
        }
        let Self { digits, exponent, .. } = self;
        match way {
            // Not where it would change whether the exponent is small enough.
            0 if exponent.abs() < 1_000 => format!("{sign}0.{digits}e{}", exponent + digits.len() as i128),
            1 if exponent.abs() < 1_000 => format!("{sign}{digits}000E{}", exponent - 3),
            2 if exponent.abs() < 1_000 => format!("{sign}{digits}.0e{exponent:+}"),
            3 if (0..40).contains(exponent) => format!("{sign}{digits}{}", "0".repeat(*exponent as usize)),
            _ => format!("{sign}{digits}e{exponent}"),
        }
    }

    pub(crate) fn canonical(&self) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        let double = self.double();
        let sign = if self.negative { "-" } else { "" };
        if double.is_finite() && double != 0.0 && self.is_what_prints(double.abs()) {
            return format!("{sign}{}", as_ecmascript_writes(&self.digits, self.exponent));
        }
        format!("{sign}{}e{}", self.digits, self.exponent)
    }
}

/// The digits that ECMAScript chooses (`Number::toString`): as few as tell the double from its neighbours; of these the nearest to it;
/// of two as near the even one.
fn shortest(double: f64) -> (String, i128) {
    let count = fewest_digits(double);
    let exact = exactly(double);
    // Rounded down and rounded up to that many digits, the nearest is one of the two that mean this very double.
    let mut candidates: Vec<(u64, i128)> = Vec::new();
    let head: u64 = exact.0[..count.min(exact.0.len())].parse().unwrap_or(0);
    let missing = count.saturating_sub(exact.0.len()) as u32;
    let low = head * 10_u64.pow(missing);
    let exponent = exact.1 + exact.0.len() as i128 - count as i128;
    for digits in [low, low + 1] {
        if format!("{digits}e{exponent}").parse() == Ok(double) {
            candidates.push((digits, exponent));
        }
    }
    candidates.sort_by(|one, other| {
        let distance = |candidate: &(u64, i128)| difference(&exact, &(candidate.0.to_string(), candidate.1));
        compare(&distance(one), &distance(other)).then((one.0 % 2).cmp(&(other.0 % 2)))
    });
    let (digits, mut exponent) = candidates.first().copied().unwrap_or((low, exponent));
    let mut digits = digits.to_string();
    while digits.len() > 1 && digits.ends_with('0') {
        digits.pop();
        exponent += 1;
    }
    (digits, exponent)
}

/// How many digits tell the double from its neighbours. Rust finds as many as ECMAScript, if not always the same ones.
fn fewest_digits(double: f64) -> usize {
    let found = format!("{double:e}");
    let (mantissa, _) = found.split_once('e').unwrap_or((&found, "0"));
    mantissa.chars().filter(char::is_ascii_digit).count()
}

/// All digits of a double, and the power of ten that the last of them counts.
fn exactly(double: f64) -> (String, i128) {
    // No double has more significant digits than these.
    let written = format!("{double:.766e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i128 = exponent.parse().unwrap_or(0);
    let kept = digits.trim_end_matches('0');
    (kept.to_owned(), exponent - (kept.len() as i128 - 1))
}

/// How far apart two numbers are.
fn difference(one: &(String, i128), other: &(String, i128)) -> (String, i128) {
    let least = one.1.min(other.1);
    let aligned = |number: &(String, i128)| -> Vec<i16> {
        let zeros = usize::try_from(number.1 - least).unwrap_or(0);
        number.0.bytes().map(|digit| i16::from(digit - b'0')).chain(std::iter::repeat_n(0, zeros)).collect()
    };
    let (mut one, mut other) = (aligned(one), aligned(other));
    let length = one.len().max(other.len());
    for number in [&mut one, &mut other] {
        let missing = length - number.len();
        number.splice(0..0, std::iter::repeat_n(0, missing));
    }
    if one < other {
        std::mem::swap(&mut one, &mut other);
    }
    let mut borrowed = 0;
    let mut digits = vec![0; length];
    for at in (0..length).rev() {
        let digit = one[at] - other[at] - borrowed;
        borrowed = i16::from(digit < 0);
        digits[at] = digit + 10 * borrowed;
    }
    (digits.iter().map(|digit| char::from(b'0' + *digit as u8)).collect(), least)
}

fn compare(one: &(String, i128), other: &(String, i128)) -> Ordering {
    let least = one.1.min(other.1);
    let aligned = |number: &(String, i128)| {
        let zeros = usize::try_from(number.1 - least).unwrap_or(0);
        format!("{}{}", number.0, "0".repeat(zeros)).trim_start_matches('0').to_owned()
    };
    let (one, other) = (aligned(one), aligned(other));
    one.len().cmp(&other.len()).then(one.cmp(&other))
}

/// `Number::toString` of ECMAScript, from its digits on.
fn as_ecmascript_writes(digits: &str, exponent: i128) -> String {
    let count = digits.len() as i128;
    // The value is 0.digits × 10^point.
    let point = count + exponent;
    let zeros = |count: i128| "0".repeat(usize::try_from(count).unwrap_or(0));
    if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, rest) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{whole}.{rest}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{:+}", point - 1)
    }
}
