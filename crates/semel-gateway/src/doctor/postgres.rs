//! A PostgreSQL server: whether the store opens, and what about the server will hurt later.

use super::Finding;
use semel::Store;
use semel_http::with_causes;
use semel_postgres::sqlx::{PgPool, Row, postgres::PgRow, raw_sql};
use semel_postgres::{OpenError, PgOptions};
use std::sync::Arc;

/// Connections that one process takes at most: the store's own, and as many for transactions and the outbox.
const PER_PROCESS: i64 = 20;
/// A transaction that is older keeps vacuum from cleaning, and holds the keys that it has written.
const OLD_TRANSACTION: f64 = 300.0;
/// A slot that holds back more of the log fills the disk before long.
const HELD_BACK: i64 = 10 << 30;
/// Transactions until the server stops for want of a vacuum: two thousand million.
const OLD_XID: i64 = 1_000_000_000;

pub(super) async fn examine(
    options: PgOptions,
    url: &str,
    findings: &mut Vec<Finding>,
) -> Option<Arc<dyn Store>> {
    const OPENS: &str = "store.opens";
    let store = match options.without_migrating().connect(url).await {
        Ok(store) => store,
        Err(error) => {
            findings.push(Finding::wrong(OPENS, with_causes(&error), cure(&error)));
            return None;
        }
    };
    findings.push(Finding::fine(
        OPENS,
        "PostgreSQL; fsync, synchronous_commit, replication, tables and privileges of the store are as they should be",
    ));
    let pool = store.pool();
    findings.push(match store.risk().reason() {
        Some(reason) => {
            Finding::wrong("postgres.replication", &*reason, "see docs/operating/alerts.md, SemelStoreAtRisk")
        }
        None => found("postgres.replication", replication(pool).await),
    });
    findings.push(found("postgres.slots", slots(pool).await));
    findings.push(found("postgres.connections", connections(pool).await));
    findings.push(found("postgres.transactions", transactions(pool).await));
    findings.push(found("postgres.timeouts", timeouts(pool).await));
    findings.push(found("postgres.outbox_privileges", outbox_privileges(pool).await));
    findings.push(found("postgres.bloat", bloat(pool).await));
    findings.push(found("postgres.wraparound", wraparound(pool).await));
    Some(Arc::new(store))
}

fn cure(error: &OpenError) -> &'static str {
    match error {
        OpenError::NotMigrated { .. } => "run `semel migrate`",
        _ => "do what the message says; the gateway would not start either",
    }
}

type Asked = Result<Finding, semel_postgres::sqlx::Error>;

fn found(check: &'static str, asked: Asked) -> Finding {
    asked.unwrap_or_else(|error| Finding::unseen(check, &error))
}

async fn one(pool: &PgPool, sql: &'static str) -> Result<PgRow, semel_postgres::sqlx::Error> {
    raw_sql(sql).fetch_one(pool).await
}

async fn replication(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.replication";
    let sql = "SELECT (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names'),
      (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming'),
      pg_has_role('pg_read_all_stats', 'USAGE')";
    let row = one(pool, sql).await?;
    let (standbys, names, synchronous): (i64, String, i64) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let sees: bool = row.try_get(3)?;
    Ok(if standbys == 0 {
        Finding::risky(
            CHECK,
            "no standby follows the server: if it is lost, every key is",
            "add a synchronous standby and declare it ([store] replication = \"synchronous\"), or see that its disk and backups do",
        )
    } else if names.trim().is_empty() {
        Finding::risky(
            CHECK,
            format!(
                "{standbys} standbys follow asynchronously: a failover to one of them loses acknowledged outcomes"
            ),
            "name them in synchronous_standby_names and declare replication = \"synchronous\", unless none of them ever takes over",
        )
    } else if !sees {
        Finding::risky(
            CHECK,
            "the role may not see the state of standbys",
            "GRANT pg_read_all_stats TO the role",
        )
    } else if synchronous == 1 {
        Finding::risky(
            CHECK,
            format!(
                "one synchronous standby follows (synchronous_standby_names is '{names}'): without it, new requests get 503"
            ),
            "add a second one: ANY 1 (standby1, standby2)",
        )
    } else {
        Finding::fine(CHECK, format!("{synchronous} synchronous standbys of {standbys} follow"))
    })
}

async fn slots(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.slots";
    let sql = "SELECT string_agg(slot_name, ', ') FILTER (WHERE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > 10737418240),
      coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)::bigint FROM pg_replication_slots";
    let row = one(pool, sql).await?;
    let (names, most): (Option<String>, i64) = (row.try_get(0)?, row.try_get(1)?);
    Ok(match names {
        Some(names) => Finding::risky(
            CHECK,
            format!("replication slots hold back more than {} GiB of WAL: {names}", HELD_BACK >> 30),
            "bring their readers back, or drop the slots; max_slot_wal_keep_size limits what they hold",
        ),
        None => Finding::fine(CHECK, format!("replication slots hold back {} MiB of WAL", most >> 20)),
    })
}

async fn connections(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.connections";
    let sql = "SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
      (SELECT count(*) FROM pg_stat_activity WHERE backend_type IS NULL OR backend_type = 'client backend'),
      (SELECT count(DISTINCT coalesce(client_addr::text, pid::text)) FROM pg_stat_activity WHERE application_name = 'semel'),
      coalesce((SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user), 2147483647)::bigint";
    let row = one(pool, sql).await?;
    let (most, used, limit): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(3)?);
    let free = most.min(limit) - used;
    Ok(if free < PER_PROCESS {
        Finding::risky(
            CHECK,
            format!(
                "{used} of {most} connections are in use, and one more gateway takes up to {PER_PROCESS}"
            ),
            "raise max_connections (or the role's limit), or put PgBouncer in between",
        )
    } else {
        Finding::fine(
            CHECK,
            format!("{used} of {most} connections are in use; a gateway takes up to {PER_PROCESS}"),
        )
    })
}

async fn transactions(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.transactions";
    let sql = "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8,
      (SELECT count(*) FROM pg_prepared_xacts) FROM pg_stat_activity WHERE datname = current_database()";
    let row = one(pool, sql).await?;
    let (oldest, prepared): (f64, i64) = (row.try_get(0)?, row.try_get(1)?);
    Ok(if prepared > 0 {
        Finding::risky(
            CHECK,
            format!("{prepared} prepared transactions (PREPARE TRANSACTION) are open"),
            "commit or roll them back (pg_prepared_xacts): they hold their keys, and vacuum cleans nothing",
        )
    } else if oldest > OLD_TRANSACTION {
        Finding::risky(
            CHECK,
            format!("a transaction has been open for {} min", (oldest / 60.0) as u64),
            "end it (pg_stat_activity); idle_in_transaction_session_timeout does so by itself. It holds its keys, and vacuum cleans nothing",
        )
    } else {
        Finding::fine(CHECK, "no transaction is open for long")
    })
}

async fn timeouts(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.timeouts";
    let sql = "SELECT string_agg(name || ' = ' || setting || coalesce(unit, ''), ', ') FROM pg_settings
      WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout') AND setting::bigint BETWEEN 1 AND 999";
    let short: Option<String> = one(pool, sql).await?.try_get(0)?;
    Ok(match short {
        Some(short) => Finding::risky(
            CHECK,
            format!("the server ends statements of this role early: {short}"),
            "set them to 0 for the role: the gateway has a time limit of its own (store_timeout)",
        ),
        None => Finding::fine(CHECK, "the server ends no statement of this role early"),
    })
}

async fn outbox_privileges(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.outbox_privileges";
    let sql = "SELECT string_agg(format('%s on %s', privilege, name), ', ' ORDER BY name, privilege)
      FROM unnest(ARRAY['semel_outbox', 'semel_outbox_lanes', 'semel_outbox_publishers', 'semel_outbox_dropped']) AS name,
        unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege WHERE NOT has_table_privilege(name, privilege)";
    let missing: Option<String> = one(pool, sql).await?.try_get(0)?;
    Ok(match missing {
        Some(missing) => Finding::risky(
            CHECK,
            format!("the role lacks privileges on the outbox: {missing}"),
            "GRANT them to the role, if events are published",
        ),
        None => Finding::fine(CHECK, "the role may use the outbox"),
    })
}

async fn bloat(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.bloat";
    let sql = "SELECT current_setting('autovacuum') = 'on',
      (SELECT string_agg(c.relname, ', ') FROM pg_class c WHERE c.relname LIKE 'semel\\_%' AND 'autovacuum_enabled=false' = ANY (c.reloptions)),
      string_agg(format('%s has %s dead rows beside %s live ones', relname, n_dead_tup, n_live_tup), '; ')
        FILTER (WHERE n_dead_tup > 100000 AND n_dead_tup > n_live_tup / 2),
      coalesce(sum(n_dead_tup), 0)::bigint
      FROM pg_stat_user_tables WHERE relname LIKE 'semel\\_%'";
    let row = one(pool, sql).await?;
    let on: bool = row.try_get(0)?;
    let (off, bloated): (Option<String>, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
    let dead: i64 = row.try_get(3)?;
    Ok(if !on || off.is_some() {
        Finding::wrong(
            CHECK,
            format!("autovacuum is off{}", off.map_or(String::new(), |tables| format!(" for {tables}"))),
            "switch it on: every completed operation leaves a dead row",
        )
    } else if let Some(bloated) = bloated {
        Finding::risky(
            CHECK,
            bloated,
            "autovacuum does not keep up: raise autovacuum_vacuum_cost_limit and autovacuum_max_workers, and look for old transactions",
        )
    } else {
        Finding::fine(CHECK, format!("{dead} dead rows; autovacuum keeps up"))
    })
}

async fn wraparound(pool: &PgPool) -> Asked {
    const CHECK: &str = "postgres.wraparound";
    let age: i64 = one(pool, "SELECT max(age(datfrozenxid))::bigint FROM pg_database").await?.try_get(0)?;
    Ok(if age > OLD_XID {
        Finding::risky(
            CHECK,
            format!(
                "the oldest transaction id is {age} transactions old; at 2 000 million the server takes no writes"
            ),
            "VACUUM (FREEZE) the database, and find what kept autovacuum from it",
        )
    } else {
        Finding::fine(CHECK, format!("the oldest transaction id is {age} transactions old"))
    })
}
