//! JUnit XML, which most CI systems show as tests.

use super::{Report, escaped};
use crate::verdict::Verdict;
use std::fmt::Write as _;

/// The report as JUnit XML. A case that has no verdict is skipped; a ★ case that has none is an error.
#[must_use]
pub fn render(report: &Report) -> String {
    let failures = report.cases.iter().filter(|case| case.severity.is_some() && !case.known).count();
    let is_error = |case: &super::CaseResult| case.star && !case.verdict.is_conclusive();
    let errors = report.cases.iter().filter(|case| is_error(case)).count();
    let skipped = report.cases.iter().filter(|case| !is_error(case) && !case.verdict.is_conclusive()).count();
    let known = report.cases.iter().filter(|case| case.known && case.severity.is_some()).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        xml,
        "<testsuites><testsuite name=\"semel check\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{}\" timestamp=\"{}\">",
        report.cases.len(),
        skipped + known,
        report.started.trim_end_matches('Z')
    );
    for case in &report.cases {
        let group = case.name.split('.').next().unwrap_or(case.name);
        let _ = write!(xml, "<testcase classname=\"semel.check.{group}\" name=\"{}\" time=\"0\">", case.name);
        let words = escaped(&case.details.join("\n"));
        let head = escaped(case.details.first().map_or("", String::as_str)).replace('\n', " ");
        let kind = case.told();
        let more = escaped(&format!(
            "\nsent: {}\nright: {}\nfix: {}\nmore: {}\n{}",
            case.sent,
            case.right,
            case.fix,
            report.more(case),
            case.reproduce.join("\n")
        ));
        let _ = match case.verdict {
            Verdict::Fail if case.known => write!(xml, "<skipped message=\"known: {kind}: {head}\"/>"),
            Verdict::Fail => {
                write!(xml, "<failure type=\"{kind}\" message=\"{head}\">{words}{more}</failure>")
            }
            Verdict::Pass => Ok(()),
            _ if is_error(case) => {
                write!(xml, "<error type=\"{kind}\" message=\"{head}\">{words}{more}</error>")
            }
            _ => write!(xml, "<skipped message=\"{kind}: {head}\"/>"),
        };
        xml.push_str("</testcase>\n");
    }
    xml.push_str("</testsuite></testsuites>\n");
    xml
}
