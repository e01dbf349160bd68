//! Money leaves the account once per key, also when the service is killed in the middle of its transaction.

use semel_testing::database::Database;
use semel_testing::http::once::Ask;
use semel_testing::program::Program;
use sqlx::{Executor as _, PgConnection};
use std::process::Command;

async fn number(database: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(database).await.expect("one number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_killed_in_its_transaction_leaves_nothing_and_the_retry_pays_once() {
    let database = Database::new().await;
    let start = || {
        let mut service = Command::new(env!("CARGO_BIN_EXE_same-transaction-postgres"));
        Program::start(service.args([database.url().as_str(), "127.0.0.1:0"]))
    };
    let mut service = start();
    let mut observer = database.connection().await;

    // The debit waits for this lock, and the service dies there: reserved, and in the middle of its transaction.
    let mut lock = database.connection().await;
    lock.execute("BEGIN; SELECT 1 FROM accounts WHERE name = 'anna' FOR UPDATE").await.expect("the lock");
    let payment = Ask::payment().json(r#"{"account":"anna","cents":1000}"#);
    let sent = tokio::spawn({
        let (payment, address) = (payment.clone(), service.address);
        async move { payment.begin_at(address).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE accounts%'";
    while number(&mut observer, waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    service.kill();
    drop(sent.await);
    lock.execute("ROLLBACK").await.expect("the lock is released");

    let service = start();
    let paid = payment.send_until_settled(service.address).await;
    assert_eq!((paid.status, paid.is_replay()), (201, false), "{}", paid.text());
    let retry = payment.send_to(service.address).await;
    assert_eq!((retry.status, retry.is_replay(), &retry.body), (201, true, &paid.body));
    assert_eq!(number(&mut observer, "SELECT cents FROM accounts WHERE name = 'anna'").await, 1500);
    assert_eq!(number(&mut observer, "SELECT count(*) FROM payments").await, 1);
}
