//! Fills a store by its tables: most records completed, two in a thousand in doubt, one in eight expired, a thousand tenants.

use crate::Failure;
use rusqlite::Connection;
use semel::Timestamp;
use semel_benches::progress;
use sqlx::PgPool;
use std::path::Path;

/// Records that are made at once.
const BATCH: u64 = 500_000;

/// When the first record was created, and how long after each other they were, in milliseconds.
const FIRST: i64 = 1_700_000_000_000;
const APART: i64 = 100;

/// When record `number` was created.
pub(crate) fn created(number: u64) -> Timestamp {
    Timestamp::from_millis(FIRST + i64::try_from(number).unwrap_or(i64::MAX / APART) * APART)
}

/// What entry `number` of the audit is about.
pub(crate) fn target(number: u64) -> String {
    format!("target-{number}")
}

const SQLITE: &str = "
WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?2)
INSERT INTO semel_records (key_hash, operation_id, tenant, operation, key, fingerprint, recipe, state, version, attempt, owner,
    origin, due_kind, due_at, created_at, lease_until, completed_at, expires_at, purge_at, reconcile_attempts, dead_letter)
SELECT randomblob(16), unhex(printf('%016x%016x', n, n)), 'tenant-' || n % 1000, 'operation-' || n % 10,
    printf('key-%012d', n), zeroblob(32), zeroblob(16),
    CASE WHEN n % 1000 < 2 THEN 'unknown' WHEN n % 8 = 7 THEN 'expired' ELSE 'completed' END, 1, 1, zeroblob(16), 'first',
    CASE WHEN n % 1000 = 1 THEN 'reconcile' WHEN n % 1000 > 1 THEN 'purge' END,
    CASE WHEN n % 1000 > 0 THEN 4000000000000 + n END, ?3 + n * ?4, ?3 + n * ?4,
    CASE WHEN n % 1000 > 1 THEN ?3 + n * ?4 END,
    CASE WHEN n % 1000 < 2 THEN NULL WHEN n % 8 = 7 THEN ?3 + n * ?4 + 1 ELSE 4000000000000 END,
    CASE WHEN n % 1000 > 1 THEN 4000000000000 + n END, 0, n % 1000 = 0
FROM numbers";

const SQLITE_AUDIT: &str = "
WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?2)
INSERT INTO semel_audit (at, entry_id, actor, action, result, target, tenant, operation, details)
SELECT ?3 + n * ?4, randomblob(16), 'token:' || n % 100, CASE WHEN n % 10000 = 0 THEN 'reload' ELSE 'settle' END, 'done',
    'target-' || n, 'tenant-' || n % 1000, 'operation-' || n % 10, '{\"via\":\"api\"}'
FROM numbers";

/// Fills a file that has its tables.
pub(crate) fn sqlite(path: &Path, records: u64) -> Result<(), Failure> {
    let conn = Connection::open(path)?;
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000")?;
    for from in (0..records).step_by(usize::try_from(BATCH)?) {
        let (from, to) = (i64::try_from(from)?, i64::try_from(records.min(from + BATCH))?);
        for sql in [SQLITE, SQLITE_AUDIT] {
            conn.execute(sql, [from, to, FIRST, APART])?;
        }
        progress(&format!("{to} of {records} records"));
    }
    Ok(conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?)
}

const POSTGRES: &str = "
INSERT INTO semel_records (key_hash, operation_id, recipe, owner, version, attempt, reconcile_attempts, created_at, lease_until,
    completed_at, expires_at, purge_at, due_at, dead_letter, fingerprint, state, taken_by, due_kind, tenant, operation, key)
SELECT gen_random_uuid(), lpad(to_hex(n), 32, '0')::uuid, md5('r')::uuid, md5('w')::uuid, 1, 1, 0, $3 + n * $4, $3 + n * $4,
    CASE WHEN n % 1000 > 1 THEN $3 + n * $4 END,
    CASE WHEN n % 1000 < 2 THEN NULL WHEN n % 8 = 7 THEN $3 + n * $4 + 1 ELSE 4000000000000 END,
    CASE WHEN n % 1000 > 1 THEN 4000000000000 + n END, CASE WHEN n % 1000 > 0 THEN 4000000000000 + n END, n % 1000 = 0,
    decode(repeat('00', 32), 'hex'),
    CASE WHEN n % 1000 < 2 THEN 'unknown' WHEN n % 8 = 7 THEN 'expired' ELSE 'completed' END, 'first',
    CASE WHEN n % 1000 = 1 THEN 'reconcile' WHEN n % 1000 > 1 THEN 'purge' END,
    'tenant-' || n % 1000, 'operation-' || n % 10, 'key-' || lpad(n::text, 12, '0')
FROM generate_series($1::bigint, $2::bigint - 1) AS n";

const POSTGRES_AUDIT: &str = "
INSERT INTO semel_audit (at, entry_id, actor, action, result, target, tenant, operation, details)
SELECT $3 + n * $4, gen_random_uuid(), 'token:' || n % 100, CASE WHEN n % 10000 = 0 THEN 'reload' ELSE 'settle' END, 'done',
    'target-' || n, 'tenant-' || n % 1000, 'operation-' || n % 10, '{\"via\":\"api\"}'
FROM generate_series($1::bigint, $2::bigint - 1) AS n";

/// Fills a database that has its tables.
pub(crate) async fn postgres(pool: &PgPool, records: u64) -> Result<(), Failure> {
    let mut conn = pool.acquire().await?;
    for from in (0..records).step_by(usize::try_from(BATCH)?) {
        let (from, to) = (i64::try_from(from)?, i64::try_from(records.min(from + BATCH))?);
        for sql in [POSTGRES, POSTGRES_AUDIT] {
            sqlx::query(sql).bind(from).bind(to).bind(FIRST).bind(APART).execute(&mut *conn).await?;
        }
        progress(&format!("{to} of {records} records"));
    }
    sqlx::query("ANALYZE").execute(&mut *conn).await?;
    Ok(())
}
