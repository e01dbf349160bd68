//! Domain rows and the operation's outcome: one commit, or nothing.

use crate::fixture::{Place, complete, create, draft, read};
use rusqlite::Connection;
use semel::transition::{Claim, Refusal};
use semel::{Created, Owner, State, Store, StoreError, Swap, When};
use semel_sqlite::{ActError, Reserved, SqliteStore, TransactionError, act_in, reserve_in};

async fn store_with_payments(place: &Place) -> SqliteStore {
    let store = place.open().await;
    store
        .transaction(|tx| {
            tx.execute_batch("CREATE TABLE payments (id TEXT PRIMARY KEY, amount INTEGER NOT NULL)")
        })
        .await
        .unwrap();
    store
}

fn payments(place: &Place) -> i64 {
    let conn = Connection::open(place.path()).unwrap();
    conn.query_row("SELECT count(*) FROM payments", [], |row| row.get(0)).unwrap()
}

fn pay(conn: &Connection, id: &str) -> rusqlite::Result<()> {
    conn.execute("INSERT INTO payments (id, amount) VALUES (?1, 100)", [id]).map(drop)
}

#[tokio::test]
async fn domain_row_and_completion_appear_together() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    let reserved = draft("together");
    create(&store, reserved.clone()).await;
    let (paid, record) = store
        .finish_with(Claim::of(&reserved), |tx| {
            pay(tx, "pay_1")?;
            Ok::<_, rusqlite::Error>(("pay_1", complete()))
        })
        .await
        .unwrap();
    assert_eq!((paid, record.unwrap().state), ("pay_1", State::Completed));
    assert_eq!(payments(&place), 1);
    let stored = read(&store, "together").await.unwrap();
    assert_eq!((stored.state, stored.response.unwrap().status), (State::Completed, 201));
}

#[tokio::test]
async fn a_closure_that_fails_leaves_neither_row_nor_completion() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    let reserved = draft("neither");
    create(&store, reserved.clone()).await;
    let failed = store
        .finish_with(Claim::of(&reserved), |tx| {
            pay(tx, "pay_1").unwrap();
            Err::<((), _), _>("no money")
        })
        .await;
    assert!(matches!(failed, Err(TransactionError::Application("no money"))));
    assert_eq!(payments(&place), 0);
    assert_eq!(read(&store, "neither").await.unwrap().state, State::InProgress);
}

/// Holds the file's write lock until it is dropped, so that everything sent meanwhile ends up in one group.
struct Held(Connection);

fn hold(place: &Place) -> Held {
    let conn = Connection::open(place.path()).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    Held(conn)
}

impl Held {
    fn let_go(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[tokio::test]
async fn failing_and_panicking_closures_do_not_disturb_the_others_of_their_group() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    let before = store.stats();
    let held = hold(&place);
    // The first one takes the writer into its wait for the lock; the others gather behind it.
    let first = tokio::spawn({
        let store = store.clone();
        async move { create(&store, draft("first")).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let failing = store.transaction(|tx| {
        pay(tx, "failing").unwrap();
        Err::<(), _>("given up")
    });
    let panicking = store.transaction(|tx| {
        pay(tx, "panicking").unwrap();
        if tx.now().as_millis() > 0 {
            std::panic::resume_unwind(Box::new("out of luck"));
        }
        Ok::<_, ()>(())
    });
    let breaking = store.transaction(|tx| {
        pay(tx, "twice")?;
        pay(tx, "twice")
    });
    let paying = store.transaction(|tx| pay(tx, "paying"));
    let creating = create(&store, draft("beside"));
    let letting_go = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        held.let_go();
    };
    let (failing, panicking, breaking, paying, creating, ()) =
        tokio::join!(failing, panicking, breaking, paying, creating, letting_go);
    assert!(matches!(failing, Err(TransactionError::Application("given up"))));
    assert!(matches!(panicking, Err(TransactionError::Panicked(words)) if words == "out of luck"));
    assert!(matches!(breaking, Err(TransactionError::Application(_))));
    paying.unwrap();
    assert_eq!(creating, Created::Inserted);
    assert_eq!(first.await.unwrap(), Created::Inserted);
    assert_eq!(payments(&place), 1);
    let commits = store.stats().commits - before.commits;
    assert!(commits <= 2, "one for the first, one for all the others, not {commits}");
}

#[tokio::test]
async fn the_domain_rows_of_a_fenced_owner_roll_back() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    let reserved = draft("fenced");
    create(&store, reserved.clone()).await;
    let late = Claim::of(&reserved);
    let record = read(&store, "fenced").await.unwrap();
    let mut taken = reserved.clone();
    (taken.version, taken.attempt, taken.owner) = (2, 2, Owner::random());
    taken.times.created = When::At(record.times.created);
    let swap = Swap { expected: record.expected(), next: Box::new(taken), history: None };
    store.swap(vec![swap]).await.unwrap();

    let refused = store
        .finish_with(late, |tx| {
            pay(tx, "pay_late")?;
            Ok::<_, rusqlite::Error>(((), complete()))
        })
        .await;
    assert!(matches!(refused, Err(TransactionError::Refused(Refusal::Fenced))), "{refused:?}");
    assert_eq!(payments(&place), 0);
    assert_eq!(read(&store, "fenced").await.unwrap().state, State::InProgress);
}

#[tokio::test]
async fn an_owner_whose_record_is_gone_is_fenced() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    let refused = store
        .finish_with(Claim::of(&draft("never-written")), |tx| {
            pay(tx, "pay_1")?;
            Ok::<_, rusqlite::Error>(((), complete()))
        })
        .await;
    assert!(matches!(refused, Err(TransactionError::Refused(Refusal::Fenced))));
    assert_eq!(payments(&place), 0);
}

#[tokio::test]
async fn reserving_paying_and_completing_are_one_commit() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    let before = store.stats().commits;
    let at_once = |draft: semel::Draft, id: &'static str| {
        store.transaction(move |tx| match tx.reserve(draft)? {
            Reserved::New(record) => {
                pay(tx, id)?;
                Ok::<_, ActError>(tx.act(&Claim::of(&record), &complete())?.map(Box::new))
            }
            Reserved::Exists(record) => Ok(Some(record)),
        })
    };
    let record = at_once(draft("at-once"), "pay_1").await.unwrap().unwrap();
    assert_eq!((record.state, record.version), (State::Completed, 2));
    assert_eq!(store.stats().commits, before + 1);
    // The retry finds it, and pays nothing.
    let again = at_once(draft("at-once"), "pay_2").await.unwrap().unwrap();
    assert_eq!(again.operation_id, record.operation_id);
    assert_eq!(*again, read(&store, "at-once").await.unwrap());
    assert_eq!(payments(&place), 1);
}

#[tokio::test]
async fn a_closure_cannot_end_the_transaction_that_it_shares() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    for words in ["COMMIT", "ROLLBACK", "BEGIN", "RELEASE semel_closure", "ROLLBACK TO semel_closure"] {
        let refused = store
            .transaction(move |tx| {
                pay(tx, words)?;
                tx.execute_batch(words)
            })
            .await;
        assert!(matches!(refused, Err(TransactionError::Application(_))), "{words}: {refused:?}");
    }
    // Savepoints of its own are its own business.
    store
        .transaction(|tx| {
            pay(tx, "kept")?;
            tx.execute_batch("SAVEPOINT mine")?;
            pay(tx, "undone")?;
            tx.execute_batch("ROLLBACK TO mine; RELEASE mine")
        })
        .await
        .unwrap();
    assert_eq!(payments(&place), 1);
}

#[tokio::test]
async fn a_foreign_key_that_is_broken_at_commit_costs_only_the_closures() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    store
        .transaction(|tx| {
            tx.execute_batch(
                "CREATE TABLE refunds (payment TEXT REFERENCES payments (id) DEFERRABLE INITIALLY DEFERRED)",
            )
        })
        .await
        .unwrap();
    let held = hold(&place);
    let first = tokio::spawn({
        let store = store.clone();
        async move { create(&store, draft("first")).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let breaking = store.transaction(|tx| tx.execute("INSERT INTO refunds VALUES ('no such payment')", []));
    let letting_go = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        held.let_go();
    };
    let (breaking, creating, ()) = tokio::join!(breaking, create(&store, draft("beside")), letting_go);
    assert!(matches!(breaking, Err(TransactionError::Store(StoreError::Unavailable(_)))), "{breaking:?}");
    assert_eq!(creating, Created::Inserted);
    assert_eq!(first.await.unwrap(), Created::Inserted);
}

#[tokio::test]
async fn an_application_completes_on_a_connection_of_its_own() {
    let place = Place::new();
    let store = store_with_payments(&place).await;
    let mut conn = Connection::open(place.path()).unwrap();
    let immediate = rusqlite::TransactionBehavior::Immediate;

    let tx = conn.transaction_with_behavior(immediate).unwrap();
    let Reserved::New(record) = reserve_in(&tx, draft("own")).unwrap() else { panic!("it is new") };
    pay(&tx, "pay_1").unwrap();
    act_in(&tx, &Claim::of(&record), &complete()).unwrap();
    drop(tx);
    assert_eq!((payments(&place), read(&store, "own").await), (0, None), "rolled back together");

    let tx = conn.transaction_with_behavior(immediate).unwrap();
    let Reserved::New(record) = reserve_in(&tx, draft("own")).unwrap() else { panic!("it is new") };
    pay(&tx, "pay_1").unwrap();
    let completed = act_in(&tx, &Claim::of(&record), &complete()).unwrap();
    tx.commit().unwrap();
    assert_eq!((payments(&place), read(&store, "own").await), (1, completed), "committed together");

    let tx = conn.transaction_with_behavior(immediate).unwrap();
    assert!(matches!(reserve_in(&tx, draft("own")), Ok(Reserved::Exists(_))));
    let again = act_in(&tx, &Claim::of(&record), &complete());
    assert!(matches!(again, Err(ActError::Refused(Refusal::Finished))), "{again:?}");
}

#[tokio::test]
async fn a_connection_that_could_lose_the_commit_or_the_race_is_refused() {
    let place = Place::new();
    let store = place.open().await;
    let mut conn = Connection::open(place.path()).unwrap();
    let outside = reserve_in(&conn, draft("outside"));
    assert!(matches!(outside, Err(ActError::NoWriteTransaction)), "{outside:?}");
    let deferred = conn.transaction().unwrap();
    assert!(matches!(reserve_in(&deferred, draft("deferred")), Err(ActError::NoWriteTransaction)));
    drop(deferred);
    conn.pragma_update(None, "synchronous", "NORMAL").unwrap();
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    assert!(matches!(reserve_in(&tx, draft("unsynced")), Err(ActError::NotDurable)));
    drop(tx);
    assert_eq!(store.list(semel::Filter::default(), None, 10).await.unwrap().records, vec![]);
}
