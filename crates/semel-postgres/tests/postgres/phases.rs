//! Local phases: the domain row and the recovery point are one commit, and are not run again.

use crate::shop::{Shop, completed, pay, retryable};
use semel::transition::Refusal;
use semel::{Deduplicated, Finish, Interruption, PhaseError, Stale, State, StoreError};
use semel_testing::database::Cut;
use sqlx::postgres::PgConnection;
use sqlx::raw_sql;
use std::collections::BTreeMap;
use std::time::Duration;

const NAME: &str = "phases";

async fn never(_: &mut PgConnection) -> Result<String, sqlx::Error> {
    panic!("it is not to be run")
}

#[tokio::test]
async fn the_row_and_the_recovery_point_are_one_commit_and_the_next_phase_goes_on_from_it() {
    let shop = Shop::open(Stale::Resume).await;
    let ticket = shop.execute(NAME).await;
    let mut phases = ticket.phases().unwrap();
    let id = shop
        .store
        .phase(&mut phases, "created", async |tx| {
            let id = pay(tx, "pay_1").await?;
            assert_eq!((shop.payments().await, shop.recovery_point(NAME).await), (0, None), "not before");
            Ok::<_, sqlx::Error>(id)
        })
        .await
        .unwrap();
    assert_eq!(id, "pay_1");
    assert_eq!((shop.payments().await, shop.recovery_point(NAME).await.as_deref()), (1, Some("created")));
    let same = "SELECT count(*) FROM payments p, semel_records r WHERE p.xmin = r.xmin";
    assert_eq!(crate::fixture::number(&shop.db, same).await, 1, "by one transaction");
    assert_eq!(ticket.recovery_point().unwrap().unwrap().0, "created");

    let charge: u32 = phases.foreign::<_, ()>("charged", Deduplicated, async |_| Ok(7)).await.unwrap();
    shop.store.phase(&mut phases, "confirmed", async |tx| pay(tx, "pay_2").await).await.unwrap();
    assert_eq!((charge, ticket.interruption()), (7, None));
    assert!(matches!(ticket.finish(completed()).await, Ok(Finish::Stored)));
    assert_eq!(shop.record(NAME).await.unwrap().state, State::Completed);
}

#[tokio::test]
async fn what_an_earlier_attempt_committed_is_handed_over_and_not_run_again() {
    let shop = Shop::open(Stale::Resume).await;
    let dead = shop.execute(NAME).await;
    let mut phases = dead.phases().unwrap();
    shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await.unwrap();
    drop(phases);
    std::mem::forget(dead);
    shop.leases_are_over().await;

    let shop = shop.elsewhere().await;
    let second = shop.execute(NAME).await;
    assert_eq!(second.attempt(), 2);
    let mut phases = second.phases().unwrap();
    assert_eq!(shop.store.phase(&mut phases, "created", never).await.unwrap(), "pay_1");
    shop.store.phase(&mut phases, "confirmed", async |tx| pay(tx, "pay_2").await).await.unwrap();
    assert_eq!(shop.payments().await, 2);
    assert!(matches!(second.finish(completed()).await, Ok(Finish::Stored)));
}

#[tokio::test]
async fn work_that_gives_up_leaves_neither_and_the_operation_may_go_another_way() {
    let shop = Shop::open(Stale::Resume).await;
    let ticket = shop.execute(NAME).await;
    let mut phases = ticket.phases().unwrap();
    let given_up = shop
        .store
        .phase(&mut phases, "created", async |tx| {
            pay(tx, "pay_1").await.map_err(|_| "the row")?;
            Err::<(), _>("no funds")
        })
        .await;
    assert!(matches!(given_up, Err(PhaseError::Application("no funds"))), "{given_up:?}");
    assert_eq!((shop.payments().await, shop.recovery_point(NAME).await), (0, None));
    assert_eq!(ticket.interruption(), None, "it is the handler's to say how that ends");
    shop.store.phase(&mut phases, "declined", async |tx| pay(tx, "declined").await).await.unwrap();
    assert_eq!((shop.payments().await, shop.recovery_point(NAME).await.as_deref()), (1, Some("declined")));
    ticket.finish(completed()).await.unwrap();
}

#[tokio::test]
async fn a_failure_between_the_row_and_the_recovery_point_leaves_neither_and_the_next_attempt_runs_it() {
    // The one fails as the record is written, the other as the whole is committed.
    for when in
        ["BEFORE UPDATE ON semel_records", "AFTER UPDATE ON semel_records DEFERRABLE INITIALLY DEFERRED"]
    {
        let shop = Shop::open(Stale::Resume).await;
        let first = shop.execute(NAME).await;
        let kind = if when.starts_with("AFTER") { "CONSTRAINT TRIGGER" } else { "TRIGGER" };
        let failure = format!(
            "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'as told'; END $$;
             CREATE {kind} broken {when} FOR EACH ROW WHEN (NEW.recovery_point IS NOT NULL) EXECUTE FUNCTION broken()"
        );
        raw_sql(sqlx::AssertSqlSafe(failure)).execute(&shop.db).await.unwrap();
        let mut phases = first.phases().unwrap();
        let failed = shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await;
        assert!(matches!(failed, Err(PhaseError::Store(StoreError::Unavailable(_)))), "{failed:?}");
        assert_eq!((shop.payments().await, shop.recovery_point(NAME).await), (0, None));
        assert_eq!(first.interruption(), Some(Interruption::Resumable));
        raw_sql("DROP TRIGGER broken ON semel_records").execute(&shop.db).await.unwrap();
        assert!(matches!(first.finish(retryable()).await, Ok(Finish::Stored)));

        let second = shop.execute(NAME).await;
        let mut phases = second.phases().unwrap();
        shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await.unwrap();
        assert_eq!((shop.payments().await, shop.recovery_point(NAME).await.as_deref()), (1, Some("created")));
        second.finish(completed()).await.unwrap();
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_kept_leaves_neither() {
    let shop = Shop::open(Stale::Resume).await;
    let ticket = shop.execute(NAME).await;
    let mut phases = ticket.phases().unwrap();
    // JSON has no objects by such names.
    let work = async |tx: &mut PgConnection| pay(tx, "pay_1").await.map(|_| BTreeMap::from([((1, 2), 3)]));
    let kept = shop.store.phase(&mut phases, "created", work).await;
    assert!(matches!(kept, Err(PhaseError::Kept(_))), "{kept:?}");
    assert_eq!((shop.payments().await, shop.recovery_point(NAME).await), (0, None));
    ticket.finish(completed()).await.unwrap();
}

#[tokio::test]
async fn the_row_of_an_owner_that_was_taken_over_rolls_back() {
    let shop = Shop::open(Stale::Resume).await;
    let late = shop.execute(NAME).await;
    let mut phases = late.phases().unwrap();
    // It is taken over while its transaction is open.
    let mut second = None;
    let refused = shop
        .store
        .phase(&mut phases, "created", async |tx| {
            let paid = pay(tx, "pay_late").await;
            shop.leases_are_over().await;
            second = Some(shop.execute(NAME).await);
            paid
        })
        .await;
    assert!(matches!(refused, Err(PhaseError::Refused(Refusal::Fenced))), "{refused:?}");
    assert_eq!((shop.payments().await, shop.recovery_point(NAME).await), (0, None));
    assert_eq!(late.interruption(), Some(Interruption::InDoubt));
    assert!(matches!(late.finish(completed()).await, Ok(Finish::Fenced(_))));

    let second = second.unwrap();
    let mut phases = second.phases().unwrap();
    shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await.unwrap();
    assert_eq!(shop.payments().await, 1);
    second.finish(completed()).await.unwrap();
}

#[tokio::test]
async fn an_owner_in_doubt_begins_no_local_phase_and_may_still_say_how_it_ended() {
    let shop = Shop::open(Stale::Resume).await;
    let ticket = shop.execute(NAME).await;
    let mut phases = ticket.phases().unwrap();
    shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await.unwrap();
    ticket.doubt("timeout").await;
    let refused = shop.store.phase(&mut phases, "confirmed", async |tx| pay(tx, "pay_2").await).await;
    assert!(matches!(refused, Err(PhaseError::Refused(Refusal::InDoubt))), "{refused:?}");
    assert_eq!((shop.payments().await, ticket.interruption()), (1, Some(Interruption::InDoubt)));
    assert!(matches!(ticket.finish(completed()).await, Ok(Finish::Stored)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_read_back_and_the_operation_goes_on() {
    let (shop, proxy) = Shop::behind_a_proxy(Stale::Resume).await;
    let ticket = shop.execute(NAME).await;
    let mut phases = ticket.phases().unwrap();
    proxy.cut_next(Cut::AnswerOfCommit);
    let id = shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await;
    assert!(proxy.has_cut());
    assert_eq!((id.unwrap().as_str(), ticket.interruption()), ("pay_1", None));
    assert_eq!((shop.payments().await, shop.recovery_point(NAME).await.as_deref()), (1, Some("created")));
    shop.store.phase(&mut phases, "confirmed", async |tx| pay(tx, "pay_2").await).await.unwrap();
    assert!(matches!(ticket.finish(completed()).await, Ok(Finish::Stored)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_leaves_neither_and_the_next_attempt_runs_it() {
    let (shop, proxy) = Shop::behind_a_proxy(Stale::Resume).await;
    let first = shop.execute(NAME).await;
    let mut phases = first.phases().unwrap();
    proxy.cut_next(Cut::Commit);
    let lost = shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await;
    assert!(proxy.has_cut());
    assert!(matches!(lost, Err(PhaseError::Store(StoreError::Lost(_)))), "{lost:?}");
    assert_eq!(first.interruption(), Some(Interruption::Resumable));
    assert!(matches!(first.finish(retryable()).await, Ok(Finish::Stored)));
    assert_eq!((shop.payments().await, shop.recovery_point(NAME).await), (0, None));

    let second = shop.execute(NAME).await;
    let mut phases = second.phases().unwrap();
    shop.store.phase(&mut phases, "created", async |tx| pay(tx, "pay_1").await).await.unwrap();
    assert_eq!(shop.payments().await, 1);
    second.finish(completed()).await.unwrap();
}

#[tokio::test]
async fn a_record_that_is_held_for_a_moment_does_not_cost_the_result_of_a_call() {
    let shop = Shop::open(Stale::Resume).await;
    let ticket = shop.execute(NAME).await;
    let mut phases = ticket.phases().unwrap();
    // As by the owner's own sign of life, which is a transaction too.
    let mut holding = shop.db.begin().await.unwrap();
    let held = async |_| {
        raw_sql("SELECT 1 FROM semel_records FOR UPDATE").execute(&mut *holding).await?;
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            holding.rollback().await
        });
        Ok::<_, sqlx::Error>(7)
    };
    let charge = phases.foreign("charged", Deduplicated, held).await;
    assert_eq!((charge.unwrap(), ticket.interruption()), (7, None));
    assert!(matches!(ticket.finish(completed()).await, Ok(Finish::Stored)));
}

#[tokio::test]
async fn phases_go_by_way_of_pgbouncer() {
    let shop = Shop::behind_pgbouncer(Stale::Resume).await;
    for name in ["first", "second", "third"] {
        let ticket = shop.execute(name).await;
        let mut phases = ticket.phases().unwrap();
        let id = shop.store.phase(&mut phases, "created", async |tx| pay(tx, name).await).await.unwrap();
        let charge: String =
            phases.foreign::<_, ()>("charged", Deduplicated, async |_| Ok(id)).await.unwrap();
        assert_eq!((charge.as_str(), shop.recovery_point(name).await.as_deref()), (name, Some("charged")));
        assert!(matches!(ticket.finish(completed()).await, Ok(Finish::Stored)));
    }
    assert_eq!(shop.payments().await, 3);
}
