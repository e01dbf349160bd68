//! Which updates leave the indexes alone (HOT), as the server itself counts them.

use crate::fixture::{completion, number, open, reserved, swap};
use semel::transition::{Change, remark};
use semel::{Actor, Swap, Swapped};
use semel_testing::database::Database;
use sqlx::PgPool;
use std::time::Duration;

/// Updates and HOT updates, once the server has counted as many as there were.
async fn counted(pool: &PgPool, updates: i64) -> i64 {
    for _ in 0..100 {
        let sql = "SELECT coalesce(n_tup_upd, 0) FROM pg_stat_user_tables WHERE relname = 'semel_records'";
        if number(pool, sql).await >= updates {
            let sql = "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'semel_records'";
            return number(pool, sql).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server never counted {updates} updates")
}

#[tokio::test]
async fn a_change_that_moves_no_due_moment_is_hot_and_a_completion_is_not() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let mut record = reserved(&store, "remarked").await;
    for _ in 0..5 {
        let Change::Put { next, history } = remark(&record, Actor::Webhook("provider".into()), None) else {
            panic!("a remark is written")
        };
        let after = next.clone().at(record.times.created);
        assert_eq!(swap(&store, Swap { expected: record.expected(), next, history }).await, Swapped::Done);
        record = after;
    }
    assert_eq!(counted(&pool, 5).await, 5);
    // The state and what the record waits for are in indexes.
    assert_eq!(swap(&store, completion(&record)).await, Swapped::Done);
    assert_eq!(counted(&pool, 6).await, 5);
}
