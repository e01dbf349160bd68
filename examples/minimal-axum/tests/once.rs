//! The program, run as the README says: a payment, its retry, another body under the same key.

use semel_testing::http::once::Ask;
use semel_testing::program::Program;
use std::process::Command;

#[tokio::test]
async fn a_payment_happens_once_and_its_retry_is_replayed_also_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut service = Command::new(env!("CARGO_BIN_EXE_minimal-axum"));
    service.arg("127.0.0.1:0").current_dir(&directory);

    let running = Program::start(&mut service);
    let first = Ask::payment().send_to(running.address).await;
    assert_eq!((first.status, &first.json()["amount"]), (201, &"10.00".into()));
    assert_eq!(running.finish(), [r#"paying "10.00""#]);

    let running = Program::start(&mut service);
    let retry = Ask::payment().send_to(running.address).await;
    assert_eq!((retry.status, retry.is_replay(), &retry.body), (201, true, &first.body));
    let changed = Ask::payment().json(r#"{"amount":"99.00"}"#).send_to(running.address).await;
    assert_eq!(changed.code(), "idempotency_key_reused_with_different_payload");
    let keyless = Ask::payment().without("idempotency-key").send_to(running.address).await;
    assert_eq!(keyless.code(), "idempotency_key_missing");
    assert_eq!(running.finish(), [""; 0], "nothing was paid again");
}

#[test]
fn the_program_is_short() {
    let lines = include_str!("../src/main.rs").lines().count();
    assert!(lines < 40, "{lines} lines");
}
