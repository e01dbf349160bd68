//! Reservations and completions have statements of their own: they write what the general ones write.

use crate::fixture::{completion, draft, open};
use semel::{Created, Draft, Resource, Store, Swap, Swapped, Timestamp, When};
use semel_postgres::PgStore;
use semel_testing::database::Database;
use sqlx::{AssertSqlSafe, PgPool, Row, raw_sql};

/// The same with every moment fixed: too much of it differs from what is plain, and it goes by the general statements.
fn fixed(mut draft: Draft, now: Timestamp) -> Draft {
    draft.times = draft.times.map(|when| When::At(when.at(now)));
    draft
}

/// The rows of these keys without what no two rows share.
async fn rows(db: &PgPool, keys: &str) -> Vec<String> {
    let own = "'id', 'key', 'key_hash', 'operation_id', 'owner'";
    let sql = format!(
        "SELECT (to_jsonb(r) - ARRAY[{own}])::text FROM semel_records r WHERE key LIKE '{keys}-%' ORDER BY key"
    );
    let rows = raw_sql(AssertSqlSafe(sql)).fetch_all(db).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn create(store: &PgStore, drafts: &[Draft]) -> Timestamp {
    let answer = store.create(drafts.to_vec()).await.unwrap();
    assert!(answer.items.iter().all(|created| *created == Created::Inserted), "{:?}", answer.items);
    answer.now
}

async fn swap(store: &PgStore, swaps: Vec<Swap>) -> Timestamp {
    let answer = store.swap(swaps).await.unwrap();
    assert!(answer.items.iter().all(|swapped| *swapped == Swapped::Done), "{:?}", answer.items);
    answer.now
}

#[tokio::test]
async fn alone_and_in_batches_both_ways_write_the_same_rows() {
    for count in [1, 5] {
        let database = Database::new().await;
        let (store, db) = (open(&database).await, database.pool().await);
        let drafts = |keys: &str| (0..count).map(|n| draft(&format!("{keys}-{n}"))).collect::<Vec<_>>();
        let plain = drafts("plain");
        let now = create(&store, &plain).await;
        let general: Vec<_> = drafts("general").into_iter().map(|draft| fixed(draft, now)).collect();
        create(&store, &general).await;
        assert_eq!(rows(&db, "plain").await, rows(&db, "general").await);
        assert_eq!(rows(&db, "plain").await.len(), count);

        let completed = |drafts: Vec<Draft>| {
            let swaps = drafts.into_iter().enumerate().map(|(n, draft)| {
                let mut swap = completion(&draft.at(now));
                // Some made something, and some have a body that goes before its window ends.
                swap.next.resource =
                    (n % 2 == 1).then(|| Resource { kind: "payment".into(), id: "pay_1".into() });
                swap.next.times.body_expires = swap.next.times.expires.filter(|_| n % 3 != 1);
                swap
            });
            swaps.collect::<Vec<_>>()
        };
        let now = swap(&store, completed(plain)).await;
        let general = completed(general).into_iter();
        swap(&store, general.map(|swap| Swap { next: Box::new(fixed(*swap.next, now)), ..swap }).collect())
            .await;
        assert_eq!(rows(&db, "plain").await, rows(&db, "general").await);
        assert!(rows(&db, "plain").await.iter().all(|row| row.contains(r#""state": "completed""#)));
    }
}
