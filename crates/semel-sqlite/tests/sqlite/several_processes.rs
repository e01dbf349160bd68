//! Several processes on one file. The children are this very test binary, started again.

use crate::fixture::{Place, complete, create, draft, read};
use semel::transition::{Change, Claim, act};
use semel::{Created, State, Store, Swap, Swapped};
use semel_sqlite::{SqliteOptions, SqliteStore};
use std::io::BufRead;
use std::process::{Command, Stdio};

const PLACE: &str = "SEMEL_SQLITE_TEST_PLACE";
const KEYS: usize = 150;

/// What each child does: races the others for every key, completes what it won, and prints the names of those.
#[test]
#[ignore = "is started by the test below, as a process of its own"]
fn child() {
    let Ok(path) = std::env::var(PLACE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        // Three processes on two slow cores: longer than the default, so that only a real starvation fails.
        let options = SqliteOptions::new().busy_timeout(std::time::Duration::from_secs(30));
        let store = options.open(path).await.unwrap();
        let tasks: Vec<_> = (0..KEYS)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move { race(&store, &format!("key-{number}")).await })
            })
            .collect();
        for (number, task) in tasks.into_iter().enumerate() {
            if task.await.unwrap() {
                println!("won key-{number}");
            }
        }
    });
}

async fn race(store: &SqliteStore, name: &str) -> bool {
    let reserved = draft(name);
    if create(store, reserved.clone()).await != Created::Inserted {
        return false;
    }
    let record = read(store, name).await.unwrap();
    assert_eq!(record.owner, reserved.owner);
    let Ok(Change::Put { next, history }) = act(&record, &Claim::of(&reserved), &complete()) else {
        panic!("the owner may complete")
    };
    let swap = Swap { expected: record.expected(), next, history };
    assert_eq!(store.swap(vec![swap]).await.unwrap().items, vec![Swapped::Done]);
    true
}

#[tokio::test]
async fn every_key_is_won_by_one_process_and_completed_by_it() {
    let place = Place::new();
    // Nobody has opened the file yet: the children also race for making its tables.
    let children: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "several_processes::child", "--ignored", "--nocapture"])
                .env(PLACE, place.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut won = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let lines = output.stdout.lines().map(Result::unwrap);
        won.extend(lines.filter_map(|line| line.split_once("won ").map(|(_, name)| name.to_string())));
    }
    won.sort();
    let mut all: Vec<_> = (0..KEYS).map(|number| format!("key-{number}")).collect();
    all.sort();
    assert_eq!(won, all);
    let store = place.open().await;
    for name in all {
        assert_eq!(read(&store, &name).await.unwrap().state, State::Completed, "{name}");
    }
}
