//! Support for tests that kill processes: the work to kill, and a ledger of what it acknowledged.
//!
//! The child [`work`]s on the store and says each fact on its standard output: that it executes, *before* it does, and that
//! something is acknowledged, *after* it is. The parent kills it at any moment ([`Victim`]), opens the store again and asks the
//! [`Ledger`] what is missing, changed or was executed twice.

use crate::client::{Came, Client, Request};
use crate::samples::WINDOWS;
use bytes::Bytes;
use semel::transition::{Act, Arrived};
use semel::{Body, Fingerprint, OperationId, Owner, Record, RecordKey, State, Store, StoredResponse};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Facts share the pipe with whatever the test runner prints.
const FACT: &str = "fact: ";

/// How many tasks work at once: enough that a kill finds some of them in every place.
const TASKS: u32 = 8;

/// Throws of dice that can be had again: print the seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound` (splitmix64).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn request(name: &str) -> Request {
    Request { key: RecordKey::new("acme", "create_payment", name), fingerprint: Fingerprint([7; 32]) }
}

fn say(fact: &str) {
    // One write per line: a pipe takes it whole or not at all.
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{FACT}{fact}\n").as_bytes()).and_then(|()| out.flush()).expect("somebody listens");
}

/// Works until it is killed: reserves and completes keys of this round, and retries keys of the rounds before, as clients do
/// whose requests were cut off.
pub async fn work(store: Arc<dyn Store>, round: u32) {
    say("ready");
    let client = Client::new(store).with_policy(|policy| policy.lease = Duration::from_millis(40));
    let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(task_of(client.clone(), round, task))).collect();
    for task in tasks {
        task.await.expect("a task works until it is killed");
    }
}

async fn task_of(client: Client, round: u32, task: u32) {
    let mut dice = Dice::seeded(u64::from(round) << 32 | u64::from(task));
    for number in 0_u32.. {
        if round > 0 && number % 3 == 2 {
            let (round, task) = (dice.below(u64::from(round)), dice.below(u64::from(TASKS)));
            attend_to(&client, &format!("{round}-{task}-{}", dice.below(20)), number).await;
        } else {
            attend_to(&client, &format!("{round}-{task}-{number}"), number).await;
        }
    }
}

async fn attend_to(client: &Client, name: &str, number: u32) {
    match client.arrive(&request(name)).await {
        Came::Executes(ticket) => {
            let id = ticket.claim.operation_id;
            say(&format!("executes {name} {id}"));
            tokio::task::yield_now().await;
            // Some are left alone, and answer as in progress, then unknown.
            if number % 7 == 6 {
                return;
            }
            let answer = format!("{:032x}", u128::from_be_bytes(*Owner::random().as_bytes()));
            let response = StoredResponse {
                status: 201,
                headers: vec![],
                body: Body::Stored(Bytes::from(answer.clone())),
                schema_version: None,
            };
            let act = Act::Complete { response: Some(response), resource: None, windows: WINDOWS };
            client.act(&ticket, act).await.expect("nobody else completes it");
            say(&format!("completed {name} {answer}"));
        }
        Came::Told(Arrived::Replay, record) => say(&format!("replayed {name} {}", answer_of(&record))),
        Came::Told(Arrived::InProgress { .. } | Arrived::Unknown, _) => {}
        Came::Told(other, record) => panic!("told {other:?}: {record:?}"),
    }
}

fn answer_of(record: &Record) -> String {
    match record.response.as_ref().map(|kept| &kept.body) {
        Some(Body::Stored(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// A child process that works until it is killed.
pub struct Victim {
    child: Child,
    lines: JoinHandle<Vec<String>>,
    ready: std::sync::mpsc::Receiver<()>,
}

impl Victim {
    /// Starts a process that runs [`work`].
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the child starts");
        let out = child.stdout.take().expect("its output is piped");
        let (tell, ready) = std::sync::mpsc::channel();
        let lines = std::thread::spawn(move || {
            let mut lines = Vec::new();
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // The test runner prints the name of a test without ending the line.
                if let Some((_, fact)) = line.split_once(FACT) {
                    if fact == "ready" {
                        let _ = tell.send(());
                    }
                    lines.push(fact.to_owned());
                }
            }
            lines
        });
        Self { child, lines, ready }
    }

    /// Waits until the store is open and the work begins.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn wait_until_ready(&self) {
        self.ready.recv_timeout(Duration::from_secs(20)).expect("the child opens the store");
    }

    /// Kills it with SIGKILL, and reads what it had acknowledged.
    ///
    /// # Panics
    /// If it had ended by itself: it works until it is killed.
    #[must_use]
    pub fn kill(mut self) -> Vec<String> {
        let ended = self.child.try_wait().expect("the child is ours");
        assert!(ended.is_none(), "the child ended by itself: {ended:?}");
        self.child.kill().expect("the child is ours to kill");
        self.child.wait().expect("the child is dead");
        self.lines.join().expect("its lines were read")
    }
}

/// Everything that was acknowledged, and what the store must therefore hold.
#[derive(Default)]
pub struct Ledger {
    executed: BTreeMap<String, OperationId>,
    completed: BTreeMap<String, String>,
    /// What breaks a promise by itself, whatever the store holds.
    broken: Vec<String>,
    fresh: Vec<String>,
}

impl Ledger {
    /// Records what a process acknowledged.
    ///
    /// # Panics
    /// If it is not what [`work`] says.
    pub fn take_down(&mut self, facts: &[String]) {
        self.fresh.clear();
        for fact in facts {
            let words: Vec<&str> = fact.split(' ').collect();
            match words[..] {
                ["ready"] => {}
                ["executes", name, id] => {
                    let id = id.parse().expect("an operation id");
                    if let Some(before) = self.executed.insert(name.into(), id) {
                        self.broken.push(format!("{name} was executed twice, as {before} and as {id}"));
                    }
                    self.fresh.push(name.into());
                }
                ["completed", name, answer] => {
                    self.completed.insert(name.into(), answer.into());
                }
                // A kill may fall between a commit and its acknowledgement: then the replay is the first sign of it.
                ["replayed", name, answer] => {
                    let before = self.completed.entry(name.into()).or_insert_with(|| answer.into());
                    if before != answer {
                        self.broken.push(format!("{name} was answered {before}, then {answer}"));
                    }
                }
                _ => panic!("not a fact: {fact}"),
            }
        }
    }

    /// How many outcomes were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.completed.len()
    }

    /// How many executions were announced.
    #[must_use]
    pub fn executions(&self) -> usize {
        self.executed.len()
    }

    /// What is wrong with the store after the last kill: what that process acknowledged, and the broken promises.
    pub async fn losses_of_last(&self, store: Arc<dyn Store>) -> Vec<String> {
        self.losses_among(store, &self.fresh).await
    }

    /// What is wrong with the store, after all the kills.
    pub async fn losses(&self, store: Arc<dyn Store>) -> Vec<String> {
        self.losses_among(store, &self.executed.keys().cloned().collect::<Vec<_>>()).await
    }

    async fn losses_among(&self, store: Arc<dyn Store>, names: &[String]) -> Vec<String> {
        let client = Client::new(store);
        let mut losses = self.broken.clone();
        for names in names.chunks(500) {
            let keys = names.iter().map(|name| request(name).key).collect();
            let records = client.store.read(keys).await.expect("the store reads").items;
            for (name, record) in names.iter().zip(records) {
                losses.extend(self.loss(&client, name, record).await);
            }
        }
        losses
    }

    async fn loss(&self, client: &Client, name: &str, record: Option<Record>) -> Option<String> {
        let Some(record) = record else {
            return Some(format!("{name} was reserved, and is missing"));
        };
        if record.operation_id != self.executed[name] || record.attempt != 1 {
            return Some(format!("{name} is another operation now: {record:?}"));
        }
        if let Some(answer) = self.completed.get(name) {
            let same = record.state == State::Completed && answer_of(&record) == *answer;
            return (!same).then(|| format!("{name} was acknowledged with {answer}, and is now {record:?}"));
        }
        // It was running. It may be stored without an acknowledgement; otherwise it is in progress, then unknown.
        match client.arrive(&request(name)).await {
            Came::Told(Arrived::InProgress { .. } | Arrived::Unknown | Arrived::Replay, _) => None,
            Came::Told(told, _) => Some(format!("{name} was under way and answers {told:?}")),
            Came::Executes(_) => Some(format!("{name} was under way and executes again")),
        }
    }
}
