//! Markdown for a comment on a pull request.

use super::{Report, visible};
use crate::verdict::Verdict;
use std::fmt::Write as _;

/// The report as Markdown.
#[must_use]
pub fn render(report: &Report, exit_status: u8) -> String {
    let mut text = String::new();
    let came_to = match exit_status {
        0 => "nothing bad was found",
        1 => "something bad was found",
        _ => "inconclusive",
    };
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "### `semel check`: {came_to}\n\n`{}` at `{}`. {}.",
        code(&report.request),
        code(&report.target),
        report.summary()
    );
    if let Some(stopped) = &report.stopped {
        let _ = writeln!(text, "\nStopped: {}", plain(stopped));
    }
    let is_told = |case: &&&super::CaseResult| {
        matches!(case.verdict, Verdict::Fail | Verdict::Suspect | Verdict::Inconclusive)
    };
    let cases = report.worst_first();
    let told: Vec<_> = cases.iter().filter(is_told).collect();
    if !told.is_empty() {
        text.push_str("\n| | case | what was found | fix |\n|---|---|---|---|\n");
        for case in &told {
            let known = if case.known { " (known)" } else { "" };
            let _ = writeln!(
                text,
                "| {}{known} | {} | {} | {} |",
                case.told(),
                report.link(case).map_or(case.name.to_owned(), |link| format!("[{}]({link})", case.name)),
                plain(&case.details.join("; ")),
                plain(case.fix)
            );
        }
    }
    for case in told.iter().filter(|case| matches!(case.verdict, Verdict::Fail | Verdict::Suspect)) {
        if let Some(command) = case.reproduce.first() {
            // A fence that is longer than any in the command.
            let _ = writeln!(
                text,
                "\n<details><summary>reproduce {}</summary>\n\n``````sh\n{}\n``````\n\n</details>",
                case.name,
                command.replace("``````", "`````")
            );
        }
    }
    if !told.is_empty() && report.docs.is_empty() {
        text.push_str("\n`semel check --explain CASE` tells more about each of them.\n");
    }
    let passed: Vec<_> =
        report.cases.iter().filter(|case| case.verdict == Verdict::Pass).map(|case| case.name).collect();
    if !passed.is_empty() {
        let _ = writeln!(text, "\nPassed: {}.", passed.join(", "));
    }
    if report.deserves_a_badge() {
        let _ = writeln!(text, "\n**Idempotency checked**: races, crashes and callers were conclusive.");
    }
    text
}

/// Text that is no markup, in one line, also within a table.
fn plain(text: &str) -> String {
    let mut safe = String::new();
    for next in visible(text).chars() {
        match next {
            '\n' => safe.push(' '),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '!' | '#' | '@' => {
                safe.push('\\');
                safe.push(next);
            }
            other => safe.push(other),
        }
    }
    safe
}

/// Text within backticks.
fn code(text: &str) -> String {
    visible(text).replace(['`', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_from_the_target_is_no_markup() {
        let text = render(&super::super::tests::sample(), 1);
        let table: Vec<_> = text.lines().filter(|line| line.starts_with("| ")).collect();
        assert_eq!(table.len(), 1 + 5, "{text}");
        assert!(
            table
                .iter()
                .all(|line| !line.contains("<script") && line.replace("\\|", "").matches('|').count() == 5),
            "{text}"
        );
        assert!(
            text.contains("| retry |") && text.contains("--explain CASE") && !text.contains("](docs"),
            "{text}"
        );
        let mut report = super::super::tests::sample();
        report.docs = "https://book/".into();
        assert!(render(&report, 1).contains("[retry](https://book/check/retry.md)"));
    }
}
