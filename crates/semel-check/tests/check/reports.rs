//! Reports of real runs: every finding is in each of them, and what an API says cannot break out of its place.

use crate::{case, checked, options, tell};
use axum::Router;
use axum::routing::any;
use semel_check::{Options, Plan, Report, Verdict, report, run};
use semel_testing::faulty_api::Fault;
use std::path::Path;

/// What an API might say to the reader of a report, to their browser, or to their CI.
const HOSTILE: &str = "<script>alert(1)</script> | [x](javascript:alert(1)) `a` </pre> \u{202e}\u{1b}[2J %0A\n::error::injected\n";

/// The formats that people see, by name.
fn rendered(report: &Report) -> [(&'static str, String); 4] {
    [
        ("html", report::html::render(report, report.exit_status(None))),
        ("github", report::github::render(report)),
        ("markdown", report::markdown::render(report, report.exit_status(None))),
        ("text", report::text::render(report, report.exit_status(None))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_finding_is_in_every_report() {
    let mut report = checked(Some(Fault::CheckThenAct), |options| {
        options.only = vec!["retry".into(), "race.same".into(), "race.mixed".into()];
    })
    .await;
    report.command = Some("semel check http://127.0.0.1:3000 --seed 1".into());
    let found: Vec<_> = report.cases.iter().filter(|case| case.verdict == Verdict::Fail).collect();
    assert!(found.len() >= 2, "{}", tell(&report));
    for (format, text) in rendered(&report) {
        for case in &found {
            let place = text.find(case.name).unwrap_or_else(|| panic!("{}: {format}", case.name));
            let after = &text[place..];
            let fix: String =
                case.fix.chars().take_while(|letter| letter.is_alphanumeric() || *letter == ' ').collect();
            for part in [case.told().as_str(), case.details[0].as_str(), fix.as_str()] {
                // Titles have the severity before the name.
                let is_told = after.contains(part) || (part == case.told() && text.contains(part));
                assert!(is_told, "{format}: {}: {part}: {text}", case.name);
            }
        }
        // What passed is no finding; people see it all the same, and CI does not.
        assert_eq!(text.contains("retry.marker"), format != "github", "{format}: {text}");
    }
    let html = &rendered(&report)[0].1;
    assert!(html.contains("curl -i") && html.contains("--only race.same"), "{html}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_api_says_is_text_in_every_report() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let refuse = || async { (http::StatusCode::BAD_REQUEST, HOSTILE) };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(refuse))).await.unwrap() });
    let options = Options { count: None, count_at: None, ..options(&url, Path::new("/nowhere")) };
    let report = run(&Plan::new(&options).unwrap(), &mut |_| {}).await;
    assert!(report.stopped.as_ref().unwrap().contains("400"), "{}", tell(&report));
    assert!(case(&report, "control.count").details[0].contains("alert"), "{}", tell(&report));
    for (format, text) in rendered(&report) {
        assert!(text.contains("alert"), "{format}: it is told: {text}");
        assert!(!text.contains('\u{202e}') && !text.contains("\u{1b}[2J"), "{format}: {text}");
        let is_command = |line: &&str| line.trim_start().starts_with("::error::");
        assert_eq!(text.lines().filter(is_command).count(), 0, "{format}: {text}");
        // Annotations and terminals show text as it is.
        assert!(["github", "text"].contains(&format) || !text.contains("<script"), "{format}: {text}");
    }
    let [(_, html), _, (_, markdown), _] = rendered(&report);
    assert!(html.contains("&lt;script&gt;") && !html.contains("alert(1)</pre>"), "{html}");
    assert!(!markdown.contains("[x](javascript"), "{markdown}");
}
