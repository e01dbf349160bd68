//! The field `Date` of an answer, in milliseconds.

/// What a `Date` says, in milliseconds since 1970, and how much later it may be, because the rest was cut off: a second, unless it
/// has a fraction, which no HTTP server sends and a test's clock may.
pub(crate) fn parse(text: &str) -> Option<(i64, i64)> {
    // "Thu, 19 Nov 2026 22:31:32 GMT"
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    if zone != "GMT" || words.next().is_some() {
        return None;
    }
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS.iter().position(|name| *name == month)?;
    let (time, fraction) = match time.split_once('.') {
        Some((time, fraction)) => (time, Some(number(fraction, 3)?)),
        None => (time, None),
    };
    let mut parts = time.split(':').map(|part| number(part, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let is_in_range = hour < 24 && minute < 60 && second <= 60 && parts.next().is_none();
    let (day, year) = (number(day, 2)?, number(year, 4)?);
    let date = jiff::civil::Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month + 1).ok()?,
        i8::try_from(day).ok()?,
    )
    .ok()
    .filter(|_| is_in_range)?;
    let days = date.since(jiff::civil::Date::constant(1970, 1, 1)).ok()?.get_days();
    let seconds = i64::from(days) * 86_400 + hour * 3_600 + minute * 60 + second;
    let (millis, resolution) = fraction.map_or((0, 999), |millis| (millis, 0));
    Some((seconds * 1_000 + millis, resolution))
}

fn number(digits: &str, length: usize) -> Option<i64> {
    let is_number = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_and_other_texts_are_not() {
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:01 GMT"), Some((1_000, 999)));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some((784_111_777_000, 999)));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37.250 GMT"), Some((784_111_777_250, 0)));
        for text in [
            "",
            "now",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
