//! What a request costs at the server: statements, each a turn to the server and back, and each that writes a commit.

use crate::fixture::number;
use crate::instance::{Instance, Request, answer, finish, replayed};
use semel::{Decision, Outcome};
use semel_postgres::PgOptions;
use semel_testing::database::Database;
use semel_testing::database::Proxy;
use sqlx::ConnectOptions as _;
use tokio::task::JoinSet;

const TOGETHER: usize = 64;

/// An instance behind a proxy that counts, with every statement prepared on its connection.
async fn counted(database: &Database) -> (Proxy, Instance) {
    let (proxy, server) = Proxy::before(database.options()).await;
    let options = PgOptions::new().max_connections(1);
    let instance = Instance::open_with(options, server.to_url_lossy().as_ref()).await;
    instance.carry_out("the-very-first").await;
    let ticket = instance.execute("the-first-to-go").await;
    ticket.finish(Outcome::Released).await.unwrap();
    replayed(instance.ask("the-very-first").await);
    (proxy, instance)
}

#[tokio::test]
async fn a_request_takes_two_statements_and_so_does_a_retry() {
    let database = Database::new().await;
    let (proxy, instance) = counted(&database).await;

    let before = proxy.statements();
    let ticket = instance.execute("alone").await;
    assert_eq!(proxy.statements() - before, 1, "reserve");
    let answer = answer(&ticket);
    finish(ticket, answer).await.unwrap();
    assert_eq!(proxy.statements() - before, 2, "reserve and complete");

    // What is there is read by a statement of its own: one that inserts does not see it.
    let before = proxy.statements();
    replayed(instance.ask("alone").await);
    assert_eq!(proxy.statements() - before, 2, "a replay");
    let before = proxy.statements();
    let differs = Request::from([("amount", "11.00")]);
    assert!(matches!(instance.ask_for("alone", &differs).await, Ok(Decision::KeyReused { .. })));
    assert_eq!(proxy.statements() - before, 2, "another request under the same key");
    let ticket = instance.execute("under-way").await;
    let before = proxy.statements();
    assert!(matches!(instance.ask("under-way").await, Ok(Decision::InProgress { .. })));
    assert_eq!(proxy.statements() - before, 2, "work under way");
    let before = proxy.statements();
    ticket.finish(Outcome::Released).await.unwrap();
    assert_eq!(proxy.statements() - before, 1, "a release");
}

// On one thread, so that who comes together comes together in every run.
#[tokio::test]
async fn requests_that_come_together_share_statements_and_commits() {
    let database = Database::new().await;
    let (proxy, instance) = counted(&database).await;
    let db = database.pool().await;
    let before = proxy.statements();
    let mut together = JoinSet::new();
    for number in 0..TOGETHER {
        let instance = instance.clone();
        together.spawn(async move { instance.carry_out(&format!("together-{number}")).await });
    }
    together.join_all().await;
    let statements = proxy.statements() - before;
    // At most two batches of each kind of call, and a statement for many may have to be prepared once for each kind.
    assert!(statements <= 6, "{TOGETHER} operations at once took {statements} statements");
    let commits =
        number(&db, "SELECT count(DISTINCT xmin::text) FROM semel_records WHERE key LIKE 'together-%'").await;
    assert!(commits <= 2, "{TOGETHER} completions at once took {commits} commits");
}
