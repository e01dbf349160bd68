//! The publisher and the consumer as processes of their own, and how they are killed.

use crate::books::Books;
use crate::broker::TestStream;
use crate::plan::{Life, Plan, Victim};
use crate::trap::{Place, REACHED, Trap, Traps};
use semel_events::consumer::{ConsumerOptions, Delivery, NatsConsumer};
use semel_events::message::Event;
use semel_events::outbox::PublisherOptions;
use semel_events::sink::{NatsSink, Sink, Undelivered};
use semel_testing::servers::Nats;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Tells a process what it is to do, and makes the test below that process.
const TASK: &str = "SEMEL_CAMPAIGN_TASK";

/// Longer than anything takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a process that works until it is killed, at the latest when it is dropped.
pub(crate) fn start(task: &str, database: &str, broker: &str, stream: &str, traps: &[Trap]) -> Child {
    let mut words = vec![task.to_owned(), database.into(), broker.into(), stream.into()];
    words.extend(traps.iter().map(|trap| trap.text()));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["processes::a_process_that_is_killed", "--exact", "--nocapture"]);
    command.env(TASK, words.join(" ")).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap()
}

/// Publishers live and die as planned.
pub(crate) async fn publish(plan: &Plan, database: &str, stream: &str, broker: &mut Nats) {
    for life in &plan.publishers {
        live("publish", life, database, stream, broker).await;
    }
}

/// Consumers live and die as planned; the last one lives until everything is acknowledged.
pub(crate) async fn consume(plan: &Plan, database: &str, stream: &TestStream, broker: &mut Nats) {
    for life in &plan.consumers {
        live("consume", life, database, &stream.name, broker).await;
    }
    let last = start("consume", database, &broker.url(), &stream.name, &[]);
    let left = async || stream.open().await.map(|(pending, unacknowledged)| pending + unacknowledged as u64);
    until_none_are_left("messages to be acknowledged", left).await;
    drop(last);
}

/// Waits until nothing is left, for as long as it gets less: how long all of it takes depends on the machine.
pub(crate) async fn until_none_are_left(of_what: &str, mut left: impl AsyncFnMut() -> Option<u64>) {
    let mut least = u64::MAX;
    while least > 0 {
        let less = async || left().await.filter(|left| *left < least);
        least = crate::broker::until(&format!("less than {least} {of_what}"), less).await;
    }
}

async fn live(task: &str, life: &Life, database: &str, stream: &str, broker: &mut Nats) {
    let traps: Vec<_> = life.iter().map(|incident| incident.trap).collect();
    let mut process = start(task, database, &broker.url(), stream, &traps);
    let mut said = BufReader::new(process.stdout.take().unwrap()).lines();
    for incident in life {
        let reaching = async { while said.next_line().await.unwrap().expect("it lives") != REACHED {} };
        tokio::time::timeout(PATIENCE, reaching)
            .await
            .unwrap_or_else(|_| panic!("{task} never came to {incident:?}"));
        if incident.victim != Victim::Process {
            broker.kill().unwrap();
        }
        if incident.victim != Victim::Broker {
            process.kill().await.unwrap();
        }
        if incident.victim != Victim::Process {
            broker.start_again().unwrap();
        }
    }
}

/// Not a test: what [`start`] runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed() {
    let Ok(task) = std::env::var(TASK) else { return };
    let mut words = task.split(' ');
    let [task, database, broker, stream] = [(); 4].map(|()| words.next().unwrap());
    let (books, traps) = (Books::open(database).await, Arc::new(Traps::of_texts(words)));
    let context = async_nats::jetstream::new(async_nats::connect(broker).await.unwrap());
    if task == "publish" {
        let sink = Watched { sink: NatsSink::new(context, stream), traps };
        return books.publish(sink, options(), std::future::pending()).await;
    }
    let consumer = NatsConsumer::new(context, stream, "ledger")
        // However often it is delivered: it is not the messages that kill the process.
        .options(ConsumerOptions { deliveries: u32::MAX, ..crate::broker::hasty() })
        .ack_wait(Duration::from_secs(1));
    let handler = move |delivery: Delivery| {
        let (books, traps) = (books.clone(), Arc::clone(&traps));
        async move { books.book(&delivery, &traps).await }
    };
    consumer.run(handler, std::future::pending()).await.unwrap();
}

/// What a publisher left is taken up soon, and no outage makes a dead letter.
pub(crate) fn options() -> PublisherOptions {
    PublisherOptions {
        lease: Duration::from_secs(3),
        renew_every: Duration::from_millis(100),
        poll_every: Duration::from_millis(10),
        batch: 256,
        attempts: u32::MAX,
        retry_every: Duration::from_millis(20),
        ..PublisherOptions::default()
    }
}

/// A sink with traps before and behind it.
struct Watched {
    sink: NatsSink,
    traps: Arc<Traps>,
}

impl Sink for Watched {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        self.traps.at(Place::Before).await;
        self.sink.publish(event).await?;
        self.traps.at(Place::After).await;
        Ok(())
    }
}
