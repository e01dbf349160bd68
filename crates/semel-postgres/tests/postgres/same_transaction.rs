//! Domain rows and the operation's outcome: one commit, or nothing.

use crate::fixture::{complete, draft, number, open, read, reserved, swap};
use semel::transition::{Act, Claim, Refusal, Windows};
use semel::{Owner, Policy, Record, State, Store, Swap, Swapped, When};
use semel_postgres::{ActError, PgOptions, PgStore, Reserved, act_in, commit_with, reserve_in};
use semel_testing::database::Database;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{PgPool, raw_sql};
use std::time::Duration;

/// Longer than any machine is busy.
const PATIENCE: Duration = Duration::from_secs(30);

async fn store_with_payments(database: &Database) -> (PgStore, PgPool) {
    let (store, db) = (open(database).await, database.pool().await);
    raw_sql("CREATE TABLE payments (id text PRIMARY KEY, amount bigint NOT NULL)")
        .execute(&db)
        .await
        .unwrap();
    (store, db)
}

async fn payments(db: &PgPool) -> i64 {
    number(db, "SELECT count(*) FROM payments").await
}

async fn pay(conn: &mut PgConnection, id: &str) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO payments (id, amount) VALUES ($1, 100)").bind(id).execute(conn).await.map(drop)
}

#[tokio::test]
async fn domain_row_and_completion_appear_together() {
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    let record = reserved(&store, "together").await;

    let mut tx = db.begin().await.unwrap();
    pay(&mut tx, "pay_1").await.unwrap();
    let completed = act_in(&mut tx, &Claim::of(&record), &complete()).await.unwrap();
    assert_eq!(payments(&db).await, 0, "not before the commit");
    assert_eq!(read(&store, "together").await, Some(record));
    tx.commit().await.unwrap();

    assert_eq!(payments(&db).await, 1);
    let stored = read(&store, "together").await;
    assert_eq!(stored, completed);
    assert_eq!(stored.unwrap().state, State::Completed);
}

#[tokio::test]
async fn a_failure_between_domain_row_and_completion_leaves_neither() {
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    let record = reserved(&store, "neither").await;
    let fail = async |after_the_act: bool| {
        let mut tx = db.begin().await?;
        pay(&mut tx, "pay_1").await?;
        if after_the_act {
            act_in(&mut tx, &Claim::of(&record), &complete()).await?;
        }
        // The second row of the same id is the failure: the server's, in the middle of the transaction.
        pay(&mut tx, "pay_1").await?;
        tx.commit().await?;
        Ok::<_, ActError>(())
    };
    for after_the_act in [false, true] {
        assert!(matches!(fail(after_the_act).await, Err(ActError::Sqlx(_))));
        assert_eq!(payments(&db).await, 0);
        assert_eq!(read(&store, "neither").await.as_ref(), Some(&record));
    }
}

async fn taken_over(store: &PgStore, record: &Record) {
    let mut taken = draft("taken");
    taken.key = record.key.clone();
    (taken.operation_id, taken.version, taken.attempt) = (record.operation_id, record.version + 1, 2);
    (taken.owner, taken.times.created) = (Owner::random(), When::At(record.times.created));
    let taken = Swap { expected: record.expected(), next: Box::new(taken), history: None };
    assert_eq!(swap(store, taken).await, Swapped::Done);
}

#[tokio::test]
async fn the_domain_rows_of_a_fenced_owner_roll_back() {
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    let record = reserved(&store, "fenced").await;
    taken_over(&store, &record).await;

    let late = async {
        let mut tx = db.begin().await?;
        pay(&mut tx, "pay_late").await?;
        act_in(&mut tx, &Claim::of(&record), &complete()).await?;
        tx.commit().await?;
        Ok::<_, ActError>(())
    };
    let refused = late.await;
    assert!(matches!(refused, Err(ActError::Refused(Refusal::Fenced))), "{refused:?}");
    assert_eq!(payments(&db).await, 0);
    assert_eq!(read(&store, "fenced").await.unwrap().attempt, 2);
}

#[tokio::test]
async fn an_owner_whose_record_is_gone_is_fenced() {
    let database = Database::new().await;
    let (_store, db) = store_with_payments(&database).await;
    let mut tx = db.begin().await.unwrap();
    let refused = act_in(&mut tx, &Claim::of(&draft("never-written")), &complete()).await;
    assert!(matches!(refused, Err(ActError::Refused(Refusal::Fenced))));
}

#[tokio::test]
async fn reserving_paying_and_completing_are_one_commit() {
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    let at_once = async |id: &str, fails: bool| {
        let mut tx = db.begin().await?;
        let record = match reserve_in(&mut tx, draft("at-once")).await? {
            Reserved::New(record) => {
                pay(&mut tx, id).await?;
                act_in(&mut tx, &Claim::of(&record), &complete()).await?.map(Box::new)
            }
            Reserved::Exists(record) => Some(record),
            Reserved::Locked => None,
        };
        if fails {
            return Err(ActError::Sqlx(sqlx::Error::RowNotFound));
        }
        tx.commit().await?;
        Ok(record)
    };
    assert!(at_once("pay_0", true).await.is_err());
    assert_eq!((payments(&db).await, read(&store, "at-once").await), (0, None), "rolled back together");
    let record = at_once("pay_1", false).await.unwrap().unwrap();
    assert_eq!((record.state, record.version), (State::Completed, 2));
    // The retry finds it, and pays nothing.
    let again = at_once("pay_2", false).await.unwrap().unwrap();
    assert_eq!(again, record);
    assert_eq!(Some(*again), read(&store, "at-once").await);
    assert_eq!(payments(&db).await, 1);
}

#[tokio::test]
async fn a_release_removes_the_record_and_its_history_with_the_transaction() {
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    let record = reserved(&store, "released").await;
    let release = Act::Release { windows: Windows::from(&Policy::default()) };
    for commit in [false, true] {
        let mut tx = db.begin().await.unwrap();
        assert_eq!(act_in(&mut tx, &Claim::of(&record), &release).await.unwrap(), None);
        if commit {
            tx.commit().await.unwrap()
        } else {
            tx.rollback().await.unwrap()
        }
        assert_eq!(read(&store, "released").await.is_none(), commit);
    }
}

#[tokio::test]
async fn history_is_written_with_the_transaction() {
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    let record = reserved(&store, "told").await;
    let failed = Act::Retryable { error: "no_funds\0".into(), windows: Windows::from(&Policy::default()) };
    let mut tx = db.begin().await.unwrap();
    act_in(&mut tx, &Claim::of(&record), &failed).await.unwrap();
    tx.commit().await.unwrap();
    let history = store.history(record.operation_id).await.unwrap();
    assert_eq!((history.len(), history[0].entry.note.as_deref()), (1, Some("no_funds\0")));
}

#[tokio::test]
async fn a_connection_that_is_not_fit_is_refused() {
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    let record = reserved(&store, "unfit").await;
    let mut conn = db.acquire().await.unwrap();
    let outside = act_in(&mut conn, &Claim::of(&record), &complete()).await;
    assert!(matches!(outside, Err(ActError::NoTransaction)), "{outside:?}");
    assert!(matches!(reserve_in(&mut conn, draft("outside")).await, Err(ActError::NoTransaction)));

    let mut tx = db.begin().await.unwrap();
    raw_sql("SET LOCAL synchronous_commit = off").execute(&mut *tx).await.unwrap();
    let lossy = act_in(&mut tx, &Claim::of(&record), &complete()).await;
    assert!(matches!(lossy, Err(ActError::NotDurable)), "{lossy:?}");
    assert!(matches!(reserve_in(&mut tx, draft("lossy")).await, Err(ActError::NotDurable)));
    tx.commit().await.unwrap();
    assert_eq!(store.list(semel::Filter::default(), None, 10).await.unwrap().records, [record]);
}

#[tokio::test]
async fn the_same_goes_by_way_of_pgbouncer() {
    let database = Database::new().await;
    let options = PgOptions::new().without_prepared_statements();
    let store = options.connect(&database.url_by_pgbouncer()).await.unwrap();
    for name in ["first", "second", "third"] {
        let mut tx = store.pool().begin().await.unwrap();
        let Reserved::New(record) = store.reserve_in(&mut tx, draft(name)).await.unwrap() else {
            panic!("it is new")
        };
        let completed = store.act_in(&mut tx, &Claim::of(&record), &complete()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(read(&store, name).await, completed);
    }
}

/// The free functions know of no options: they have to be right wherever the application's connections lead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_free_functions_go_by_way_of_pgbouncer_too() {
    const PAYMENTS: usize = 40;
    let database = Database::new().await;
    let (store, db) = store_with_payments(&database).await;
    // PgBouncer refuses a connection that asks for a setting which it does not know. More connections than it has to the server: they
    // change all the time.
    let way = database.options_by_pgbouncer().extra_float_digits(None);
    let pooled =
        PgPoolOptions::new().max_connections(20).acquire_timeout(PATIENCE).connect_with(way).await.unwrap();
    let paying = (0..PAYMENTS).map(|number| {
        let (store, pooled) = (store.clone(), pooled.clone());
        tokio::spawn(async move {
            let insert = sqlx::query("INSERT INTO payments (id, amount) VALUES ($1, 100)").persistent(false);
            if number % 2 == 0 {
                let record = reserved(&store, &format!("acted-{number}")).await;
                let mut tx = pooled.begin().await.unwrap();
                insert.bind(number.to_string()).execute(&mut *tx).await.unwrap();
                commit_with(tx, &Claim::of(&record), &complete()).await.unwrap();
            } else {
                let mut tx = pooled.begin().await.unwrap();
                let Reserved::New(record) =
                    reserve_in(&mut tx, draft(&format!("reserved-{number}"))).await.unwrap()
                else {
                    panic!("nobody has it")
                };
                insert.bind(number.to_string()).execute(&mut *tx).await.unwrap();
                act_in(&mut tx, &Claim::of(&*record), &complete()).await.unwrap();
                tx.commit().await.unwrap();
            }
        })
    });
    for paid in paying.collect::<Vec<_>>() {
        paid.await.unwrap();
    }
    assert_eq!(payments(&db).await, PAYMENTS as i64);
    let completed = "SELECT count(*) FROM semel_records WHERE state = 'completed'";
    assert_eq!(number(&db, completed).await, PAYMENTS as i64);
}
