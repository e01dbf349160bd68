//! Every case has its page in the book.

use semel_check::cases::CASES;
use std::path::Path;

fn docs() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

#[test]
fn every_case_has_a_page_that_says_how_to_fix_it() {
    let summary = std::fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let table = std::fs::read_to_string(docs().join("check/README.md")).unwrap();
    for case in CASES {
        let page =
            std::fs::read_to_string(docs().join(case.page())).unwrap_or_else(|_| panic!("{}", case.page()));
        for part in [case.sent, case.right, case.fix, "## How bad", "**Without Semel.**", "**With Semel.**"] {
            assert!(page.contains(part), "{}: {part}", case.name);
        }
        assert!(summary.contains(&format!("({})", case.page())), "{} is not in SUMMARY.md", case.name);
        let star = if case.star { " ★" } else { "" };
        let row =
            format!("| [{}]({0}.md){star} | {} → {} | {} |", case.name, case.sent, case.right, case.if_not());
        assert!(table.contains(&row), "{row}");
        let severity = case.severity.map(|severity| severity.name());
        let how_bad = page.split("## How bad").nth(1).unwrap().to_lowercase();
        assert!(
            severity.is_none_or(|name| how_bad.contains(&format!("**{name}.**"))),
            "{}: {severity:?}",
            case.name
        );
    }
    let pages = std::fs::read_dir(docs().join("check")).unwrap();
    let pages =
        pages.filter(|page| page.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "md"));
    assert_eq!(pages.count(), CASES.len() + 1, "a page without a case");
}

#[test]
fn the_published_schema_is_the_tested_one() {
    let tested = concat!(env!("CARGO_MANIFEST_DIR"), "/../semel-check/tests/report.schema.json");
    let published = std::fs::read_to_string(docs().join("check/report.schema.json")).unwrap();
    assert_eq!(std::fs::read_to_string(tested).unwrap(), published);
}
