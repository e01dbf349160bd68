//! What a request costs at the server's disk: syncs of its log, as the server itself counts them.

use crate::instance::{Instance, replayed};
use semel_testing::servers::Cluster;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Row as _, raw_sql};
use std::str::FromStr as _;

const OPERATIONS: u64 = 50;

/// The log is written by nobody but those who commit: no standby is told what is under way, and nothing tidies up.
const QUIET: [&str; 5] = [
    "wal_level = minimal",
    "max_wal_senders = 0",
    "autovacuum = off",
    "checkpoint_timeout = 1h",
    "max_wal_size = 4GB",
];

/// Some come from the server's own processes nevertheless, however quiet.
const STRAY: u64 = 10;

async fn connection(cluster: &Cluster) -> PgConnection {
    PgConnectOptions::from_str(&cluster.url("postgres")).unwrap().connect().await.unwrap()
}

/// How often the log was synced so far, by whoever. Connections tell what they did when they end, so all of them do.
async fn log_syncs(cluster: &Cluster) -> u64 {
    let mut conn = connection(cluster).await;
    let ending = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
                    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    raw_sql(ending).execute(&mut conn).await.unwrap();
    let version = raw_sql("SELECT current_setting('server_version_num')::int").fetch_one(&mut conn).await;
    let syncs = match version.unwrap().get::<i32, _>(0) {
        ..180_000 => "SELECT wal_sync FROM pg_stat_wal",
        _ => "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'",
    };
    let syncs: i64 = raw_sql(syncs).fetch_one(&mut conn).await.unwrap().get(0);
    u64::try_from(syncs).unwrap()
}

#[tokio::test]
async fn a_request_syncs_the_log_twice_and_a_retry_never() {
    let cluster = Cluster::start(&QUIET).unwrap();
    let instance = Instance::open(&cluster.url("postgres")).await;
    instance.carry_out("the-very-first").await;
    instance.store.close().await;

    let before = log_syncs(&cluster).await;
    let instance = Instance::open(&cluster.url("postgres")).await;
    for number in 0..OPERATIONS {
        instance.carry_out(&format!("payment-{number}")).await;
    }
    instance.store.close().await;
    let after_new = log_syncs(&cluster).await;
    let spent = after_new - before;
    assert!((2 * OPERATIONS..=2 * OPERATIONS + STRAY).contains(&spent), "{OPERATIONS} new: {spent} syncs");

    let instance = Instance::open(&cluster.url("postgres")).await;
    for number in 0..OPERATIONS {
        replayed(instance.ask(&format!("payment-{number}")).await);
    }
    instance.store.close().await;
    let spent = log_syncs(&cluster).await - after_new;
    assert!(spent <= STRAY, "{OPERATIONS} replays: {spent} syncs");
}
