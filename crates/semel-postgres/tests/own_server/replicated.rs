//! A primary with synchronous standbys, and what can be done to them.

use semel_testing::servers::Cluster;
use sqlx::{AssertSqlSafe, Executor, PgPool, Row};
use std::process::Command;
use std::time::Duration;

/// Does what is awaited until it is so. A test that waits in vain is ended by its harness.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A pool for the test's own questions.
pub(crate) async fn db(server: &Cluster) -> PgPool {
    PgPool::connect(&server.url("postgres")).await.unwrap()
}

/// Changes a setting of the running server, and waits until it is in force.
pub(crate) async fn set(server: &Cluster, name: &str, value: &str) {
    let db = db(server).await;
    db.execute(AssertSqlSafe(format!("ALTER SYSTEM SET {name} = '{value}'"))).await.unwrap();
    db.execute("SELECT pg_reload_conf()").await.unwrap();
    until(async || {
        let shown = sqlx::query("SELECT current_setting($1)").bind(name).fetch_one(&db).await.unwrap();
        shown.get::<String, _>(0) == value
    })
    .await;
    db.close().await;
}

/// Waits until so many synchronous standbys follow.
pub(crate) async fn followed(server: &Cluster, by: i64) {
    let db = db(server).await;
    let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming'";
    until(async || sqlx::query(sql).fetch_one(&db).await.unwrap().get::<i64, _>(0) >= by).await;
    db.close().await;
}

/// A primary whose commits wait for one of these standbys, each of which knows all of them.
pub(crate) async fn group(names: &[&str]) -> (Cluster, Vec<Cluster>) {
    let primary = Cluster::start(&["cluster_name = 's0'", "max_wal_senders = 10"]).unwrap();
    let standbys: Vec<Cluster> = names.iter().map(|name| primary.standby_named(name).unwrap()).collect();
    let all = format!("ANY 1 (s0, {})", names.join(", "));
    for standby in &standbys {
        set(standby, "synchronous_standby_names", &all).await;
    }
    set(&primary, "synchronous_standby_names", &all).await;
    followed(&primary, i64::try_from(names.len()).unwrap()).await;
    (primary, standbys)
}

/// Has a standby follow another server.
pub(crate) async fn follow(standby: &Cluster, primary: &Cluster) {
    let conninfo = format!("host=127.0.0.1 port={} user=postgres", primary.port());
    set(standby, "primary_conninfo", &conninfo).await;
}

/// The address of all of them.
pub(crate) fn url(servers: &[&Cluster]) -> String {
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    format!("postgres://postgres@{}/postgres", hosts.join(","))
}

/// A standby that receives nothing for as long as this lives. The primary does not notice.
pub(crate) struct Frozen(String);

impl Frozen {
    pub(crate) async fn receiver_of(standby: &Cluster) -> Self {
        let db = db(standby).await;
        let row = sqlx::query("SELECT pid::text FROM pg_stat_wal_receiver").fetch_one(&db).await.unwrap();
        let pid: String = row.get(0);
        assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _gone = Command::new("kill").args(["-CONT", &self.0]).status();
    }
}

/// Waits until so many sessions wait for a standby; their ids.
pub(crate) async fn waiting(db: &PgPool, count: usize) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    loop {
        let rows = sqlx::query(sql).fetch_all(db).await.unwrap();
        if rows.len() >= count {
            return rows.iter().map(|row| row.get(0)).collect();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
