//! GitHub annotations: workflow commands, one for each finding.

use super::{Report, visible};
use crate::verdict::{Severity, Verdict};

/// The report as workflow commands.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut lines = Vec::new();
    for case in report.worst_first() {
        let command = match (case.verdict, case.severity) {
            (Verdict::Fail, Some(Severity::Note)) => "notice",
            (Verdict::Fail, Some(severity)) if severity.is_bad() && !case.known => "error",
            (Verdict::Fail | Verdict::Suspect, _) => "warning",
            (Verdict::Inconclusive | Verdict::NotRun, _) if case.star => "warning",
            _ => continue,
        };
        let title = format!("{}: {}", case.name, case.told());
        let message = format!("{}\nfix: {}\nmore: {}", case.details.join("\n"), case.fix, report.more(case));
        lines.push(format!("::{command} title={}::{}", property(&title), data(&message)));
    }
    if let Some(stopped) = &report.stopped {
        lines.push(format!("::error title=semel check::{}", data(stopped)));
    }
    lines.push(format!("semel check: {}", data(&report.summary())));
    lines.join("\n") + "\n"
}

fn data(text: &str) -> String {
    visible(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_found_becomes_a_command_of_its_own() {
        let text = render(&super::super::tests::sample());
        let commands = text.lines().filter(|line| line.starts_with("::")).count();
        assert_eq!(commands, 4, "{text}");
        assert!(text.starts_with("::error title=retry%3A double execution::"), "{text}");
        assert!(text.contains("%250A%0A::error::injected"), "{text}");
    }
}
