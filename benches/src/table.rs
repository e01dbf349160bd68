//! The results as tables of a page whose other paragraphs are written by hand.

use crate::results::Entry;
use std::fmt::Write as _;

/// What stands between two comments of the page is made, and replaced whenever there is something new.
fn marks(name: &str) -> (String, String) {
    (format!("<!-- made by `cargo xtask bench`: {name} -->"), format!("<!-- end: {name} -->"))
}

/// The page with this between its marks; a page without them gets both at its end.
#[must_use]
pub fn put(page: &str, name: &str, made: &str) -> String {
    let (begin, end) = marks(name);
    let made = format!("{begin}\n{}\n{end}", made.trim_end());
    let place = page.find(&begin).and_then(|from| Some((from, from + page[from..].find(&end)? + end.len())));
    match place {
        Some((from, to)) => format!("{}{made}{}", &page[..from], &page[to..]),
        None if page.is_empty() => format!("{made}\n"),
        None => format!("{}\n\n{made}\n", page.trim_end()),
    }
}

/// One table, in columns of even width.
#[must_use]
pub fn for_terminal(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:width$}  {:>7}  {:>15}  {:>12}  {:>12}  {:8}  bar\n",
        "", "ratio", "spread", "ours", "other", "unit"
    );
    for it in entries {
        let spread = format!("{:.2} to {:.2}", it.spread[0], it.spread[1]);
        let verdict = match (&*it.bar, it.met) {
            ("none", _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        };
        let _ = writeln!(
            text,
            "{:width$}  {:>7.2}  {spread:>15}  {:>12}  {:>12}  {:8}  {} {verdict}",
            it.name,
            it.ratio,
            number(it.ours),
            number(it.other),
            it.unit,
            it.bar
        );
    }
    text
}

/// A table for each part, for the page.
#[must_use]
pub fn of(entries: &[Entry]) -> String {
    let mut text = String::new();
    for part in parts(entries) {
        let _ = writeln!(
            text,
            "\n| {part} | ratio | spread | ours | other | in | bar |\n|---|---|---|---|---|---|---|"
        );
        for entry in entries.iter().filter(|entry| entry.part == part) {
            let bar = match &*entry.bar {
                "none" => String::new(),
                bar if entry.is_missed() => format!("{bar}: **missed**"),
                bar => format!("{bar}: met"),
            };
            let _ = writeln!(
                text,
                "| {} | {:.2} | {:.2} to {:.2} | {} | {} | {} | {bar} |",
                entry.short_name(),
                entry.ratio,
                entry.spread[0],
                entry.spread[1],
                number(entry.ours),
                number(entry.other),
                entry.unit,
            );
        }
    }
    text
}

/// The parts, in the order in which they come.
fn parts(entries: &[Entry]) -> Vec<&str> {
    let mut parts: Vec<&str> = entries.iter().map(|entry| &*entry.part).collect();
    parts.dedup();
    parts
}

/// As people read it: thousands apart, and no more digits than mean something.
#[must_use]
pub fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{}", (value * 100.0).round() / 100.0);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{replace, tests::measured};

    #[test]
    fn what_is_written_by_hand_survives() {
        let page = put("# Results\n\nBefore.\n", "table", "| one |");
        let page = page + "\nAfter.\n";
        let again = put(&page, "table", "| two |");
        assert!(again.starts_with("# Results\n\nBefore.\n") && again.ends_with("\nAfter.\n"), "{again}");
        assert!(again.contains("| two |") && !again.contains("| one |"), "{again}");
        assert_eq!(put(&again, "table", "| two |"), again);
        assert!(put(&again, "machine", "2 cores").contains("| two |"), "another block is another's");
    }

    #[test]
    fn each_part_has_a_table_and_misses_are_shown() {
        let mut entries = Vec::new();
        replace(&mut entries, "store", vec![measured("many", 6.0), measured("one", 4.0)]);
        let text = of(&entries);
        assert!(text.contains("| many | 0.60 | 0.60 to 0.60 | 6 | 10 | op/s | >= 0.5: met |"), "{text}");
        assert!(
            text.contains("| one | 0.40 | 0.40 to 0.40 | 4 | 10 | op/s | >= 0.5: **missed** |"),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0.25, 12.345, 999.6, 1_234_567.0, -1234.0].map(number),
            ["0.25", "12.35", "1,000", "1,234,567", "-1,234"]
        );
    }
}
