//! A consumer's process killed at any moment, over and over.
//!
//! The story that this test is afraid of: a process enters a payment and dies before it has told the broker, and the next one enters it
//! again; or it tells the broker first and dies, and nobody enters it. So a child process consumes, and is killed at random moments;
//! what is in the ledger in the end is held against what was published.
#![allow(clippy::print_stdout, reason = "the seed of a run that failed, and the child's word that it works")]

use crate::broker::{TestStream, event, until};
use crate::ledger::{Ledger, enter_delivery};
use semel_conformance::kill::Dice;
use semel_events::consumer::{ConsumerOptions, Delivery, NatsConsumer};
use semel_events::inbox::PgInbox;
use semel_testing::servers::{NATS_URL, Server};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names stream and database to the child, and makes the test below the child.
const CHILD: &str = "SEMEL_CONSUMER_CHILD";
const PAYMENTS: usize = 300;
const KILLS: u32 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_consumer_that_is_killed() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (stream, database) = task.split_once(' ').unwrap();
    let inbox = PgInbox::new(sqlx::PgPool::connect(database).await.unwrap(), "ledger").unwrap();
    let client = async_nats::connect(Server::Nats.url()).await.unwrap();
    let consumer = NatsConsumer::new(async_nats::jetstream::new(client), stream, "ledger")
        // However often it is delivered: it is not the messages that kill the process.
        .options(ConsumerOptions { deliveries: u32::MAX, ..ConsumerOptions::default() })
        .ack_wait(Duration::from_millis(500));
    let handler = move |delivery: Delivery| {
        let inbox = inbox.clone();
        async move { enter_delivery(&inbox, &delivery).await }
    };
    consumer.run(handler, std::future::pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_is_entered_twice_however_often_the_consumer_is_killed() {
    let seed = match std::env::var("SEMEL_KILL_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => u64::from(std::process::id()),
    };
    println!("SEMEL_KILL_SEED={seed}");
    let mut dice = Dice::seeded(seed);
    let ledger = Ledger::new().await;
    let stream = TestStream::new().await;
    let child = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["killed::the_consumer_that_is_killed", "--exact", "--nocapture"]);
        command.env(CHILD, format!("{} {}", stream.name, ledger.database.url()));
        // Or it would start a server of its own.
        command.env(NATS_URL, Server::Nats.url());
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut published = 0;
    for round in 1..=KILLS {
        let mut victim = child();
        let goal = PAYMENTS * round as usize / KILLS as usize;
        for number in published..goal {
            let payment = format!("pay_{number}");
            stream.publish(&[event(&format!("payment/{}", number % 9), &payment)]).await;
        }
        published = goal;
        // Most are killed at work, and some while they begin.
        if round % 4 != 3 {
            let before = ledger.lines().await.len();
            until("an entry", async || (ledger.lines().await.len() > before).then_some(())).await;
        }
        tokio::time::sleep(Duration::from_micros(dice.below(30_000))).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    let mut last = child();
    stream.until_all_acknowledged().await;
    last.kill().unwrap();
    last.wait().unwrap();
    let entries = ledger.entries().await;
    assert_eq!(entries.len(), PAYMENTS, "seed {seed}");
    assert!(entries.values().all(|times| *times == 1), "seed {seed}: {entries:?}");
}
