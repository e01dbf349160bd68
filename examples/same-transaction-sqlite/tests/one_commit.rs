//! Money leaves the account once per key, together with the row and the stored answer.

use semel_testing::http::once::Ask;
use semel_testing::program::Program;
use std::path::Path;
use std::process::Command;

fn count(file: &Path, sql: &str) -> i64 {
    let database = rusqlite::Connection::open(file).expect("the service's database");
    database.query_row(sql, [], |row| row.get(0)).expect("one number")
}

#[tokio::test]
async fn debit_row_and_answer_are_one_commit() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("payments.db");
    let mut service = Command::new(env!("CARGO_BIN_EXE_same-transaction-sqlite"));
    let running = Program::start(service.arg("127.0.0.1:0").current_dir(&directory));

    let payment = Ask::payment().json(r#"{"account":"anna","cents":1000}"#);
    let (first, twin) = tokio::join!(payment.send_to(running.address), payment.send_to(running.address));
    let outcomes = [first.status, twin.status];
    assert!(outcomes.contains(&201) && outcomes.iter().all(|status| [201, 409].contains(status)));
    let retry = payment.send_to(running.address).await;
    assert_eq!((retry.status, retry.is_replay(), retry.text()), (201, true, r#"{"id":1}"#));
    assert_eq!(count(&file, "SELECT cents FROM accounts WHERE name = 'anna'"), 1500);

    // A refusal rolls back whatever the transaction did, and is the answer that its retries get.
    let too_much = payment.key("another-key-0123456789").json(r#"{"account":"anna","cents":9000}"#);
    for replay in [false, true] {
        let refused = too_much.send_to(running.address).await;
        assert_eq!((refused.status, refused.is_replay()), (402, replay), "{}", refused.text());
    }
    assert_eq!(count(&file, "SELECT count(*) FROM payments"), 1);
}
