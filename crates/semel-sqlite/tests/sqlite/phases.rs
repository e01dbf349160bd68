//! Local phases: the domain row and the recovery point are one commit, and are not run again.

use crate::fixture::{Place, key};
use rusqlite::Connection;
use semel::fingerprint::{Command, Recipe};
use semel::transition::Refusal;
use semel::{
    Decision, Deduplicated, Engine, Finish, Incoming, Interruption, Outcome, PhaseError, Policy, Record,
    Stale, State, Store, StoreError, Ticket,
};
use semel_sqlite::{SqliteStore, Transaction};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

struct Shop {
    place: Place,
    store: SqliteStore,
    engine: Engine,
}

impl Shop {
    async fn open() -> Self {
        let place = Place::new();
        let store = place.open().await;
        store
            .transaction(|tx| tx.execute_batch("CREATE TABLE payments (id TEXT PRIMARY KEY)"))
            .await
            .unwrap();
        let engine = Engine::new(store.clone());
        Self { place, store, engine }
    }

    async fn execute(&self) -> Ticket {
        match self.begin(Policy::default().lease).await {
            Decision::Execute(ticket) => ticket,
            other => panic!("it was to execute, and got {other:?}"),
        }
    }

    /// As a process that was started just now: it judges no lease over before a whole one has passed.
    async fn execute_in_the_end(&self) -> Ticket {
        loop {
            match self.begin(Duration::from_millis(50)).await {
                Decision::Execute(ticket) => return ticket,
                Decision::InProgress { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
                other => panic!("it was to execute, and got {other:?}"),
            }
        }
    }

    async fn begin(&self, lease: Duration) -> Decision {
        let recipe = Arc::new(Recipe::builder().command("create_payment/1").build().unwrap());
        let command = Command::new(recipe, None, &"10.00 EUR").unwrap();
        let policy = Arc::new(Policy { stale: Stale::Resume, lease, ..Policy::default() });
        self.engine.begin(Incoming { key: key("phases"), subject: &command, policy }).await.unwrap()
    }

    fn connection(&self) -> Connection {
        Connection::open(self.place.path()).unwrap()
    }

    fn payments(&self) -> u32 {
        self.connection().query_row("SELECT count(*) FROM payments", [], |row| row.get(0)).unwrap()
    }

    /// The owner has given no sign of life for too long.
    fn lease_is_over(&self) {
        self.connection().execute("UPDATE semel_records SET lease_until = 0", []).unwrap();
    }

    async fn record(&self) -> Record {
        self.store.read(vec![key("phases")]).await.unwrap().items.remove(0).unwrap()
    }

    async fn recovery_point(&self) -> Option<String> {
        self.record().await.recovery_point
    }
}

fn pay(tx: &Transaction<'_>, id: &str) -> rusqlite::Result<String> {
    tx.execute("INSERT INTO payments (id) VALUES (?1)", [id])?;
    Ok(id.to_owned())
}

fn never(_: &Transaction<'_>) -> rusqlite::Result<String> {
    panic!("it is not to be run")
}

fn completed() -> Outcome {
    Outcome::Completed { response: None, resource: None }
}

fn retryable() -> Outcome {
    Outcome::Retryable { error: "resumable".into() }
}

#[tokio::test]
async fn the_row_and_the_recovery_point_are_one_commit_and_the_next_phase_goes_on_from_it() {
    let shop = Shop::open().await;
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let before = shop.store.stats().commits;
    let id = shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_1")).await.unwrap();
    assert_eq!((id.as_str(), shop.store.stats().commits), ("pay_1", before + 1));
    assert_eq!((shop.payments(), shop.recovery_point().await.as_deref()), (1, Some("created")));
    assert_eq!(ticket.recovery_point().unwrap().unwrap().0, "created");

    let charge: u32 = phases.foreign::<_, ()>("charged", Deduplicated, async |_| Ok(7)).await.unwrap();
    shop.store.phase(&mut phases, "confirmed", |tx| pay(tx, "pay_2")).await.unwrap();
    assert_eq!(shop.store.stats().commits, before + 4, "one for a row, two for a call");
    assert_eq!((charge, ticket.interruption()), (7, None));
    assert!(matches!(ticket.finish(completed()).await, Ok(Finish::Stored)));
    assert_eq!(shop.record().await.state, State::Completed);
}

#[tokio::test]
async fn what_an_earlier_attempt_committed_is_handed_over_and_not_run_again() {
    let shop = Shop::open().await;
    let dead = shop.execute().await;
    let mut phases = dead.phases().unwrap();
    shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_1")).await.unwrap();
    drop(phases);
    std::mem::forget(dead);
    shop.lease_is_over();

    // Another process, which opens the file afresh.
    let store = shop.place.open().await;
    let shop = Shop { engine: Engine::new(store.clone()), store, ..shop };
    let second = shop.execute_in_the_end().await;
    assert_eq!(second.attempt(), 2);
    let mut phases = second.phases().unwrap();
    assert_eq!(shop.store.phase(&mut phases, "created", never).await.unwrap(), "pay_1");
    shop.store.phase(&mut phases, "confirmed", |tx| pay(tx, "pay_2")).await.unwrap();
    assert_eq!(shop.payments(), 2);
    assert!(matches!(second.finish(completed()).await, Ok(Finish::Stored)));
}

#[tokio::test]
async fn a_closure_that_gives_up_leaves_neither_and_the_operation_may_go_another_way() {
    let shop = Shop::open().await;
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let given_up = shop
        .store
        .phase(&mut phases, "created", |tx| {
            pay(tx, "pay_1").map_err(|_| "the row")?;
            Err::<(), _>("no funds")
        })
        .await;
    assert!(matches!(given_up, Err(PhaseError::Application("no funds"))), "{given_up:?}");
    assert_eq!((shop.payments(), shop.recovery_point().await), (0, None));
    assert_eq!(ticket.interruption(), None, "it is the handler's to say how that ends");
    shop.store.phase(&mut phases, "declined", |tx| pay(tx, "declined")).await.unwrap();
    assert_eq!((shop.payments(), shop.recovery_point().await.as_deref()), (1, Some("declined")));
    ticket.finish(completed()).await.unwrap();
}

#[tokio::test]
async fn a_failure_between_the_row_and_the_recovery_point_leaves_neither_and_the_next_attempt_runs_it() {
    // The one fails as the record is written, the other as the whole is committed.
    let failures = [
        "CREATE TRIGGER broken BEFORE UPDATE ON semel_records WHEN NEW.recovery_point IS NOT NULL
         BEGIN SELECT RAISE(ABORT, 'as told'); END",
        "CREATE TABLE fines (payment TEXT REFERENCES payments (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER broken AFTER UPDATE ON semel_records WHEN NEW.recovery_point IS NOT NULL
         BEGIN INSERT INTO fines VALUES ('no such payment'); END",
    ];
    for failure in failures {
        let shop = Shop::open().await;
        let first = shop.execute().await;
        shop.connection().execute_batch(failure).unwrap();
        let mut phases = first.phases().unwrap();
        let failed = shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_1")).await;
        assert!(matches!(failed, Err(PhaseError::Store(StoreError::Unavailable(_)))), "{failed:?}");
        assert_eq!((shop.payments(), shop.recovery_point().await), (0, None));
        assert_eq!(first.interruption(), Some(Interruption::Resumable));
        shop.connection().execute_batch("DROP TRIGGER broken").unwrap();
        assert!(matches!(first.finish(retryable()).await, Ok(Finish::Stored)));

        let second = shop.execute().await;
        let mut phases = second.phases().unwrap();
        shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_1")).await.unwrap();
        assert_eq!((shop.payments(), shop.recovery_point().await.as_deref()), (1, Some("created")));
        second.finish(completed()).await.unwrap();
    }
}

#[tokio::test]
async fn a_closure_that_panics_leaves_neither() {
    let shop = Shop::open().await;
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let panicked = shop
        .store
        .phase(&mut phases, "created", |tx| {
            pay(tx, "pay_1")?;
            never(tx)
        })
        .await;
    assert!(matches!(panicked, Err(PhaseError::Store(StoreError::Unavailable(_)))), "{panicked:?}");
    assert_eq!((shop.payments(), shop.recovery_point().await), (0, None));
    assert_eq!(ticket.interruption(), Some(Interruption::Resumable));
    ticket.finish(retryable()).await.unwrap();
}

#[tokio::test]
async fn a_value_that_cannot_be_kept_leaves_neither() {
    let shop = Shop::open().await;
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    // JSON has no objects by such names.
    let kept = shop
        .store
        .phase(&mut phases, "created", |tx| pay(tx, "pay_1").map(|_| BTreeMap::from([((1, 2), 3)])))
        .await;
    assert!(matches!(kept, Err(PhaseError::Kept(_))), "{kept:?}");
    assert_eq!((shop.payments(), shop.recovery_point().await), (0, None));
    ticket.finish(completed()).await.unwrap();
}

#[tokio::test]
async fn the_row_of_an_owner_that_was_taken_over_rolls_back() {
    let shop = Shop::open().await;
    let late = shop.execute().await;
    let mut phases = late.phases().unwrap();
    shop.lease_is_over();
    let second = shop.execute().await;
    let refused = shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_late")).await;
    assert!(matches!(refused, Err(PhaseError::Refused(Refusal::Fenced))), "{refused:?}");
    assert_eq!((shop.payments(), shop.recovery_point().await), (0, None));
    assert_eq!(late.interruption(), Some(Interruption::InDoubt));
    assert!(matches!(late.finish(completed()).await, Ok(Finish::Fenced(_))));

    let mut phases = second.phases().unwrap();
    shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_1")).await.unwrap();
    assert_eq!(shop.payments(), 1);
    second.finish(completed()).await.unwrap();
}

#[tokio::test]
async fn an_owner_in_doubt_begins_no_local_phase_and_may_still_say_how_it_ended() {
    let shop = Shop::open().await;
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_1")).await.unwrap();
    ticket.doubt("timeout").await;
    let refused = shop.store.phase(&mut phases, "confirmed", |tx| pay(tx, "pay_2")).await;
    assert!(matches!(refused, Err(PhaseError::Refused(Refusal::InDoubt))), "{refused:?}");
    assert_eq!((shop.payments(), ticket.interruption()), (1, Some(Interruption::InDoubt)));
    assert!(matches!(ticket.finish(completed()).await, Ok(Finish::Stored)));
}

#[tokio::test]
async fn a_store_that_is_gone_is_found_out_before_anything_is_written() {
    let shop = Shop::open().await;
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    shop.store.clone().close().await;
    let failed = shop.store.phase(&mut phases, "created", |tx| pay(tx, "pay_1")).await;
    assert!(matches!(failed, Err(PhaseError::Store(StoreError::Unavailable(_)))), "{failed:?}");
    assert_eq!((shop.payments(), ticket.interruption()), (0, Some(Interruption::Resumable)));
}
