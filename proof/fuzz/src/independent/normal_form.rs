//! Normal forms of texts: letters one by one, decimals as JSON has them, instants counted out in days and minutes.

use super::json::Json;

/// The normal form of a text, by the name that recipes have for it; a text that is not of the kind is its own.
pub(crate) fn normal(form: &str, text: &str) -> String {
    match form {
        "lowercase" => text
            .chars()
            .map(|letter| if letter.is_ascii() { letter.to_ascii_lowercase() } else { letter })
            .collect(),
        "decimal" => decimal(text).unwrap_or_else(|| text.to_owned()),
        "timestamp" => instant(text).unwrap_or_else(|| text.to_owned()),
        // Nor would there be a recipe, and every recipe is there.
        _ => text.to_owned(),
    }
}

fn decimal(text: &str) -> Option<String> {
    if text.trim() != text {
        return None;
    }
    let value = Json::parse(text.as_bytes(), 0)?;
    let Json::Number(number) = value else { return None };
    number.is_spellable().then(|| number.canonical())
}

fn instant(text: &str) -> Option<String> {
    let (date, time) = text.split_once(['T', 't'])?;
    let [year, month, day] = numbers(date, '-', &[4, 2, 2])?[..] else { return None };
    let (clock, ahead) = if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        (clock, 0)
    } else {
        let at = time.rfind(['+', '-'])?;
        let [hours, minutes] = numbers(&time[at + 1..], ':', &[2, 2])?[..] else { return None };
        let ahead = hours * 60 + minutes;
        let west = time[at..].starts_with('-');
        if hours > 23 || minutes > 59 || (west && ahead == 0) {
            return None;
        }
        (&time[..at], if west { -ahead } else { ahead })
    };
    let (clock, fraction) = match clock.split_once('.') {
        Some((_, fraction)) if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            return None;
        }
        Some((clock, fraction)) => (clock, fraction.trim_end_matches('0')),
        None => (clock, ""),
    };
    let [hour, minute, second] = numbers(clock, ':', &[2, 2, 2])?[..] else { return None };
    if !(1..=12).contains(&month)
        || day < 1
        || day > days_of(year, month)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let days = (0..year).map(days_of_year).sum::<i64>()
        + (1..month).map(|month| days_of(year, month)).sum::<i64>()
        + day
        - 1;
    let minutes = (days * 24 + hour) * 60 + minute - ahead;
    if minutes < 0 {
        return None;
    }
    let (mut days, rest) = (minutes / (24 * 60), minutes % (24 * 60));
    let mut year = 0;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let point = if fraction.is_empty() { String::new() } else { format!(".{fraction}") };
    let (day, hour, minute) = (days + 1, rest / 60, rest % 60);
    (year <= 9999).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{point}Z"))
}

/// Numbers of so many digits, between separators.
fn numbers(text: &str, separator: char, lengths: &[usize]) -> Option<Vec<i64>> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = |(part, length): (&&str, &usize)| {
        part.len() == *length && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() != lengths.len() || !parts.iter().zip(lengths).all(fits) {
        return None;
    }
    parts.iter().map(|part| part.parse().ok()).collect()
}

fn days_of_year(year: i64) -> i64 {
    (1..=12).map(|month| days_of(year, month)).sum()
}

fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
    [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][(month - 1) as usize]
}
