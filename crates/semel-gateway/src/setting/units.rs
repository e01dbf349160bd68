//! Durations and sizes, as people write them.

use super::invalid::InvalidValue;
use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// What people write when they mean one of the units.
const DURATION_WORDS: [(&str, &str); 14] = [
    ("msec", "ms"),
    ("millis", "ms"),
    ("milliseconds", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("min", "m"),
    ("mins", "m"),
    ("minutes", "m"),
    ("hours", "h"),
    ("hour", "h"),
    ("days", "d"),
    ("day", "d"),
];

const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

const SIZE_WORDS: [(&str, &str); 11] = [
    ("bytes", "B"),
    ("byte", "B"),
    ("k", "KiB"),
    ("kb", "KiB"),
    ("kib", "KiB"),
    ("m", "MiB"),
    ("mb", "MiB"),
    ("mib", "MiB"),
    ("g", "GiB"),
    ("gb", "GiB"),
    ("gib", "GiB"),
];

/// `250ms`, `30s`, `5m`, `24h` or `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, InvalidValue> {
    const FORM: &str = "a duration is a whole number and its unit, one of ms, s, m, h and d: \"250ms\", \"30s\", \"5m\", \"24h\", \"7d\"";
    quantity(text, &DURATION_UNITS, &DURATION_WORDS, "a duration", FORM).map(Duration::from_millis)
}

/// `100B`, `64KiB`, `1MiB` or `2GiB`.
pub(crate) fn size(text: &str) -> Result<u64, InvalidValue> {
    const FORM: &str =
        "a size is a whole number and its unit, one of B, KiB, MiB and GiB: \"100B\", \"64KiB\", \"1MiB\"";
    quantity(text, &SIZE_UNITS, &SIZE_WORDS, "a size", FORM)
}

fn quantity(
    text: &str,
    units: &[(&str, u64)],
    words: &[(&str, &str)],
    what: &str,
    form: &str,
) -> Result<u64, InvalidValue> {
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = trimmed.split_at(digits);
    if number.is_empty() {
        return Err(InvalidValue::new(format!("\"{text}\" is not {what}"), form));
    }
    if unit.is_empty() {
        let usual = if what == "a size" { "KiB" } else { "s" };
        let problem = format!("\"{text}\" has no unit");
        return Err(InvalidValue::new(
            problem,
            format!("write \"{number}{usual}\" if that is meant; {form}"),
        ));
    }
    if let Some((_, factor)) = units.iter().find(|(known, _)| *known == unit)
        && trimmed == text
    {
        let product = number.parse().ok().and_then(|number: u64| number.checked_mul(*factor));
        return product
            .ok_or_else(|| InvalidValue::new(format!("\"{text}\" is too large"), "write a smaller number"));
    }
    let word = unit.trim();
    let meant = units
        .iter()
        .map(|(known, _)| (*known, *known))
        .chain(words.iter().copied())
        .find(|(known, _)| known.eq_ignore_ascii_case(word))
        .map(|(_, unit)| unit);
    Err(match meant {
        Some(unit) => InvalidValue::new(
            format!("\"{text}\" is not how {what} is written"),
            format!("write \"{number}{unit}\""),
        ),
        None => InvalidValue::new(format!("\"{text}\" is not {what}"), form),
    })
}

/// A duration as it would be written in the file, in the largest unit that fits.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".into();
    }
    let fits = |&&(unit, factor): &&(&str, u64)| {
        // A day is "24h", as a window of one day is usually spelt.
        millis.is_multiple_of(factor) && !(unit == "d" && millis == factor)
    };
    let (unit, factor) = DURATION_UNITS.iter().rev().find(fits).copied().unwrap_or(("ms", 1));
    format!("{}{unit}", millis / factor)
}

/// A duration in words: `3 days`.
pub(crate) fn duration_in_words(duration: Duration) -> String {
    let short = show_duration(duration);
    let (number, unit) = short.split_at(short.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let word = match unit {
        "ms" => "millisecond",
        "s" => "second",
        "m" => "minute",
        "h" => "hour",
        _ => "day",
    };
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// A size as it would be written in the file, in the largest unit that fits.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let fits = |&&(_, factor): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(factor);
    let (unit, factor) = SIZE_UNITS.iter().rev().find(fits).copied().unwrap_or(("B", 1));
    format!("{}{unit}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for (text, millis) in [
            ("250ms", 250),
            ("0s", 0),
            ("1s", 1_000),
            ("90s", 90_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("36h", 129_600_000),
            ("7d", 604_800_000),
        ] {
            let read = duration(text).unwrap();
            assert_eq!(read, Duration::from_millis(millis));
            assert_eq!(show_duration(read), text);
        }
        for (text, bytes) in
            [("0B", 0), ("100B", 100), ("64KiB", 65_536), ("1MiB", 1 << 20), ("2GiB", 2 << 30)]
        {
            assert_eq!(size(text).unwrap(), bytes);
            assert_eq!(show_size(bytes), text);
        }
    }

    #[test]
    fn durations_have_words() {
        let words = |text| duration_in_words(duration(text).unwrap());
        for (text, in_words) in [
            ("1s", "1 second"),
            ("250ms", "250 milliseconds"),
            ("60s", "1 minute"),
            ("24h", "24 hours"),
            ("7d", "7 days"),
            ("0s", "0 seconds"),
        ] {
            assert_eq!(words(text), in_words);
        }
    }

    #[test]
    fn what_is_nearly_right_is_put_right() {
        for (text, right) in
            [("30 s", "30s"), ("30S", "30s"), ("5min", "5m"), ("10 seconds", "10s"), (" 30s", "30s")]
        {
            assert_eq!(duration(text).unwrap_err().cure, format!("write \"{right}\""));
        }
        for (text, right) in [("1MB", "1MiB"), ("1mib", "1MiB"), ("64k", "64KiB"), ("5 bytes", "5B")] {
            assert_eq!(size(text).unwrap_err().cure, format!("write \"{right}\""));
        }
    }

    #[test]
    fn what_is_no_quantity_is_told_how_to_be_one() {
        for text in ["", "s", "-1s", "1.5h", "1h30m", "forever", "1w"] {
            let wrong = duration(text).unwrap_err();
            assert_eq!(wrong.problem, format!("\"{text}\" is not a duration"));
            assert!(wrong.cure.contains("\"30s\""));
        }
        assert_eq!(duration("30").unwrap_err().problem, "\"30\" has no unit");
        assert_eq!(
            duration("99999999999999999999d").unwrap_err().problem,
            "\"99999999999999999999d\" is too large"
        );
    }
}
