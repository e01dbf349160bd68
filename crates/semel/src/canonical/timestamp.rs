//! Timestamps (RFC 3339) by their instant.

/// The instant of a timestamp, written in UTC without zeros at the end of the fraction. `None` where the text is not a timestamp with one
/// instant: leap seconds, which some libraries count and others do not, the unknown offset `-00:00`, spellings beyond the RFC's, and what
/// is in no year from 0 to 9999 in UTC.
pub(super) fn in_utc(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (date_and_time, rest) = bytes.split_at_checked("0000-00-00T00:00:00".len())?;
    let fits = |at: usize, byte: &u8| match at {
        4 | 7 => *byte == b'-',
        10 => matches!(byte, b'T' | b't'),
        13 | 16 => *byte == b':',
        _ => byte.is_ascii_digit(),
    };
    if !date_and_time.iter().enumerate().all(|(at, byte)| fits(at, byte)) {
        return None;
    }
    let date = Date {
        year: number(&date_and_time[..4]),
        month: number(&date_and_time[5..7]),
        day: number(&date_and_time[8..10]),
    };
    let (hour, minute) = (number(&date_and_time[11..13]), number(&date_and_time[14..16]));
    let second = number(&date_and_time[17..]);
    if !date.exists() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, offset) = fraction(rest)?;
    let minutes = i32::from(hour * 60 + minute) - self::offset(offset)?;
    let date = match minutes {
        ..0 => date.before()?,
        0..DAY => date,
        DAY.. => date.after()?,
    };
    let (Date { year, month, day }, minutes) = (date, minutes.rem_euclid(DAY));
    let (hour, minute) = (minutes / 60, minutes % 60);
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{dot}{fraction}Z"))
}

/// Minutes of a day.
const DAY: i32 = 24 * 60;

/// The value of a few digits.
fn number(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))
}

/// The digits after the point, without zeros at their end, and what follows.
fn fraction(rest: &[u8]) -> Option<(&str, &[u8])> {
    let Some(digits) = rest.strip_prefix(b".") else { return Some(("", rest)) };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let (digits, offset) = digits.split_at(length);
    Some((core::str::from_utf8(digits).ok()?.trim_end_matches('0'), offset))
}

/// By how many minutes local time is ahead of UTC.
fn offset(text: &[u8]) -> Option<i32> {
    let &[sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = text else {
        return matches!(text, b"Z" | b"z").then_some(0);
    };
    if ![h1, h2, m1, m2].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (hours, minutes) = (number(&[h1, h2]), number(&[m1, m2]));
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ahead = i32::from(hours * 60 + minutes);
    match (sign, ahead) {
        (b'-', 0) => None,
        (b'-', _) => Some(-ahead),
        _ => Some(ahead),
    }
}

struct Date {
    year: u16,
    month: u16,
    day: u16,
}

impl Date {
    fn exists(&self) -> bool {
        (1..=12).contains(&self.month) && (1..=days_of(self.year, self.month)).contains(&self.day)
    }

    /// The day before, if its year has four digits.
    fn before(self) -> Option<Self> {
        let Self { year, month, day } = self;
        Some(match (month, day) {
            (1, 1) => Self { year: year.checked_sub(1)?, month: 12, day: 31 },
            (_, 1) => Self { year, month: month - 1, day: days_of(year, month - 1) },
            _ => Self { day: day - 1, ..self },
        })
    }

    /// The day after, if its year has four digits.
    fn after(self) -> Option<Self> {
        let Self { year, month, day } = self;
        if day < days_of(year, month) {
            return Some(Self { day: day + 1, ..self });
        }
        match month {
            12 if year < 9999 => Some(Self { year: year + 1, month: 1, day: 1 }),
            12 => None,
            _ => Some(Self { year, month: month + 1, day: 1 }),
        }
    }
}

/// In the Gregorian calendar, also before there was one.
fn days_of(year: u16, month: u16) -> u16 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::in_utc;

    #[track_caller]
    fn is(text: &str, expected: &str) {
        assert_eq!(in_utc(text).as_deref(), Some(expected), "{text}");
        assert_eq!(in_utc(expected).as_deref(), Some(expected), "{expected}");
    }

    #[test]
    fn spellings_of_one_instant_are_one() {
        for same in [
            "2026-11-01T09:00:00Z",
            "2026-11-01T09:00:00+00:00",
            "2026-11-01t09:00:00z",
            "2026-11-01T09:00:00.000Z",
            "2026-11-01T10:00:00+01:00",
            "2026-11-01T05:30:00.0-03:30",
            "2026-11-02T08:59:00+23:59",
            "2026-10-31T09:01:00-23:59",
        ] {
            is(same, "2026-11-01T09:00:00Z");
        }
        is("2026-11-01T09:00:00.1200+00:00", "2026-11-01T09:00:00.12Z");
        is("2026-11-01T09:00:00.123456789123456789123Z", "2026-11-01T09:00:00.123456789123456789123Z");
    }

    #[test]
    fn an_offset_leads_into_another_month_or_year() {
        is("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z");
        is("2023-03-01T00:30:00+01:00", "2023-02-28T23:30:00Z");
        is("2000-02-29T23:30:00-01:00", "2000-03-01T00:30:00Z");
        is("1900-02-28T23:30:00-01:00", "1900-03-01T00:30:00Z");
        is("2026-01-01T00:00:00+00:01", "2025-12-31T23:59:00Z");
        is("2026-12-31T23:59:59.9-00:01", "2027-01-01T00:00:59.9Z");
        is("2026-05-01T00:00:00+02:00", "2026-04-30T22:00:00Z");
        is("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_odd_has_no_instant_here() {
        for odd in [
            "",
            "2026-11-01",
            "2026-11-01T09:00Z",
            "2026-11-01T09:00:00",
            "2026-11-01 09:00:00Z",
            "2026-11-01T09:00:00 Z",
            " 2026-11-01T09:00:00Z",
            "2026-11-01T09:00:00Z ",
            "2026-11-01T09:00:00ZZ",
            "2026-11-01T09:00:00.Z",
            "2026-11-01T09:00:00,5Z",
            "2026-11-01T09:00:00-00:00",
            "2026-11-01T09:00:00+0000",
            "2026-11-01T09:00:00+00",
            "2026-11-01T09:00:00+24:00",
            "2026-11-01T09:00:00+00:60",
            "2026-11-01T09:00:00\u{2212}01:00",
            "2016-12-31T23:59:60Z",
            "2026-11-01T24:00:00Z",
            "2026-11-01T09:60:00Z",
            "2026-11-31T09:00:00Z",
            "2026-02-29T09:00:00Z",
            "1900-02-29T09:00:00Z",
            "2026-00-01T09:00:00Z",
            "2026-13-01T09:00:00Z",
            "2026-11-00T09:00:00Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:00-00:01",
            "12026-11-01T09:00:00Z",
            "+2026-11-01T09:00:00Z",
            "20261101T090000Z",
            "2026-11-0\u{661}T09:00:00Z",
            "1793523600",
        ] {
            assert_eq!(in_utc(odd), None, "{odd}");
        }
    }
}
