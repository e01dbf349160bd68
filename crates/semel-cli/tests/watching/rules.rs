//! The alert rules and the dashboard that ship with Semel, against what a gateway really tells.

use crate::support::{Gateway, SECRET, config};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn operating(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(operating(name)).unwrap()
}

/// Every name of a metric in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.split(|character| !is_name(character)).filter(|word| word.starts_with("api_idempotency_")).collect()
}

#[test]
fn rules_and_dashboard_speak_of_metrics_that_are_there() {
    let directory = tempfile::tempdir().unwrap();
    // Nobody asks for the service or the collector here.
    let nowhere = "127.0.0.1:9".parse().unwrap();
    let rest = format!(
        "[[webhook]]\nsource = \"provider\"\nsecrets = [\"{SECRET}\"]\n[telemetry]\notlp = \"http://127.0.0.1:9\"\n\
         [cache]\nurl = \"redis://127.0.0.1:9\"\n"
    );
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", nowhere, &rest));
    let scraped = gateway.ask("/metrics").body;
    let told = metrics_in(&scraped);
    let (rules, dashboard) = (text("alerts.yml"), text("grafana-dashboard.json"));
    for (place, used) in [("rules", metrics_in(&rules)), ("dashboard", metrics_in(&dashboard))] {
        let strange: Vec<_> = used.difference(&told).collect();
        assert!(strange.is_empty() && used.len() > 10, "{place}: {strange:?}");
    }
    let is_labelled = |label: &str| scraped.contains(&format!("{label}=\""));
    assert!(["operation", "call", "result", "source"].into_iter().all(is_labelled));
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = "127.0.0.1:9".parse().unwrap();
    let rest = format!(
        "[[webhook]]\nsource = \"provider\"\nsecrets = [\"{SECRET}\"]\n[outbox]\nsink = \"http://127.0.0.1:9/events\"\nsecret = \
         \"{SECRET}\"\n[telemetry]\notlp = \"http://127.0.0.1:9\"\n"
    );
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", nowhere, &rest));
    gateway.pay("a-key-of-a-payment", "nobody is there");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this needs promtool: install it (Debian: apt-get install prometheus)");
    promtool.stdin.take().unwrap().write_all(gateway.ask("/metrics").body.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    let said = [checked.stdout, checked.stderr].concat();
    assert!(checked.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_dashboard_has_what_operators_look_for() {
    let dashboard: Value = serde_json::from_str(&text("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let queries = panel["targets"].as_array().map_or(0, Vec::len);
        assert!(panel["type"] == "row" || queries > 0, "{panel}");
    }
    let all = dashboard.to_string();
    for metric in [
        "reserve_created_total",
        "request_seconds_bucket",
        "batch_size_sum",
        "store_seconds_bucket",
        "unknown_oldest_seconds",
        "dead_letters",
        "outbox_backlog",
    ] {
        assert!(all.contains(metric), "{metric}");
    }
}

#[test]
fn every_alert_leads_to_its_page() {
    let (rules, page) = (text("alerts.yml"), text("alerts.md"));
    let named = |prefix: &'static str| {
        let lines = rules.lines().filter_map(move |line| line.trim().strip_prefix(prefix));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (alerts, links) = (named("- alert: "), named("runbook_url: "));
    assert!(alerts.len() > 10);
    assert_eq!(alerts.len(), links.len(), "one link for each");
    for (alert, link) in alerts.iter().zip(links) {
        assert!(page.contains(&format!("\n## {alert}\n")), "{alert} has no section");
        let expected = format!("/docs/operating/alerts.md#{}", alert.to_lowercase());
        assert!(link.ends_with(&expected), "{link}");
        assert!(text("alerts_test.yml").contains(alert), "{alert} is not tested");
    }
}

#[test]
fn prometheus_takes_the_rules_and_they_fire_when_they_should() {
    for (check, file) in [("check", "alerts.yml"), ("test", "alerts_test.yml")] {
        let checked = Command::new("promtool")
            .args([check, "rules"])
            .arg(operating(file))
            .output()
            .expect("this needs promtool: install it (Debian: apt-get install prometheus)");
        let said = [checked.stdout, checked.stderr].concat();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}
