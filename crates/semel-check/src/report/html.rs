//! One HTML page that needs nothing else: no script, no font, no image from anywhere.

use super::{CaseResult, Report, escaped};
use crate::verdict::{Severity, Verdict};
use std::fmt::Write as _;

const STYLE: &str = include_str!("report.css");

/// The report as a page.
#[must_use]
pub fn render(report: &Report, exit_status: u8) -> String {
    let (class, came_to) = match exit_status {
        0 => ("pass", "Nothing bad was found"),
        1 => ("bad", "Something bad was found"),
        _ => ("open", "Inconclusive"),
    };
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>semel check: {request}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header><h1>{request}</h1>\n<p class=\"{class} verdict\">{came_to}</p>\n<p>{}</p>\n</header>\n",
        escaped(&report.summary()),
        request = escaped(&report.request),
    );
    if let Some(stopped) = &report.stopped {
        let _ = writeln!(page, "<p class=\"bad\">Stopped: {}</p>", escaped(stopped));
    }
    let cases = report.worst_first();
    for case in cases.iter().filter(|case| matches!(case.verdict, Verdict::Fail | Verdict::Suspect)) {
        finding(&mut page, report, case);
    }
    for (title, verdict) in
        [("Inconclusive", Verdict::Inconclusive), ("Passed", Verdict::Pass), ("Not run", Verdict::NotRun)]
    {
        let rows: Vec<_> = cases.iter().filter(|case| case.verdict == verdict).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(page, "<h2>{title}</h2>\n<table>");
        for case in rows {
            let words = if verdict == Verdict::Pass {
                format!("{} → {}", case.sent, case.right)
            } else {
                case.details.join("; ")
            };
            let star = if case.star { " ★" } else { "" };
            let _ = writeln!(
                page,
                "<tr><td>{}{star}</td><td>{}</td></tr>",
                linked(report, case),
                escaped(&words)
            );
        }
        page.push_str("</table>\n");
    }
    about(&mut page, report);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn finding(page: &mut String, report: &Report, case: &CaseResult) {
    let class = match case.severity {
        _ if case.known => "known",
        Some(severity) if severity.is_bad() => "bad",
        Some(Severity::Note) => "note",
        _ => "pain",
    };
    let known = if case.known { " (known)" } else { "" };
    let _ = writeln!(
        page,
        "<section class=\"{class}\">\n<h2><span>{}{known}</span> {}</h2>\n<p class=\"rule\">{} → {}</p>\n<ul>",
        case.told(),
        linked(report, case),
        escaped(case.sent),
        escaped(case.right)
    );
    for words in &case.details {
        let _ = writeln!(page, "<li>{}</li>", escaped(words));
    }
    let _ = writeln!(page, "</ul>\n<p><b>Fix</b> {}</p>", escaped(case.fix));
    let _ = writeln!(page, "<p><b>More</b> <code>semel check --explain {}</code></p>", case.name);
    if !case.reproduce.is_empty() || report.command.is_some() {
        page.push_str("<details><summary>Reproduce</summary><pre>");
        for (command, reply) in case.reproduce.iter().zip(&case.replies) {
            let _ = writeln!(page, "{}  <i># {}</i>", escaped(command), escaped(reply));
        }
        if let Some(again) = report.again(case) {
            let _ = writeln!(page, "{}", escaped(&again));
        }
        page.push_str("</pre></details>\n");
    }
    page.push_str("</section>\n");
}

/// The name of a case, with a link to its page if the book is somewhere.
fn linked(report: &Report, case: &CaseResult) -> String {
    match report.link(case) {
        Some(link) => format!("<a href=\"{}\">{}</a>", escaped(&link), case.name),
        None => case.name.to_owned(),
    }
}

fn about(page: &mut String, report: &Report) {
    page.push_str("<h2>About this run</h2>\n<table>\n");
    let counted = report.counted.as_deref().unwrap_or("not at all");
    let rows = [
        ("target", report.target.clone()),
        ("started", report.started.clone()),
        ("profile", report.profile.to_owned()),
        ("effects counted", counted.to_owned()),
        ("requests", report.requests.to_string()),
        ("seed", report.seed.to_string()),
        ("semel", report.version.to_owned()),
    ];
    for (name, value) in rows {
        let _ = writeln!(page, "<tr><td>{name}</td><td>{}</td></tr>", escaped(&value));
    }
    for remark in &report.remarks {
        let _ = writeln!(page, "<tr><td>remark</td><td>{}</td></tr>", escaped(remark));
    }
    page.push_str("</table>\n");
    if report.deserves_a_badge() {
        page.push_str(
            "<p class=\"pass\">Idempotency checked: races, crashes and callers were conclusive.</p>\n",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_nothing_gets_out_of_its_place() {
        let page = render(&super::super::tests::sample(), 1);
        assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{page}");
        for outside in ["http-equiv=\"refresh", "<img", "<link", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("--explain retry") && !page.contains("<a "), "{page}");
        let mut report = super::super::tests::sample();
        report.docs = "https://book".into();
        assert!(render(&report, 1).contains("href=\"https://book/check/retry.md\""));
        for tag in ["section", "table", "ul", "details", "pre", "main", "tr", "td", "li"] {
            assert_eq!(
                page.matches(&format!("<{tag}")).count(),
                page.matches(&format!("</{tag}>")).count(),
                "{tag}"
            );
        }
    }
}
