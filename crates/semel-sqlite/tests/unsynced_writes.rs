//! The power goes: what was not synced is lost, and nothing that was acknowledged may be.
//!
//! A kill alone loses nothing that was written, for the kernel still has it. So the child runs under `drop_unsynced.c`,
//! which keeps beside the store's directory a shadow of it that holds synced writes alone. After the kill the shadow is what
//! the disk would hold; the next round goes on from there, as a machine does that comes back up.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test fails by a panic, and prints its seed")]

use semel_conformance::kill::{Dice, Ledger, Victim, work};
use semel_sqlite::{SqliteOptions, SqliteStore};
use semel_testing::shim;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const CHILD: &str = "SEMEL_POWER_CUT_CHILD";
const CUTS: u32 = 100;

#[derive(Clone, Copy, PartialEq)]
enum Syncing {
    AsItStands,
    Never,
}

async fn open(directory: &Path, syncing: Syncing) -> Arc<SqliteStore> {
    let options = match syncing {
        // A short WAL, so that every round has a checkpoint and a restart of the WAL.
        Syncing::AsItStands => SqliteOptions::new().checkpoint_pages(40),
        Syncing::Never => SqliteOptions::new().dangerously_without_fsync(),
    };
    Arc::new(options.open(directory.join("semel.db")).await.expect("the file opens"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_whose_power_is_cut() {
    let Ok(round) = std::env::var(CHILD) else { return };
    let directory = PathBuf::from(std::env::var_os("SHIM_REAL").expect("the parent names it"));
    let syncing = if std::env::var_os("NEVER_SYNC").is_some() { Syncing::Never } else { Syncing::AsItStands };
    work(open(&directory, syncing).await, round.parse().expect("a number")).await;
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("a file");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it can be copied");
    }
}

/// Cuts the power so many times, and tells what was lost. The first round syncs in any case, so that what is lost later is lost
/// from a sound file.
async fn losses(wanted: Syncing, cuts: u32) -> (Vec<String>, Ledger) {
    let seed = match std::env::var("SEMEL_KILL_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => u64::from(std::process::id()),
    };
    println!("SEMEL_KILL_SEED={seed}");
    let mut dice = Dice::seeded(seed);
    // Its name in full: the shim compares paths as the store names them, and the store may resolve them first.
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().canonicalize().expect("it is there");
    let shim = shim::compile("drop_unsynced", &root);
    let mut ledger = Ledger::default();
    let mut disk = root.join("disk");
    std::fs::create_dir(&disk).expect("a directory");
    for round in 0..cuts {
        let syncing = if round == 0 { Syncing::AsItStands } else { wanted };
        let (real, shadow) = (root.join(format!("real-{round}")), root.join(format!("shadow-{round}")));
        copy(&disk, &real);
        copy(&disk, &shadow);
        let mut command = Command::new(std::env::current_exe().expect("this very test"));
        command.args(["the_child_whose_power_is_cut", "--exact", "--nocapture"]);
        command.env(CHILD, round.to_string());
        command.env("LD_PRELOAD", &shim).env("SHIM_REAL", &real).env("SHIM_SHADOW", &shadow);
        if syncing == Syncing::Never {
            command.env("NEVER_SYNC", "yes");
        }
        // Every other time the disk has also written some of what it was not asked to.
        if round % 2 == 1 {
            command.env("SHIM_EARLY", dice.below(1 << 31).to_string());
        }
        let victim = Victim::start(&mut command);
        if round % 4 != 3 {
            victim.wait_until_ready();
        }
        tokio::time::sleep(Duration::from_micros(dice.below(60_000))).await;
        ledger.take_down(&victim.kill());
        // What is looked at is a copy, so that looking (recovering, checkpointing) does not help the disk along.
        let copied = root.join(format!("look-{round}"));
        copy(&shadow, &copied);
        let last = cuts == round + 1;
        let store = open(&copied, Syncing::AsItStands).await;
        let losses = if last { ledger.losses(store).await } else { ledger.losses_of_last(store).await };
        if last || !losses.is_empty() {
            return (losses, ledger);
        }
        for done in [&disk, &real, &copied] {
            std::fs::remove_dir_all(done).expect("ours to remove");
        }
        disk = shadow;
    }
    unreachable!("the last round returns")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(target_os = "linux"), ignore = "the shim is written for Linux and glibc")]
async fn nothing_acknowledged_is_lost_when_the_power_goes() {
    let (losses, ledger) = losses(Syncing::AsItStands, CUTS).await;
    assert!(losses.is_empty(), "{losses:#?}");
    let (executed, acknowledged) = (ledger.executions(), ledger.acknowledged());
    println!("{CUTS} power cuts, {executed} executions, {acknowledged} acknowledged outcomes");
    assert!(acknowledged > CUTS as usize / 4, "only {acknowledged} outcomes in {CUTS} rounds");
}

/// The control: where the store does not sync, the same check finds losses. Else the test above would prove nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(target_os = "linux"), ignore = "the shim is written for Linux and glibc")]
async fn a_store_that_does_not_sync_is_found_out() {
    let (losses, ledger) = losses(Syncing::Never, 10).await;
    assert!(ledger.acknowledged() > 0, "nothing was acknowledged that could have been lost");
    assert!(!losses.is_empty(), "no loss was found, and there must be some");
}
