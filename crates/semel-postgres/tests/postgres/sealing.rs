//! Sealed answers in a table that somebody can read and write.

use crate::fixture::{complete, open};
use semel::columns::answer_sum;
use semel::fingerprint::{Command, Recipe};
use semel::transition::Act;
use semel::{Decision, Engine, EngineOptions, Incoming, Outcome, Policy, RecordKey};
use semel_conformance::{CANARY, Tampering, sealing_keys, what_is_sealed_stands_no_tampering};
use semel_postgres::Once;
use semel_testing::database::Database;
use sqlx::{AssertSqlSafe, PgPool, Row, raw_sql};
use std::sync::Arc;

/// As somebody does who knows that there is a sum.
async fn tamper_and_add_up(pool: &PgPool, key: &RecordKey, tampering: &Tampering) {
    tamper(pool, key, tampering).await;
    let sql = "SELECT response_status, headers, response_schema, body_kind, body
        FROM semel_records JOIN semel_answers USING (operation_id) WHERE key = $1";
    let Some(row) = sqlx::query(sql).bind(&key.key).fetch_optional(pool).await.unwrap() else { return };
    let status = u16::try_from(row.get::<i32, _>(0)).unwrap();
    let sum = answer_sum(status, row.get(1), row.get(2), (row.get(3), row.get(4)));
    let sql = "UPDATE semel_records SET response_sum = $1 WHERE key = $2";
    sqlx::query(sql).bind(sum).bind(&key.key).execute(pool).await.unwrap();
}

pub(crate) async fn tamper(pool: &PgPool, key: &RecordKey, tampering: &Tampering) {
    let flip = |column: &str| {
        let last = format!("octet_length({column}) - 1");
        format!("{column} = set_byte({column}, {last}, get_byte({column}, {last}) # 1)")
    };
    let id_of =
        |key: &RecordKey| format!("(SELECT operation_id FROM semel_records WHERE key = '{}')", key.key);
    let moved = |table: &str, column: &str, from: &RecordKey| {
        format!("{column} = (SELECT {column} FROM {table} WHERE operation_id = {})", id_of(from))
    };
    let (answers, records) = ("semel_answers", "semel_records");
    let changes = match tampering {
        Tampering::FlippedBit => vec![(answers, flip("body"))],
        Tampering::CutOff => {
            vec![(answers, "body = substring(body FROM 1 FOR octet_length(body) - 1)".into())]
        }
        Tampering::BodyOf(other) => vec![(answers, moved(answers, "body", other))],
        Tampering::Headers(headers) => vec![(answers, format!("headers = '{headers}'"))],
        Tampering::Status(status) => vec![(records, format!("response_status = {status}"))],
        Tampering::PlainBody(body) => vec![
            (records, "body_kind = 'stored'".into()),
            (answers, format!("body = convert_to('{}', 'UTF8')", body.replace('\'', "''"))),
        ],
        Tampering::FlippedCheckpoint => vec![(records, flip("checkpoint"))],
        Tampering::CheckpointOf(other) => vec![(records, moved(records, "checkpoint", other))],
        Tampering::LeaseOver => vec![(records, "lease_until = 0".into())],
    };
    for (table, set) in changes {
        let sql = format!("UPDATE {table} SET {set} WHERE operation_id = {}", id_of(key));
        let changed = raw_sql(AssertSqlSafe(sql)).execute(pool).await.unwrap();
        assert_eq!(changed.rows_affected(), 1, "{tampering:?}");
    }
}

async fn holds_no_canary(pool: &PgPool) {
    let canary: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let rows = "SELECT r::text FROM semel_records r UNION ALL SELECT a::text FROM semel_answers a";
    let rows = raw_sql(rows).fetch_all(pool).await.unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let row: String = row.get(0);
        assert!(!row.contains(CANARY) && !row.contains(&canary), "{row}");
    }
}

#[tokio::test]
async fn what_is_sealed_stands_no_tampering_with_the_table_and_leaves_nothing_readable_in_it() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let tamper =
        async |key: &RecordKey, tampering: &Tampering| tamper_and_add_up(&pool, key, tampering).await;
    what_is_sealed_stands_no_tampering(Arc::new(store), tamper).await;
    holds_no_canary(&pool).await;
}

#[tokio::test]
async fn what_is_finished_in_the_applications_transaction_is_sealed_too() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let options = EngineOptions { keyring: Some(sealing_keys()), ..EngineOptions::default() };
    let engine = Engine::with_options(Arc::new(store.clone()), options);
    let recipe = Arc::new(Recipe::builder().command("create_payment/1").build().unwrap());
    let command = Command::new(recipe, None, &"10.00").unwrap();
    let Act::Complete { response: Some(mut answer), .. } = complete() else { panic!("a completion") };
    answer.headers.push(("location".into(), CANARY.into()));
    let key = RecordKey::new("tenant", "create_payment", "sealed-in-one-commit");
    let incoming = || Incoming { key: key.clone(), subject: &command, policy: Arc::new(Policy::default()) };
    let outcome = Outcome::Completed { response: Some(answer.clone()), resource: None };
    let once = store.once(&engine, incoming(), async |_, _| Ok::<_, ()>(((), outcome))).await.unwrap();
    assert!(matches!(once, Once::Executed(())));
    holds_no_canary(&pool).await;
    let Once::Decided(Decision::Replay(record)) =
        store.once(&engine, incoming(), async |_, _| Err::<((), Outcome), _>(())).await.unwrap()
    else {
        panic!("it is replayed")
    };
    assert_eq!(record.response, Some(answer));
}
