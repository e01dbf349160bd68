//! What keeps the check from doing harm: it sends no more than it said, and stops when the API is in trouble.

use crate::{case, checked, options, tell};
use axum::Router;
use axum::routing::any;
use semel_check::{Options, Plan, Verdict, run};
use semel_testing::faulty_api::{Fault, FaultyApi};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// An API whose answers have this status from the nth request on, and that counts its requests.
async fn failing_from(first: usize, status: u16) -> (String, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let answer = move || {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        let status = if number < first { 201 } else { status };
        async move { (http::StatusCode::from_u16(status).unwrap(), format!(r#"{{"id": {number}}}"#)) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(answer))).await.unwrap() });
    (url, requests)
}

fn uncounted(url: &str) -> Options {
    Options { count: None, count_at: None, revoke: None, expire: None, ..options(url, Path::new("/nowhere")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_server_errors_in_a_row_stop_the_run_wherever_they_come() {
    // The controls succeed; retries are the sixth request and those after it.
    let (url, requests) = failing_from(5, 503).await;
    let report = run(&Plan::new(&uncounted(&url)).unwrap(), &mut |_| {}).await;
    assert!(report.stopped.as_ref().unwrap().contains("5 answers in a row were 5xx"), "{}", tell(&report));
    assert_eq!(requests.load(Ordering::SeqCst), 5 + 5, "nothing was sent after the fifth");
    assert_eq!(case(&report, "retry").verdict, Verdict::Inconclusive);
    assert_eq!(report.exit_status(None), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_that_were_asked_for_stop_nothing() {
    let report = checked(Some(Fault::DuplicatesGet500), |_| {}).await;
    assert_eq!(report.stopped, None, "{}", tell(&report));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_sent_than_the_plan_says() {
    for fault in
        [Fault::NoIdempotency, Fault::RetryRefused, Fault::CancelledWithClient, Fault::LockedBeforeBody]
    {
        let directory = tempfile::tempdir().unwrap();
        let api = FaultyApi::start(Some(fault), directory.path()).await;
        let plan = Plan::new(&options(&format!("http://{}", api.address), directory.path())).unwrap();
        let report = run(&plan, &mut |_| {}).await;
        // Whatever sends more than it said stops the run.
        assert_eq!(report.stopped, None, "{fault:?}: {}", tell(&report));
        let effects = std::fs::read_to_string(directory.path().join("ledger")).unwrap().lines().count();
        assert!(effects <= plan.most_effects(), "{fault:?}: {effects}");
        assert!(api.requests() <= plan.most_requests(), "{fault:?}: {}", api.requests());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readings_of_the_count_are_paced_like_everything_else() {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(None, directory.path()).await;
    let options = Options {
        rps: Some(50),
        only: vec!["control.count".into()],
        ..options(&format!("http://{}", api.address), directory.path())
    };
    let (plan, began) = (Plan::new(&options).unwrap(), Instant::now());
    let report = run(&plan, &mut |_| {}).await;
    // At least four requests, and eight readings of the count: two before anything, two for each count.
    assert!(report.requests >= 4, "{}", tell(&report));
    assert!(began.elapsed() >= Duration::from_millis(11 * 20), "it waited between them");
}
