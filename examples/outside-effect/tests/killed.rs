//! The service dies after the bank has charged and before it has answered. The bank's ledger has one charge.

use semel_testing::http::once::Ask;
use semel_testing::program::Program;
use std::path::Path;
use std::process::Command;

fn start(directory: &Path) -> Program {
    let mut service = Command::new(env!("CARGO_BIN_EXE_outside-effect"));
    Program::start(service.arg("127.0.0.1:0").current_dir(directory))
}

fn charges(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("bank.ledger")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_later_attempt_resumes_and_the_bank_charges_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let mut service = start(directory);
    let payment = Ask::payment().json(r#"{"cents":1313}"#);
    let connection = payment.begin_at(service.address).await;
    while charges(directory) == 0 {
        tokio::task::yield_now().await;
    }
    service.kill();
    drop(connection);

    let service = start(directory);
    let paid = payment.send_until_settled(service.address).await;
    assert_eq!(
        (paid.status, paid.is_replay(), &paid.json()["id"]),
        (201, false, &1.into()),
        "{}",
        paid.text()
    );
    let retry = payment.send_to(service.address).await;
    assert_eq!((retry.status, retry.is_replay(), &retry.body), (201, true, &paid.body));
    assert_eq!(charges(directory), 1);

    let declined = payment.key("another-key-0123456789").json(r#"{"cents":200000}"#);
    for replay in [false, true] {
        let answer = declined.send_to(service.address).await;
        assert_eq!((answer.status, answer.is_replay()), (402, replay), "{}", answer.text());
    }
    assert_eq!(charges(directory), 1);
}
