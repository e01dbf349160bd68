//! The server dies under load, again and again, and its connections are cut at random in between.
//!
//! Many clients carry out operations and repeat old ones. Each effect is counted where it happens; each outcome that was
//! acknowledged is written down. While the server is down nothing is decided and nothing executes; once it is back, nothing that
//! was acknowledged is missing, and nothing happened twice.

use crate::instance::{Instance, answer, finish, refused, replayed};
use semel::{Decision, Finish, StoredResponse};
use semel_conformance::kill::Dice;
use semel_testing::servers::{Cluster, Stop};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Row, raw_sql};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

const CLIENTS: usize = 32;

/// Where the dice of this test begin.
const SEED: u64 = 20_261_115;

/// How often the server dies.
const CRASHES: usize = 2;

/// How many connections are cut before each crash, and how many operations are to succeed between two cuts.
const CUTS: usize = 25;
const BETWEEN_CUTS: usize = 10;

/// No wait below takes this long, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happened outside of the store, where a crash of the server does not reach.
#[derive(Default)]
struct World {
    effects: Mutex<HashMap<String, u32>>,
    acknowledged: Mutex<HashMap<String, StoredResponse>>,
    /// Odd while the server is certainly away.
    outage: AtomicU64,
    refusals: Vec<AtomicUsize>,
    closing: AtomicBool,
    changed: Notify,
}

impl World {
    fn new() -> Self {
        Self { refusals: (0..CLIENTS).map(|_| AtomicUsize::new(0)).collect(), ..Self::default() }
    }

    fn effects(&self) -> u32 {
        self.effects.lock().unwrap().values().sum()
    }

    fn acknowledged(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    async fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if holds(self) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
    }

    /// Waits until so many more operations have been acknowledged.
    async fn wait_for_successes(&self, more: usize) {
        let enough = self.acknowledged() + more;
        self.wait_until("the clients get on", |world| world.acknowledged() >= enough).await;
    }

    /// Waits until each client has been refused once more.
    async fn wait_for_refusals(&self) {
        let before: Vec<usize> = self.refusals.iter().map(|count| count.load(SeqCst)).collect();
        let all_more = |world: &Self| {
            world.refusals.iter().zip(&before).all(|(count, before)| count.load(SeqCst) > *before)
        };
        self.wait_until("every client is refused", all_more).await;
    }
}

/// One client after the other's operation: mostly new ones, and now and then one from before.
async fn client(number: usize, instance: Instance, world: Arc<World>) {
    let mut dice = Dice::seeded(SEED ^ number as u64);
    for count in 0_u64.. {
        if world.closing.load(SeqCst) {
            return;
        }
        let count = if count > 0 && dice.below(4) == 0 { dice.below(count) } else { count };
        attempt(number, &format!("{number}-{count}"), &instance, &world).await;
        world.changed.notify_waiters();
    }
}

async fn attempt(number: usize, name: &str, instance: &Instance, world: &World) {
    let outage = world.outage.load(SeqCst);
    let decision = instance.ask(name).await;
    // It was away when this began and has been all the time since.
    if outage % 2 == 1 && world.outage.load(SeqCst) == outage {
        assert!(refused(&decision), "decided without a store: {decision:?}");
    }
    match decision {
        Ok(Decision::Execute(ticket)) => {
            *world.effects.lock().unwrap().entry(name.to_owned()).or_default() += 1;
            let answer = answer(&ticket);
            match finish(ticket, answer.clone()).await {
                Ok(Finish::Stored) => {
                    world.acknowledged.lock().unwrap().insert(name.to_owned(), answer);
                }
                // It goes on being written in the background.
                Err(_) => {}
                Ok(other) => panic!("{name} ended as {other:?}"),
            }
        }
        Ok(Decision::Replay(record)) => {
            let answer = record.response.expect("what is replayed has an answer");
            let mut acknowledged = world.acknowledged.lock().unwrap();
            let before = acknowledged.entry(name.to_owned()).or_insert_with(|| answer.clone());
            assert_eq!(*before, answer, "{name} was answered twice, and not alike");
        }
        Ok(Decision::InProgress { .. }) => {}
        Ok(other) => panic!("{name} was told {other:?}"),
        Err(_) => {
            assert!(refused(&decision), "{decision:?}");
            world.refusals[number].fetch_add(1, SeqCst);
        }
    }
}

/// Cuts one of the store's connections, whichever the dice say.
async fn cut_one(conn: &mut PgConnection, dice: &mut Dice) {
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'semel' ORDER BY pid";
    let pids: Vec<i32> =
        raw_sql(sql).fetch_all(&mut *conn).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(!pids.is_empty(), "the store has connections");
    let pid = pids[usize::try_from(dice.below(pids.len() as u64)).unwrap()];
    sqlx::query("SELECT pg_terminate_backend($1)").bind(pid).execute(conn).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_dies_under_load_loses_nothing_and_repeats_nothing() {
    let server = Cluster::start(&[]).unwrap();
    let url = server.url("postgres");
    let (instance, world) = (Instance::open(&url).await, Arc::new(World::new()));
    let clients: Vec<_> =
        (0..CLIENTS).map(|number| tokio::spawn(client(number, instance.clone(), world.clone()))).collect();
    let mut dice = Dice::seeded(SEED);

    for _ in 0..CRASHES {
        let mut conn = PgConnectOptions::from_str(&url).unwrap().connect().await.unwrap();
        for _ in 0..CUTS {
            world.wait_for_successes(BETWEEN_CUTS).await;
            cut_one(&mut conn, &mut dice).await;
        }
        world.wait_for_successes(BETWEEN_CUTS).await;

        server.stop(Stop::Immediate).unwrap();
        world.outage.fetch_add(1, SeqCst);
        // What was decided before may still be carried out; once every client has been refused, none of that is left.
        world.wait_for_refusals().await;
        let executed = world.effects();
        world.wait_for_refusals().await;
        assert_eq!(world.effects(), executed, "something was executed while there was no store");

        world.outage.fetch_add(1, SeqCst);
        server.start_again().unwrap();
        world.wait_for_successes(CLIENTS).await;
    }

    world.closing.store(true, SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    // Outcomes that could not be stored at first are by now.
    tokio::time::timeout(PATIENCE, instance.engine.drained())
        .await
        .expect("everything is written in the end");
    audit(&Instance::open(&url).await, &world).await;
}

/// Asks another instance for everything that was ever begun.
async fn audit(elsewhere: &Instance, world: &World) {
    let effects = world.effects.lock().unwrap().clone();
    let acknowledged = world.acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() > CRASHES * CUTS * BETWEEN_CUTS);
    for (name, count) in &effects {
        assert_eq!(*count, 1, "{name} was executed {count} times");
        let kept = replayed(elsewhere.ask(name).await);
        if let Some(answer) = acknowledged.get(name) {
            assert_eq!(kept, *answer, "{name}");
        }
    }
    assert!(acknowledged.keys().all(|name| effects.contains_key(name)), "answered without having executed");
}
