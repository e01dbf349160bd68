//! All of it at once: ten thousand payments, told through outbox, broker and inbox, while everything that can be killed is killed.
//!
//! The story that this test is afraid of: each part keeps its promise by itself, and between two of them a payment gets lost or is
//! booked twice. So the publisher and the consumer are processes, the broker is a server of the test's own that syncs what it
//! confirms, and all three are killed with -9 at places that are counted and not timed. What is published is handed to the consumer
//! shuffled, and a fifth of it twice. In the end every payment has one ledger entry, one mail and one notification.
//!
//! Which places, and how much is done before, is thrown by dice: `SEMEL_KILL_SEED` throws a failed run's again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "the seed and what came of it")]

mod books;
mod on_postgres;
mod on_sqlite;
mod plan;
mod processes;
mod telling;
mod trap;

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../inbox/broker.rs"]
mod broker;

use books::Books;
use broker::TestStream;
use plan::{Plan, seed};
use semel_testing::database::Database;
use semel_testing::servers::Nats;
use std::time::Duration;

/// What the requirement says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_payments_are_told_once_each_on_postgresql() {
    let [here, there] = [Database::new().await, Database::new().await];
    campaign(10_000, &here.url(), &there.url()).await;
}

/// Fewer: the code is the same but for the statements, and a file has one writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_payments_are_told_once_each_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let [here, there] = ["here.db", "there.db"].map(|name| directory.path().join(name).display().to_string());
    campaign(2_000, &here, &there).await;
}

/// Payments are made in the database `here`, and booked in the database `there`.
async fn campaign(payments: usize, here: &str, there: &str) {
    let seed = seed();
    let plan = Plan::of(seed, payments);
    let (sender, receiver) = (Books::open(here).await, Books::open(there).await);
    let mut broker = Nats::start().unwrap();
    // The server itself drops nothing that comes again: that would do the inbox's work for it.
    let forgetful = |config: &mut async_nats::jetstream::stream::Config| {
        config.duplicate_window = Duration::from_millis(100);
    };
    let told = TestStream::with(&broker.url(), forgetful).await;

    let paying = tokio::spawn({
        let sender = sender.clone();
        async move { sender.pay(payments).await }
    });
    processes::publish(&plan, here, &told.name, &mut broker).await;
    paying.await.unwrap();
    let last = processes::start("publish", here, &broker.url(), &told.name, &[]);
    processes::until_none_are_left("events in the outbox", async || Some(sender.backlog().await)).await;
    drop(last);

    let messages = telling::everything(&told).await;
    telling::all_in_order(&messages, payments, seed);

    let shuffled = TestStream::with(&broker.url(), forgetful).await;
    telling::again_and_shuffled(&shuffled, messages, payments, seed).await;
    processes::consume(&plan, there, &shuffled, &mut broker).await;

    let booked = receiver.booked().await;
    for (what, mut booked) in booked {
        booked.sort_unstable();
        let mut each_once: Vec<_> = (0..payments).map(books::payment).collect();
        each_once.sort_unstable();
        assert!(booked == each_once, "seed {seed}: {what}: {} of {payments}", booked.len());
    }
    let kills: usize = plan.publishers.iter().chain(&plan.consumers).map(Vec::len).sum();
    println!("seed {seed}: {payments} payments told and applied once each, through {kills} kills");
}
