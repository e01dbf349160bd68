//! Every statement uses an index. The server is asked twice: on empty tables without statistics, as on the first day,
//! and on many rows with statistics. The plan asked for is the one that is kept (`force_generic_plan`), but for listings, which are
//! planned each time.

use crate::PgStore;
use crate::audit;
use crate::listing::list_sql;
use crate::statements::{
    COUNT_LIVE, CREATE, CREATE_RESERVATION, DROP_ANSWERS, DUE, FIND, HISTORY, HOLD, PURGE, PURGE_AUDIT, READ,
    RECALL, REMOVE, RESERVE, SWAP, SWAP_AUDITED, SWAP_COMPLETION,
};
use semel::audit::{AuditAction, AuditFilter};
use semel::{Filter, State};
use semel_testing::database::Database;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row, raw_sql};

/// 30 000 records: most completed, few of each other state, a hundred tenants, a line of history for one in ten.
const FILL: &str = "
INSERT INTO semel_records (key_hash, operation_id, recipe, owner, version, attempt, reconcile_attempts, created_at,
    lease_until, completed_at, expires_at, due_at, dead_letter, fingerprint, state, taken_by, due_kind, tenant, operation, key)
SELECT md5('k' || n)::uuid, md5('o' || n)::uuid, md5('r')::uuid, md5('w' || n)::uuid, 1, 1, 0, n, n, n, s.expires_at, n,
    n % 1000 = 2, '\\x00', s.state, 'first', s.due_kind, 'tenant-' || n % 100, 'operation-' || n % 10, 'key-' || n
FROM generate_series(1, 30000) AS n, LATERAL (SELECT
    CASE WHEN n % 1000 < 2 THEN 'in_progress' WHEN n % 1000 < 4 THEN 'unknown' WHEN n % 1000 < 6 THEN 'failed_retryable'
         WHEN n % 1000 < 8 THEN 'failed_replayable' WHEN n % 8 = 0 THEN 'expired' ELSE 'completed' END AS state,
    CASE WHEN n % 1000 < 2 THEN 'lease' WHEN n % 1000 = 2 THEN NULL WHEN n % 1000 = 3 THEN 'reconcile'
         WHEN n % 8 = 1 THEN 'window' ELSE 'purge' END AS due_kind,
    CASE WHEN n % 8 = 0 THEN n ELSE 4000000000000 + n END AS expires_at) AS s;
INSERT INTO semel_answers (ends_at, operation_id, headers, body)
SELECT expires_at, operation_id, '[]', '\\x00' FROM semel_records WHERE state = 'completed';
INSERT INTO semel_history (operation_id, at, version, attempt, happening, actor)
SELECT md5('o' || n)::uuid, n, 1, 1, 'remarked', 'owner' FROM generate_series(1, 30000, 10) AS n;
INSERT INTO semel_audit (at, entry_id, actor, action, result, target, tenant, details)
SELECT n, md5('e' || n)::uuid, 'token:' || n % 100, CASE WHEN n % 100 = 0 THEN 'reload' ELSE 'settle' END, 'done', 'target-' || n,
    'tenant-' || n % 100, '{}' FROM generate_series(1, 30000) AS n;
INSERT INTO semel_remembered (name, value) SELECT 'name-' || n, '\\x00' FROM generate_series(1, 3000) AS n;
ANALYZE";

/// The time parameters of a statement without expectations.
const ASKED: &str = "'{0, 0, 2305843009213693951}'";

struct Tables {
    conn: PgConnection,
    _database: Database,
}

impl Tables {
    async fn empty() -> Self {
        let database = Database::new().await;
        PgStore::migrate(&database.pool().await).await.unwrap();
        let conn = database.connection().await;
        Self { conn, _database: database }
    }

    async fn full() -> Self {
        let mut tables = Self::empty().await;
        raw_sql(FILL).execute(&mut tables.conn).await.unwrap();
        tables
    }

    /// The plan that the server keeps for a statement.
    async fn kept_plan(&mut self, sql: &str) -> String {
        let parameters = (1..).take_while(|number| sql.contains(&format!("${number}"))).count();
        let arguments = vec!["NULL"; parameters].join(", ");
        self.plan("force_generic_plan", sql, &arguments).await
    }

    async fn plan(&mut self, mode: &str, sql: &str, arguments: &str) -> String {
        self.explain("COSTS off", mode, sql, arguments).await
    }

    async fn explain(&mut self, what: &str, mode: &str, sql: &str, arguments: &str) -> String {
        let preparing = format!("DEALLOCATE ALL; SET plan_cache_mode = {mode}; PREPARE statement AS {sql}");
        raw_sql(AssertSqlSafe(preparing)).execute(&mut self.conn).await.unwrap();
        let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
        let explaining = format!("EXPLAIN ({what}) EXECUTE statement {arguments}");
        let rows = raw_sql(AssertSqlSafe(explaining)).fetch_all(&mut self.conn).await.unwrap();
        let lines = rows.iter().map(|row| row.get::<String, _>(0));
        // The row about the clock is one, however the server comes to it.
        lines.filter(|line| !line.contains(" on semel_clock")).collect::<Vec<_>>().join("\n")
    }

    async fn goes_by(&mut self, sql: &str, index: &str) -> String {
        let plan = self.kept_plan(sql).await;
        assert!(plan.contains(index), "should go by {index}:\n{sql}\n{plan}");
        assert!(!plan.contains("Seq Scan"), "scans a table:\n{sql}\n{plan}");
        plan
    }
}

#[tokio::test]
async fn creating_reads_nothing_and_leaves_conflicts_to_the_unique_indexes() {
    for mut tables in [Tables::empty().await, Tables::full().await] {
        for sql in [CREATE.one, CREATE.many, CREATE_RESERVATION.one, CREATE_RESERVATION.many, RESERVE] {
            let plan = tables.goes_by(sql, "Conflict Resolution: NOTHING").await;
            assert!(
                !plan.contains("Scan using") && !plan.contains("Bitmap"),
                "reads before it inserts:\n{plan}"
            );
        }
    }
}

#[tokio::test]
async fn records_are_found_changed_and_removed_by_their_indexes() {
    for mut tables in [Tables::empty().await, Tables::full().await] {
        tables.goes_by(READ, "Index Scan using semel_records_key on semel_records").await;
        let swaps = [SWAP.one, SWAP.many, SWAP_COMPLETION.one, SWAP_COMPLETION.many, SWAP_AUDITED];
        for sql in swaps.into_iter().chain([FIND, REMOVE, HOLD]) {
            tables.goes_by(sql, "Index Scan using semel_records_operation_id on semel_records").await;
        }
        for sql in swaps.into_iter().chain([REMOVE]) {
            // What was found and locked is written at its place, not looked up again.
            tables.goes_by(sql, "Tid Scan on semel_records").await;
        }
    }
}

#[tokio::test]
async fn answers_are_found_and_dropped_by_their_time() {
    for mut tables in [Tables::empty().await, Tables::full().await] {
        for sql in [READ, FIND, SWAP.one, SWAP.many] {
            tables.goes_by(sql, "Index Scan using semel_answers_pkey on semel_answers").await;
        }
        let plan = tables.goes_by(DROP_ANSWERS, "semel_answers_pkey on semel_answers").await;
        assert!(
            plan.contains("Index Cond: (ends_at <=") && plan.contains("Tid Scan on semel_answers"),
            "{plan}"
        );
    }
}

#[tokio::test]
async fn what_is_purged_is_found_by_what_it_waits_for() {
    for mut tables in [Tables::empty().await, Tables::full().await] {
        let plan = tables.goes_by(PURGE, "Index Scan using semel_records_due on semel_records").await;
        assert!(plan.contains("Tid Scan on semel_records") && plan.contains("semel_history_pkey"), "{plan}");
        let found = plan.split("CTE gone").next().unwrap();
        assert!(!found.contains("Sort"), "sorts all that is over:\n{plan}");
    }
}

#[tokio::test]
async fn the_audit_is_listed_and_purged_by_its_indexes() {
    let mut tables = Tables::full().await;
    for bits in 0..16_u8 {
        let some = |bit: u8, text: &str| (bits & bit != 0).then(|| text.to_owned());
        let filter = AuditFilter {
            target: some(1, "target-7"),
            tenant: some(2, "tenant-7"),
            actor: some(4, "token:7"),
            action: (bits & 8 != 0).then_some(AuditAction::Reload),
            ..AuditFilter::default()
        };
        let (sql, texts) = audit::list_sql(&filter);
        let texts = texts.iter().map(|text| format!("'{text}'"));
        let arguments: Vec<String> =
            ["30001".into(), "0".into(), "51".into()].into_iter().chain(texts).collect();
        let plan = tables.plan("force_custom_plan", &sql, &arguments.join(", ")).await;
        assert!(plan.contains("semel_audit_") && !plan.contains("Seq Scan"), "{filter:?} scans:\n{plan}");
    }
    tables.goes_by(PURGE_AUDIT, "semel_audit_at on semel_audit").await;
}

#[tokio::test]
async fn history_and_what_is_remembered_are_found_by_primary_key() {
    for mut tables in [Tables::empty().await, Tables::full().await] {
        for sql in [HISTORY, REMOVE] {
            tables.goes_by(sql, "semel_history_pkey").await;
        }
        tables.goes_by(RECALL, "semel_remembered_pkey").await;
    }
}

#[tokio::test]
async fn a_tenants_keys_are_counted_by_its_index() {
    let plan = Tables::full().await.plan("force_custom_plan", COUNT_LIVE, "'tenant-7', 1000").await;
    assert!(plan.contains("semel_records_tenant") && !plan.contains("Seq Scan"), "{plan}");
}

/// Whether or not the server has statistics, and whether or not it keeps a plan: one that is made for the values may not read all that is
/// due either, to sort it for one page.
#[tokio::test]
async fn what_is_due_comes_in_the_order_of_its_index() {
    let mut filled = Tables::empty().await;
    let without_statistics = FILL.strip_suffix("ANALYZE").expect("statistics come last");
    raw_sql(without_statistics).execute(&mut filled.conn).await.unwrap();
    for mut tables in [Tables::empty().await, filled, Tables::full().await] {
        let plan = tables.goes_by(DUE, "Index Scan using semel_records_due on semel_records").await;
        assert!(plan.contains("Index Cond: ((due_kind = ") && plan.contains("(due_at <= "), "{plan}");
        assert!(!plan.contains("Sort"), "{plan}");
        let rows = raw_sql("SELECT count(*) FROM semel_records").fetch_one(&mut tables.conn).await.unwrap();
        if rows.get::<i64, _>(0) == 0 {
            // A scan of nothing, for as long as there is nothing.
            continue;
        }
        // Each kind, with its own share of the table.
        for kind in ["lease", "reconcile", "window", "purge"] {
            let arguments = format!("{ASKED}, '{kind}', 100, 5000, '{}'", uuid::Uuid::nil());
            let plan = tables.plan("force_custom_plan", DUE, &arguments).await;
            assert!(plan.contains("Index Scan using semel_records_due on semel_records"), "{kind}:\n{plan}");
            assert!(!plan.contains("Sort"), "{kind}:\n{plan}");
        }
    }
}

/// A plan that looks right can still go through everything: each round of a reaper would read the whole store to find nothing.
#[tokio::test]
async fn what_is_not_due_yet_is_not_gone_through() {
    let mut tables = Tables::full().await;
    let window = format!("{ASKED}, 'window', 1000, 0, '{}'", uuid::Uuid::nil());
    let purge = format!("{ASKED}, true, 1000");
    for (sql, kind, arguments) in [(PURGE, "purge", &purge), (DUE, "window", &window)] {
        let to_come = format!(
            "UPDATE semel_records SET state = 'completed', due_kind = '{kind}', due_at = 8000000000000000 + id, \
             purge_at = 8000000000000000 + id"
        );
        for statement in [&to_come, "VACUUM ANALYZE semel_records"] {
            raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut tables.conn).await.unwrap();
        }
        for mode in ["force_generic_plan", "force_custom_plan"] {
            let told = tables.explain("ANALYZE, BUFFERS, COSTS off, TIMING off", mode, sql, arguments).await;
            let buffers = told.lines().find_map(|line| line.trim().strip_prefix("Buffers: shared ")).unwrap();
            let pages: u32 = buffers.split([' ', '=']).filter_map(|word| word.parse::<u32>().ok()).sum();
            assert!(pages < 50, "{kind}, {mode}: {pages} pages to find nothing\n{told}");
        }
    }
}

#[tokio::test]
async fn the_server_compiles_nothing_on_connections_of_the_stores_own() {
    let database = Database::new().await;
    let store = PgStore::connect(&database.url()).await.unwrap();
    let mut conn = store.writing.server.connections.pool.acquire().await.unwrap();
    let jit: String = sqlx::query_scalar("SHOW jit").fetch_one(&mut *conn).await.unwrap();
    assert_eq!(jit, "off");
}

/// Every combination of filters: 6 states or none, and 4 others given or not (dead letters in three ways).
fn filters() -> impl Iterator<Item = Filter> {
    let states = State::ALL.into_iter().map(Some).chain([None]);
    states.flat_map(|state| {
        (0..24).map(move |bits: u8| Filter {
            state,
            tenant: (bits & 1 != 0).then(|| "tenant-7".into()),
            operation: (bits & 2 != 0).then(|| "operation-7".into()),
            key: (bits & 4 != 0).then(|| "key-7".into()),
            dead_letter: [None, Some(true), Some(false)][usize::from(bits / 8)],
            ..Filter::default()
        })
    })
}

#[tokio::test]
async fn every_listing_goes_by_an_index() {
    let mut tables = Tables::full().await;
    for filter in filters() {
        let (sql, values) = list_sql(&filter, None);
        let literal = |value: &crate::listing::Value| match value {
            crate::listing::Value::Text(text) => format!("'{text}'"),
            crate::listing::Value::Texts(texts) => format!("'{{{}}}'::text[]", texts.join(",")),
            crate::listing::Value::Uuid(uuid) => format!("'{uuid}'"),
        };
        let arguments: Vec<String> =
            ["30001".into(), "51".into()].into_iter().chain(values.iter().map(literal)).collect();
        let plan = tables.plan("force_custom_plan", &sql, &arguments.join(", ")).await;
        assert!(plan.contains("semel_records_"), "{filter:?}\n{plan}");
        assert!(!plan.contains("Seq Scan"), "{filter:?} scans:\n{plan}");
        let expected: &[&str] = match &filter {
            Filter { key: Some(_), .. } => &["semel_records_key"],
            Filter { dead_letter: Some(true), .. } => &["semel_records_dead_letter", "semel_records_rare"],
            Filter { state: Some(State::InProgress), .. } => &["semel_records_due"],
            Filter {
                state: Some(State::Unknown | State::FailedReplayable | State::FailedRetryable), ..
            } => &["semel_records_rare"],
            Filter { tenant: Some(_), .. } => &["semel_records_tenant"],
            _ => &["Index Scan Backward using semel_records_pkey"],
        };
        assert!(
            expected.iter().any(|index| plan.contains(index)),
            "{filter:?} should go by {expected:?}:\n{plan}"
        );
    }
}
