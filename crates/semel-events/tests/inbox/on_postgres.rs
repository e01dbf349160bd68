//! Effect and mark in one transaction of PostgreSQL.

use crate::ledger::{Ledger, enter, id};
use semel::StoreError;
use semel_events::consumer::Failure;
use semel_events::inbox::{Forgotten, Handled, InboxError, PgInbox, Retention};
use semel_testing::database::{Cut, Proxy};
use sqlx::postgres::PgPoolOptions;
use std::time::Duration;
use tokio::sync::oneshot;

#[tokio::test]
async fn a_message_has_its_effect_once() {
    let ledger = Ledger::new().await;
    let handle = async || ledger.inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await.unwrap();
    assert_eq!(handle().await, Handled::Now(()));
    assert_eq!(handle().await, Handled::Before);
    assert_eq!(ledger.lines().await, ["pay_1"]);
}

#[tokio::test]
async fn each_consumer_handles_a_message_by_itself() {
    let ledger = Ledger::new().await;
    let mail = PgInbox::new(ledger.pool.clone(), "mail").unwrap();
    for inbox in [&ledger.inbox, &mail, &ledger.inbox, &mail] {
        let _either = inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await.unwrap();
    }
    assert_eq!(ledger.lines().await.len(), 2);
}

#[tokio::test]
async fn an_effect_that_fails_leaves_neither_rows_nor_a_mark() {
    let ledger = Ledger::new().await;
    let failed = ledger
        .inbox
        .handle(&id("m1"), async |tx| {
            enter(tx, "pay_1").await?;
            Err::<(), _>(Failure::Failed("no".into()))
        })
        .await;
    assert!(matches!(failed, Err(InboxError::Application(Failure::Failed(_)))), "{failed:?}");
    assert_eq!((ledger.lines().await.len(), ledger.marks().await), (0, 0));
    let again = ledger.inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await.unwrap();
    assert_eq!(again, Handled::Now(()));
}

#[tokio::test]
async fn of_two_deliveries_at_once_one_runs_and_the_other_is_told_so() {
    let ledger = Ledger::new().await;
    for first_commits in [true, false] {
        let message = id(&format!("m-{first_commits}"));
        let (entered, running) = oneshot::channel();
        let (go_on, held) = oneshot::channel::<()>();
        let first = tokio::spawn({
            let (inbox, message) = (ledger.inbox.clone(), message.clone());
            async move {
                let work = async |tx: &mut sqlx::PgConnection| {
                    enter(tx, "pay_1").await?;
                    entered.send(()).unwrap();
                    held.await.unwrap();
                    if first_commits { Ok(()) } else { Err(Failure::Failed("no".into())) }
                };
                inbox.handle(&message, work).await
            }
        });
        running.await.unwrap();
        let second = ledger.inbox.handle(&message, async |tx| enter(tx, "pay_1").await);
        let second =
            tokio::time::timeout(Duration::from_secs(20), second).await.expect("nobody waits for it");
        assert!(matches!(second, Err(InboxError::InProgress)), "{second:?}");
        assert!(matches!(Failure::from(second.unwrap_err()), Failure::NotNow(_)));
        go_on.send(()).unwrap();
        assert_eq!(first.await.unwrap().is_ok(), first_commits);
        let third = ledger.inbox.handle(&message, async |tx| enter(tx, "pay_1").await).await.unwrap();
        assert_eq!(third == Handled::Before, first_commits);
    }
    assert_eq!(ledger.lines().await.len(), 2);
}

#[tokio::test]
async fn a_crowd_of_deliveries_has_one_effect() {
    let ledger = Ledger::new().await;
    let crowd = (0..20).map(|_| {
        let inbox = ledger.inbox.clone();
        tokio::spawn(async move {
            loop {
                match inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await {
                    Err(InboxError::InProgress) => tokio::task::yield_now().await,
                    handled => return handled.unwrap(),
                }
            }
        })
    });
    let mut first = 0;
    for one in crowd.collect::<Vec<_>>() {
        first += usize::from(one.await.unwrap() == Handled::Now(()));
    }
    assert_eq!((first, ledger.lines().await.len()), (1, 1));
}

#[tokio::test]
async fn a_consumer_that_dies_in_its_transaction_leaves_nothing() {
    let ledger = Ledger::new().await;
    let (entered, running) = oneshot::channel();
    let dying = tokio::spawn({
        let inbox = ledger.inbox.clone();
        async move {
            let work = async |tx: &mut sqlx::PgConnection| {
                enter(tx, "pay_1").await?;
                entered.send(()).unwrap();
                std::future::pending::<Result<(), sqlx::Error>>().await
            };
            inbox.handle(&id("m1"), work).await.map(drop)
        }
    });
    running.await.unwrap();
    dying.abort();
    assert!(dying.await.unwrap_err().is_cancelled());
    // The connection rolls back when the pool gets round to it; until then the message is in progress.
    let handled = loop {
        match ledger.inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await {
            Err(InboxError::InProgress) => tokio::task::yield_now().await,
            handled => break handled.unwrap(),
        }
    };
    assert_eq!((handled, ledger.lines().await.len()), (Handled::Now(()), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_found_out_by_the_next_delivery() {
    let ledger = Ledger::new().await;
    let (proxy, options) = Proxy::before(ledger.database.options()).await;
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let inbox = PgInbox::new(pool, "ledger").unwrap();
    for (message, cut, there) in [("m1", Cut::AnswerOfCommit, true), ("m2", Cut::Commit, false)] {
        proxy.cut_next(cut);
        let lost = inbox.handle(&id(message), async |tx| enter(tx, message).await).await;
        assert!(matches!(lost, Err(InboxError::Store(StoreError::Lost(_)))), "{lost:?}");
        assert!(proxy.has_cut());
        let again = loop {
            match ledger.inbox.handle(&id(message), async |tx| enter(tx, message).await).await {
                Err(InboxError::InProgress) => tokio::task::yield_now().await,
                handled => break handled.unwrap(),
            }
        };
        assert_eq!(again == Handled::Before, there, "{cut:?}");
    }
    assert_eq!(ledger.lines().await, ["m1", "m2"]);
}

#[tokio::test]
async fn a_commit_that_the_database_refuses_counts_as_a_failure() {
    let ledger = Ledger::new().await;
    let only_one = "ALTER TABLE ledger ADD UNIQUE (payment) DEFERRABLE INITIALLY DEFERRED";
    sqlx::raw_sql(only_one).execute(&ledger.pool).await.unwrap();
    let _first = ledger.inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await.unwrap();
    let refused = ledger.inbox.handle(&id("m2"), async |tx| enter(tx, "pay_1").await).await.unwrap_err();
    assert!(matches!(refused, InboxError::Refused(_)), "{refused:?}");
    assert!(matches!(Failure::from(refused), Failure::Failed(_)));
    assert_eq!((ledger.lines().await.len(), ledger.marks().await), (1, 1));
}

/// Enters a payment, and takes a failure after it for nothing worth telling.
async fn passing_over(tx: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
    enter(tx, "pay_1").await?;
    let failed = sqlx::query("INSERT INTO ledger (payment) VALUES (NULL)").execute(tx).await;
    assert!(failed.is_err());
    Ok(())
}

#[tokio::test]
async fn a_failure_that_the_work_passes_over_is_not_taken_for_a_commit() {
    let ledger = Ledger::new().await;
    let steps = ledger.inbox.steps::<Failure>(&id("m2")).await.unwrap().unwrap();
    for refused in [
        ledger.inbox.handle(&id("m1"), async |tx| passing_over(tx).await).await.unwrap_err(),
        steps.effect("ledger_payment_pay_1", async |tx| passing_over(tx).await).await.unwrap_err(),
    ] {
        assert!(matches!(refused, InboxError::Refused(_)), "{refused:?}");
        let Failure::Failed(why) = Failure::from(refused) else { panic!("it counts against the message") };
        assert!(why.contains("was ignored"), "{why}");
    }
    assert_eq!((ledger.lines().await.len(), ledger.marks().await), (0, 0));
    let again = steps.effect("ledger_payment_pay_1", async |tx| enter(tx, "pay_1").await).await.unwrap();
    assert_eq!(again, Handled::Now(()), "its mark went with it");
    let again = ledger.inbox.handle(&id("m1"), async |tx| enter(tx, "pay_2").await).await.unwrap();
    assert_eq!(again, Handled::Now(()), "and so did the message's");
    assert_eq!(ledger.lines().await, ["pay_1", "pay_2"]);
}

#[tokio::test]
async fn a_statement_after_one_that_was_passed_over_fails_for_the_message_and_not_for_the_moment() {
    let ledger = Ledger::new().await;
    let work = async |tx: &mut sqlx::PgConnection| {
        passing_over(tx).await?;
        enter(tx, "pay_2").await
    };
    let failed = ledger.inbox.handle(&id("m1"), work).await.unwrap_err();
    assert!(matches!(failed, InboxError::Application(_)), "{failed:?}");
    let Failure::Failed(why) = Failure::from(failed) else { panic!("else it would be tried for ever") };
    assert!(why.contains("was ignored"), "{why}");
    assert_eq!((ledger.lines().await.len(), ledger.marks().await), (0, 0));
}

#[tokio::test]
async fn a_failure_within_a_savepoint_may_be_passed_over() {
    use sqlx::Connection as _;
    let ledger = Ledger::new().await;
    let work = async |tx: &mut sqlx::PgConnection| {
        enter(tx, "pay_1").await?;
        let mut savepoint = tx.begin().await?;
        assert!(passing_over(&mut savepoint).await.is_ok());
        savepoint.rollback().await
    };
    assert_eq!(ledger.inbox.handle(&id("m1"), work).await.unwrap(), Handled::Now(()));
    assert_eq!((ledger.lines().await, ledger.marks().await), (vec!["pay_1".into()], 1));
}

#[tokio::test]
async fn a_mark_in_a_transaction_of_ones_own_commits_with_it() {
    let ledger = Ledger::new().await;
    for (commits, first) in [(false, true), (true, true), (true, false)] {
        let mut tx = ledger.pool.begin().await.unwrap();
        assert_eq!(ledger.inbox.mark_in(&mut tx, &id("m1")).await.unwrap(), first);
        if first {
            enter(&mut tx, "pay_1").await.unwrap();
        }
        if commits { tx.commit().await.unwrap() } else { tx.rollback().await.unwrap() }
    }
    assert_eq!(ledger.lines().await, ["pay_1"]);
}

#[tokio::test]
async fn outside_of_a_transaction_nothing_is_marked() {
    let ledger = Ledger::new().await;
    let mut conn = ledger.pool.acquire().await.unwrap();
    let refused = ledger.inbox.mark_in(&mut conn, &id("m1")).await.unwrap_err();
    assert!(matches!(refused, InboxError::NoTransaction), "{refused:?}");
    assert!(matches!(Failure::from(refused), Failure::NotNow(_)), "no fault of the message");
    let handled = ledger.inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await.unwrap();
    assert_eq!((handled, ledger.lines().await.len()), (Handled::Now(()), 1));
}

/// Ledger entry and receipt, where the receipt fails.
async fn half_failing(inbox: &PgInbox, message: &str, receipt_works: bool) -> Result<[bool; 2], Failure> {
    let Some(steps) = inbox.steps::<Failure>(&id(message)).await? else { return Ok([false; 2]) };
    let entered = steps.effect("ledger_payment_pay_789", async |tx| enter(tx, "entry").await).await?;
    let receipt = async |tx: &mut sqlx::PgConnection| {
        enter(tx, "receipt").await?;
        if receipt_works { Ok(()) } else { Err(Failure::Failed("the mail is refused".into())) }
    };
    let sent = steps.effect("receipt_payment_pay_789", receipt).await?;
    steps.finish::<Failure>().await?;
    Ok([entered == Handled::Now(()), sent == Handled::Now(())])
}

#[tokio::test]
async fn a_handler_that_failed_half_way_goes_on_to_the_end_and_repeats_nothing() {
    let ledger = Ledger::new().await;
    for _ in 0..3 {
        let failed = half_failing(&ledger.inbox, "m1", false).await;
        assert!(matches!(failed, Err(Failure::Failed(_))), "{failed:?}");
        assert_eq!((ledger.lines().await, ledger.marks().await), (vec!["entry".into()], 0));
    }
    assert_eq!(half_failing(&ledger.inbox, "m1", true).await, Ok([false, true]));
    assert_eq!((ledger.lines().await, ledger.marks().await), (vec!["entry".into(), "receipt".into()], 1));
    assert_eq!(half_failing(&ledger.inbox, "m1", true).await, Ok([false, false]), "handled before");
}

#[tokio::test]
async fn an_effect_that_two_messages_tell_of_happens_once() {
    let ledger = Ledger::new().await;
    assert_eq!(half_failing(&ledger.inbox, "m1", true).await, Ok([true, true]));
    assert_eq!(half_failing(&ledger.inbox, "m2", true).await, Ok([false, false]));
    assert_eq!((ledger.lines().await.len(), ledger.marks().await), (2, 2));
}

#[tokio::test]
async fn a_killed_handler_of_several_effects_goes_on_after_the_last_committed_one() {
    let ledger = Ledger::new().await;
    let steps = ledger.inbox.steps::<Failure>(&id("m1")).await.unwrap().unwrap();
    let _first = steps.effect("ledger_payment_pay_789", async |tx| enter(tx, "entry").await).await.unwrap();
    drop(steps);
    assert_eq!(half_failing(&ledger.inbox, "m1", true).await, Ok([false, true]));
    assert_eq!(ledger.lines().await, ["entry", "receipt"]);
}

#[tokio::test]
async fn an_effect_that_a_crash_could_undo_is_not_marked() {
    let ledger = Ledger::new().await;
    let options = ledger.database.options().options([("synchronous_commit", "off")]);
    let inbox = PgInbox::new(PgPoolOptions::new().connect_with(options).await.unwrap(), "ledger").unwrap();
    let refused = inbox.handle(&id("m1"), async |tx| enter(tx, "pay_1").await).await.unwrap_err();
    assert!(matches!(refused, InboxError::NotDurable), "{refused:?}");
    assert!(matches!(Failure::from(refused), Failure::NotNow(_)), "no fault of the message");
    assert_eq!((ledger.lines().await.len(), ledger.marks().await), (0, 0));
}

#[tokio::test]
async fn behind_a_pooler_in_transaction_mode_it_is_the_same() {
    let ledger = Ledger::new().await;
    // As an application connects by way of PgBouncer: without statements that outlive their transaction.
    let options = ledger.database.options_by_pgbouncer().statement_cache_capacity(0).extra_float_digits(None);
    let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
    let inbox = PgInbox::new(pool, "ledger").unwrap();
    let messages: Vec<_> = (0..20).map(|number| format!("m{number}")).collect();
    for again in [false, true] {
        let handling = messages.iter().map(|message| {
            let (inbox, message) = (inbox.clone(), message.clone());
            tokio::spawn(async move {
                let handled = inbox.steps::<Failure>(&id(&message)).await.unwrap().is_none();
                assert_eq!(handled, again);
                let work = async |tx: &mut sqlx::PgConnection| {
                    let sql = "INSERT INTO ledger (payment) VALUES ($1)";
                    sqlx::query(sql).persistent(false).bind(&message).execute(tx).await
                };
                inbox.handle(&id(&message), work).await.unwrap().now().is_none()
            })
        });
        for one in handling.collect::<Vec<_>>() {
            assert_eq!(one.await.unwrap(), again);
        }
    }
    assert_eq!(ledger.lines().await.len(), 20);
    assert_eq!(inbox.forget().await.unwrap(), Forgotten::default());
}

/// What a pooler does to a statement by itself depends on who else is there; that none goes by itself does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_and_forgetting_are_transactions_too() {
    let ledger = Ledger::new().await;
    let (proxy, options) = Proxy::before(ledger.database.options()).await;
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let inbox = PgInbox::new(pool, "ledger").unwrap();
    proxy.cut_next(Cut::Commit);
    let cut_off = inbox.steps::<Failure>(&id("m1")).await.map(drop);
    assert!(matches!(cut_off, Err(InboxError::Store(StoreError::Unavailable(_)))), "{cut_off:?}");
    assert!(proxy.has_cut());
    proxy.cut_next(Cut::Commit);
    let cut_off = inbox.forget().await;
    assert!(matches!(cut_off, Err(StoreError::Lost(_))), "{cut_off:?}");
    assert!(proxy.has_cut());
}

#[tokio::test]
async fn what_the_database_lacks_is_no_failure_of_the_message_and_a_wrong_value_is() {
    let ledger = Ledger::new().await;
    for (sql, of_the_message) in [
        ("INSERT INTO ledgre (payment) VALUES ('pay_1')", false),
        ("SELECT pg_terminate_backend(pg_backend_pid())", false),
        ("INSERT INTO ledger (payment) VALUES (NULL)", true),
        ("SELECT 1 / 0", true),
    ] {
        let failed = ledger.inbox.handle(&id("m1"), async |tx| sqlx::query(sql).execute(tx).await).await;
        let failure = Failure::from(failed.unwrap_err());
        assert_eq!(matches!(failure, Failure::Failed(_)), of_the_message, "{sql}: {failure}");
        assert_eq!(matches!(failure, Failure::NotNow(_)), !of_the_message, "{sql}: {failure}");
    }
}

#[tokio::test]
async fn an_identity_that_cannot_be_one_is_refused() {
    let ledger = Ledger::new().await;
    assert!(PgInbox::new(ledger.pool.clone(), "").is_err());
    let steps = ledger.inbox.steps::<Failure>(&id("m1")).await.unwrap().unwrap();
    let refused = steps.effect("", async |tx| enter(tx, "entry").await).await.unwrap_err();
    assert!(matches!(Failure::from(refused), Failure::Refused(_)));
}

#[tokio::test]
async fn marks_are_forgotten_by_the_servers_clock_in_small_batches() {
    const HOUR: i64 = 3_600_000;
    let ledger = Ledger::new().await;
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let inbox = ledger.inbox.clone().keeping(Retention { messages: hours(2), effects: hours(4) });
    let marks = |table: &str, column: &str, count: u32, age: i64, consumer: &str| {
        format!(
            "INSERT INTO {table} (consumer, {column}, marked_at) SELECT '{consumer}', '{age}-' || n,
             (extract(epoch FROM clock_timestamp()) * 1000)::bigint - {age} FROM generate_series(1, {count}) n"
        )
    };
    for sql in [
        marks("semel_inbox", "message_id", 600, 3 * HOUR, "ledger"),
        marks("semel_inbox", "message_id", 5, HOUR, "ledger"),
        marks("semel_inbox", "message_id", 7, 3 * HOUR, "mail"),
        marks("semel_inbox_effects", "effect", 3, 5 * HOUR, "ledger"),
        marks("semel_inbox_effects", "effect", 2, 3 * HOUR, "ledger"),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&ledger.pool).await.unwrap();
    }
    assert_eq!(inbox.forget().await.unwrap(), Forgotten { messages: 600, effects: 3 });
    assert_eq!(inbox.forget().await.unwrap(), Forgotten::default());
    assert_eq!(ledger.marks().await, 12, "the young ones, and those of others");
    let for_ever = Retention { messages: Duration::MAX, effects: Duration::MAX };
    assert_eq!(inbox.keeping(for_ever).forget().await.unwrap(), Forgotten::default());
}
