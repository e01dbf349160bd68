//! Correct APIs of several styles: nothing is found in any of them.

use crate::{assert_clean, case, options, tell};
use semel_check::{Options, Plan, Report, Verdict, run};
use semel_testing::faulty_api::{Fault, FaultyApi, Style};
use semel_testing::tls::{Authority, TlsTunnel};

async fn checked(api: &FaultyApi, directory: &std::path::Path, change: impl FnOnce(&mut Options)) -> Report {
    let mut options = options(&format!("http://{}", api.address), directory);
    options.also = vec![format!("http://{}", api.other)];
    change(&mut options);
    run(&Plan::new(&options).unwrap(), &mut |_| {}).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn correct_apis_of_every_style_pass_under_their_profile() {
    for (style, profile) in [
        (Style::Waits, "ietf"),
        (Style::NoIds, "ietf"),
        (Style::Stripe, "stripe"),
        (Style::Ietf, "acp"),
        (Style::Ucp, "ucp"),
        (Style::Adcp, "adcp"),
        (Style::Iceberg, "iceberg"),
        (Style::Ietf, "auto"),
        (Style::Ucp, "auto"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let api = FaultyApi::in_style(style, directory.path()).await;
        let report = checked(&api, directory.path(), |options| {
            options.profile = Some(profile.into());
        })
        .await;
        let aside =
            |name: &str| name.starts_with("crash.") || (style == Style::NoIds && name == "caller.cookie");
        assert_clean(&report, aside);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_the_body_is_checked_like_one_in_a_header() {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::in_style(Style::KeyInBody, directory.path()).await;
    let report = checked(&api, directory.path(), |options| {
        options.key_from = Some("json:/key".into());
        options.body = Some(r#"{"key": "k", "amount": 10, "reference": "r"}"#.into());
    })
    .await;
    // An empty object has no key, so that what refuses it is another rule; the form of a header does not matter.
    assert_clean(&report, |name| name.starts_with("crash.") || name == "key.form");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_and_tls_find_the_same() {
    let authority = Authority::new();
    let certificate = authority.issue("api", &["127.0.0.1", "localhost"]);
    for http2 in [false, true] {
        for fault in [None, Some(Fault::CheckThenAct)] {
            let directory = tempfile::tempdir().unwrap();
            let api = FaultyApi::start(fault, directory.path()).await;
            let tunnel = TlsTunnel::start(&certificate, api.address, &[b"h2", b"http/1.1"]).await;
            for tls in [false, true] {
                let report = checked(&api, directory.path(), |options| {
                    options.also = Vec::new();
                    // The API remembers the keys of the run before.
                    options.seed = None;
                    options.http2 = http2;
                    if tls {
                        options.target = Some(format!("https://localhost:{}", tunnel.port()));
                        options.ca = Some(authority.ca());
                    }
                    options.only = ["retry", "race", "hangup", "body"].map(str::to_owned).into();
                })
                .await;
                match fault {
                    None => assert_clean(&report, |name| name == "race.nodes"),
                    Some(fault) => crate::assert_found(
                        fault,
                        &report,
                        &[("race.same", semel_check::Severity::DoubleExecution)],
                    ),
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_that_serves_one_request_at_a_time_is_accused_of_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::in_style(Style::Serial, directory.path()).await;
    let report = checked(&api, directory.path(), |options| {
        options.only = ["race.same", "race.mixed", "race.keys", "race.nodes"].map(str::to_owned).into();
    })
    .await;
    for case in &report.cases {
        assert!(matches!(case.verdict, Verdict::Pass | Verdict::Inconclusive), "{}", tell(&report));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_never_meet_are_no_race() {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::in_style(Style::OneStream, directory.path()).await;
    let report = checked(&api, directory.path(), |options| {
        options.http2 = true;
        options.rounds = Some(1);
        options.concurrency = Some(3);
        options.only = vec!["race.same".into()];
    })
    .await;
    let race = case(&report, "race.same");
    assert_eq!(race.verdict, Verdict::Inconclusive, "{}", tell(&report));
    assert_eq!(report.exit_status(None), 2, "a race that was not seen is no pass");
}
