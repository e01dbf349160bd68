//! `kill -9` at any moment of a loop of requests.
//!
//! The story that this test is afraid of: a process says "paid" and dies, the file is opened again, and the payment is not in
//! it, or the retry pays once more. So a child process reserves and completes, and says each acknowledged fact on a pipe; it is
//! killed at random moments over and over, on one and the same file; and what it said is held against what the file holds.
#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use semel_conformance::kill::{Dice, Ledger, Victim, work};
use semel_sqlite::{SqliteOptions, SqliteStore};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Names the file and the round to the child, and makes the test below the child.
const CHILD: &str = "SEMEL_KILL_CHILD";
const KILLS: u32 = 120;

async fn open(path: &Path) -> Arc<SqliteStore> {
    // A short log, so that kills also meet copies of it into the file, and new beginnings.
    Arc::new(SqliteOptions::new().checkpoint_pages(40).open(path).await.expect("the file opens"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_that_is_killed() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (round, path) = task.split_once(' ').expect("a round and a path");
    work(open(Path::new(path)).await, round.parse().expect("a number")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_nothing_executes_twice_over_a_hundred_kills() {
    let seed = match std::env::var("SEMEL_KILL_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => u64::from(std::process::id()),
    };
    println!("SEMEL_KILL_SEED={seed}");
    let mut dice = Dice::seeded(seed);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("semel.db");
    let mut ledger = Ledger::default();
    for round in 0..KILLS {
        let mut command = Command::new(std::env::current_exe().expect("this very test"));
        command.args(["the_child_that_is_killed", "--exact", "--nocapture"]);
        command.env(CHILD, format!("{round} {}", path.display()));
        let victim = Victim::start(&mut command);
        // Every fourth one is killed while it starts: in the middle of making, migrating or recovering the file.
        if round % 4 != 3 {
            victim.wait_until_ready();
        }
        tokio::time::sleep(Duration::from_micros(dice.below(50_000))).await;
        ledger.take_down(&victim.kill());
        let store = open(&path).await;
        let losses = ledger.losses_of_last(store).await;
        assert!(losses.is_empty(), "seed {seed}, round {round}: {losses:#?}");
    }
    let losses = ledger.losses(open(&path).await).await;
    assert!(losses.is_empty(), "seed {seed}: {losses:#?}");
    let (executed, acknowledged) = (ledger.executions(), ledger.acknowledged());
    println!("{KILLS} kills, {executed} executions, {acknowledged} acknowledged outcomes");
    // A child that gets nowhere would prove nothing.
    assert!(acknowledged > KILLS as usize / 4, "only {acknowledged} outcomes in {KILLS} rounds");
    assert!(executed > acknowledged, "every kill missed");
}
