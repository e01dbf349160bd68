//! Text for people: the worst first, and how to reproduce each. Colours are for terminals: the caller strips them elsewhere.

use super::{CaseResult, Report, visible};
use crate::verdict::{Severity, Verdict};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// The report as text.
#[must_use]
pub fn render(report: &Report, exit_status: u8) -> String {
    let mut text = String::new();
    write(&mut text, report, exit_status);
    text
}

/// One line about a case, while the check runs.
#[must_use]
pub fn progress(case: &CaseResult) -> String {
    let style = style_of(case);
    let words = case.details.first().map_or("", String::as_str);
    let words = if case.verdict == Verdict::Pass { "" } else { words };
    format!("{style}{:>16}{style:#}  {:<16} {FAINT}{words}{FAINT:#}", case.told(), case.name)
        .trim_end()
        .to_owned()
}

/// Writing to a string does not fail.
fn write(text: &mut String, report: &Report, exit_status: u8) {
    let _ = writeln!(
        text,
        "{STRONG}{} {}{}{STRONG:#}",
        report.request.split(' ').next().unwrap_or(""),
        report.target,
        report.request.split_once(' ').map_or("", |(_, path)| path)
    );
    let _ = writeln!(text, "{}", report.summary());
    let cases = report.worst_first();
    for case in &cases {
        if matches!(case.verdict, Verdict::Fail | Verdict::Suspect) {
            finding(text, report, case);
        }
    }
    let named = |verdict| cases.iter().filter(move |case| case.verdict == verdict);
    for case in named(Verdict::Inconclusive) {
        let style = style_of(case);
        let star = if case.star { " ★" } else { "" };
        let _ = writeln!(
            text,
            "\n{style}{}{style:#}{star}: inconclusive. {}",
            case.name,
            case.details.join("; ")
        );
    }
    let passed: Vec<_> = named(Verdict::Pass).map(|case| case.name).collect();
    if !passed.is_empty() {
        let style = AnsiColor::Green.on_default();
        let _ = writeln!(text, "\n{style}passed{style:#}: {}", passed.join(", "));
    }
    let not_run: Vec<_> = named(Verdict::NotRun).collect();
    if !not_run.is_empty() {
        let _ = writeln!(text, "\nnot run:");
        for case in not_run {
            let _ = writeln!(text, "  {FAINT}{:<16} {}{FAINT:#}", case.name, case.details.join("; "));
        }
    }
    for remark in &report.remarks {
        let _ = writeln!(text, "\n{remark}");
    }
    if let Some(stopped) = &report.stopped {
        let style = AnsiColor::Red.on_default();
        let _ = writeln!(text, "\n{style}stopped{style:#}: {stopped}");
    }
    let has_finding = |case: &&&CaseResult| matches!(case.verdict, Verdict::Fail | Verdict::Suspect);
    if let Some(again) = cases.iter().find(has_finding).and_then(|case| report.again(case)) {
        let _ = writeln!(text, "\n{FAINT}one case again:{FAINT:#} {}", visible(&again));
    }
    let came_to = match exit_status {
        0 => "nothing bad was found",
        1 => "something bad was found",
        _ => "inconclusive: a required case (★) could not be decided",
    };
    let _ =
        writeln!(text, "\n{STRONG}{came_to}{STRONG:#} ({} requests, seed {})", report.requests, report.seed);
}

fn finding(text: &mut String, report: &Report, case: &CaseResult) {
    let style = style_of(case);
    let known = if case.known { " (known)" } else { "" };
    let _ = writeln!(
        text,
        "\n{style}{}{style:#}{known}  {STRONG}{}{STRONG:#}: {} → {}",
        case.told(),
        case.name,
        case.sent,
        case.right
    );
    for words in &case.details {
        let _ = writeln!(text, "  {words}");
    }
    let _ = writeln!(text, "  {FAINT}{:<9}{FAINT:#}  {}", "fix", case.fix);
    let sent: Vec<_> = case.reproduce.iter().zip(&case.replies).take(2).collect();
    for (number, (command, reply)) in sent.iter().enumerate() {
        let head = if number == 0 { "reproduce" } else { "" };
        let is_same = number > 0 && *command == sent[0].0;
        let command = if is_same { "the same again".into() } else { visible(command) };
        let _ = writeln!(text, "  {FAINT}{head:<9}{FAINT:#}  {command}  {FAINT}# {reply}{FAINT:#}");
    }
    let _ = writeln!(text, "  {FAINT}{:<9}{FAINT:#}  {}", "more", report.more(case));
}

fn style_of(case: &CaseResult) -> Style {
    let colour = match (case.verdict, case.severity) {
        _ if case.known => return FAINT,
        (Verdict::Fail, Some(severity)) if severity.is_bad() => AnsiColor::Red,
        (Verdict::Fail, Some(Severity::Note)) => AnsiColor::Cyan,
        (Verdict::Fail | Verdict::Suspect, _) => AnsiColor::Yellow,
        (Verdict::Pass, _) => AnsiColor::Green,
        (Verdict::Inconclusive, _) => AnsiColor::Magenta,
        (Verdict::NotRun, _) => return FAINT,
    };
    colour.on_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_with_how_to_reproduce_it() {
        let report = super::super::tests::sample();
        let text = render(&report, 1);
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
        assert!(
            at("double execution\u{1b}") < at("suspect\u{1b}")
                && at("suspect\u{1b}") < at("client pain\u{1b}")
        );
        assert!(text.contains("--only retry") && text.contains("semel check --explain retry"), "{text}");
        assert!(!text.contains('\u{202e}'));
    }
}
