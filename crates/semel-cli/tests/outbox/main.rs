//! The outbox as operators run it: `semel gateway` and `semel worker` publish what an application has appended, and `semel outbox`
//! deals with what its receiver refuses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]
#![cfg(unix)]

mod brokers;
mod operators;
mod publishing;
mod support;

use semel_events::message::Event;
use semel_events::outbox::sqlite::append;
use semel_sqlite::SqliteStore;
use semel_testing::gateway::Receiver;
use std::path::{Path, PathBuf};
use support::SECRET;
use tempfile::TempDir;

/// An application, its store, and the receiver of its events.
struct Shop {
    directory: TempDir,
    receiver: Receiver,
}

impl Shop {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), receiver: Receiver::start() }
    }

    /// A configuration; `worker` are the settings of [worker].
    fn config(&self, name: &str, worker: &str) -> PathBuf {
        let rest = format!(
            "[outbox]\nsink = \"http://{}/events\"\nsecret = \"{SECRET}\"\nattempts = 2\nretry_every = \"10ms\"\n[worker]\n{worker}\n",
            self.receiver.address
        );
        // Nobody asks for the service here.
        support::config(self.directory.path(), name, "127.0.0.1:9".parse().unwrap(), &rest)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Appends as the application does, from a process that is not the gateway's.
    fn append(&self, events: Vec<Event>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(self.path().join("semel.db")).await.unwrap();
            store.transaction(move |tx| append(tx, &events)).await.unwrap();
            store.close().await;
        });
    }

    /// How many events are in the outbox.
    fn backlog(&self) -> i64 {
        let file = rusqlite::Connection::open(self.path().join("semel.db")).unwrap();
        file.query_row("SELECT count(*) FROM semel_outbox", [], |row| row.get(0)).unwrap()
    }
}

fn event(aggregate: &str, kind: &str, number: u32) -> Event {
    Event::json(aggregate, kind, format!("{{\"number\":{number}}}"))
}
