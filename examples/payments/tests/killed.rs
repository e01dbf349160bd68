//! `kill -9` at any moment of a service that is paid with, retried and raced.
//!
//! The story that this test is afraid of: a client hears "paid", the process dies, and after the restart the payment is not
//! there, or reads differently, or the retry pays once more. So the service runs as a process of its own on one file, and is
//! killed over and over while clients send payments and retries; and everything that it ever said is held against what each kill
//! left in the file and against what the next process says ([`ledger`]).
#![allow(clippy::expect_used, clippy::panic, unreachable_pub, reason = "a test fails by a panic")]

mod ledger;

use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ledger::{ACCOUNT, Answer, Ledger, Left, Life, Meaning, Payment, Record, State, Told};
use ledger::{command, key, number_of_key, number_of_reference};
use payments::{DELAY, PaymentsOptions, PaymentsService};
use rusqlite::Connection;
use semel_conformance::kill::Dice;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const KILLS: u32 = 110;
const CLIENTS: u32 = 8;
/// Longer than most lives: what was cut off is still in progress in the next one, and unknown in one that lives longer.
const LEASE: Duration = Duration::from_millis(400);
/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(10);
/// Payments that are made in each life, however slow the machine is, before it is killed.
const MADE: u32 = 3;

/// Names the file to the child, and makes the test below the child. The service's own binary has no way to be told of a short
/// lease or of slow handlers, and needs none; this runs the same library.
const CHILD: &str = "PAYMENTS_KILL_CHILD";
const LISTENS: &str = "listens at ";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_that_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let options = PaymentsOptions {
        lease: LEASE,
        timeout: LEASE * 9 / 10,
        demo_delays: true,
        ..PaymentsOptions::default()
    };
    let service =
        PaymentsService::open(&path, options).await.expect("the file opens, whatever the kill left");
    // A new port for each life: no request to one process is ever answered by the next.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let line = format!("{LISTENS}{}\n", listener.local_addr().expect("an address"));
    std::io::stdout().write_all(line.as_bytes()).expect("somebody listens");
    service.serve(listener, end_of_input()).await.expect("it serves");
}

/// The child's lifeline: it never outlives its parent, however that ends.
async fn end_of_input() {
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while std::io::stdin().read(&mut rest).is_ok_and(|read| read > 0) {}
        let _ = ended.send(());
    });
    let _ = end.await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_payment_outlives_a_hundred_kills_and_none_is_made_twice() {
    let seed = match std::env::var("PAYMENTS_KILL_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => u64::from(std::process::id()),
    };
    println!("PAYMENTS_KILL_SEED={seed}");
    let mut dice = Dice::seeded(seed);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("payments.db");
    let clock = Instant::now();
    let mut ledger = Ledger::new(LEASE);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|which| Client::new(which, seed)).collect();
    for round in 0..KILLS {
        let mut service = Service::start(&path);
        let mut life = Life::default();
        // The first ones are killed while they make the file, and every sixth one while it recovers it.
        if round < 4 || round % 6 == 5 {
            tokio::time::sleep(Duration::from_micros(dice.below(40_000))).await;
            service.kill(clock, &mut life);
        } else {
            let address = service.address();
            life.listening = clock.elapsed();
            let mut working = JoinSet::new();
            let made = Arc::new(Semaphore::new(0));
            for client in clients.drain(..) {
                working.spawn(client.work(address, clock, made.clone()));
            }
            // A few live long enough to judge what the others left: not before they have seen one whole lease pass.
            let at_least = if round % 10 == 6 { LEASE * 5 / 4 } else { Duration::from_millis(10) };
            tokio::time::sleep(at_least + Duration::from_micros(dice.below(110_000))).await;
            let enough = tokio::time::timeout(PATIENCE * 6, made.acquire_many(MADE)).await;
            let _permits = enough.expect("payments are made").expect("it is never closed");
            service.kill(clock, &mut life);
            // An answer may have left before the kill and come in after it: it counts, and each client hears its last one.
            while let Some(ended) = working.join_next().await {
                let (client, told) = ended.expect("a client works until it is cut off");
                clients.push(client);
                life.told.extend(told);
            }
        }
        let broken = ledger.settle(&life, left_in(&path, round % 20 == 0));
        assert!(broken.is_empty(), "seed {seed}, round {round}: {broken:#?}");
    }

    // The last life goes undisturbed: everything that was ever asked for is asked for again, after every lease is over.
    let mut service = Service::start(&path);
    let address = service.address();
    let listening = clock.elapsed();
    tokio::time::sleep(LEASE * 2).await;
    let mut asking = JoinSet::new();
    let asked: u32 = clients.iter().map(|client| client.asked).sum();
    for client in clients {
        asking.spawn(client.ask_for_everything(address, clock));
    }
    let mut life =
        Life { told: asking.join_all().await.into_iter().flatten().collect(), listening, ..Life::default() };
    service.kill(clock, &mut life);
    let broken = ledger.settle(&life, left_in(&path, true));
    assert!(broken.is_empty(), "seed {seed}, in the end: {broken:#?}");

    let (tally, left) = (ledger.tally(), ledger.left());
    let (paid, unknown) = (left.count(&State::Completed), left.count(&State::Unknown));
    println!("{tally}; of {asked} payments {paid} were made, {unknown} are unknown; {:?}", clock.elapsed());
    assert_eq!(ledger.acknowledged(), paid, "whatever is in the file was acknowledged by now");
    assert_eq!(paid + unknown, asked as usize, "every payment is made or unknown by now");
    // A run that gets nowhere, or whose kills all miss, would prove nothing.
    assert!(tally.kills > 100 && paid > 150, "only {paid} payments in {} lives", tally.kills);
    assert!(tally.replayed > 200, "only {} replays", tally.replayed);
    assert!(unknown >= 20 && tally.in_progress >= 20, "hardly a kill fell into a handler");
    assert!(tally.told_by_another > 0, "no kill fell between a commit and its answer");
    assert!(tally.strained * 20 < tally.requests, "{} answers of a service in trouble", tally.strained);
}

/// The service as a process of its own.
struct Service {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Service {
    fn start(path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this very test"));
        command.args(["the_service_that_is_killed", "--exact", "--nocapture"]).env(CHILD, path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the child starts");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { child, lines }
    }

    fn address(&self) -> SocketAddr {
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).expect("the service comes up, whatever the kill left");
            // The test runner prints the name of a test without ending the line.
            if let Some((_, address)) = line.split_once(LISTENS) {
                return address.parse().expect("an address");
            }
        }
    }

    fn kill(&mut self, clock: Instant, life: &mut Life) {
        let ended = self.child.try_wait().expect("the child is ours");
        assert!(ended.is_none(), "the service ended by itself: {ended:?}");
        life.killed = clock.elapsed();
        self.child.kill().expect("the child is ours to kill");
        self.child.wait().expect("the child is dead");
        life.dead = clock.elapsed();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// What is in the file now that its process is dead.
///
/// A copy is read: whoever opens the file first also recovers it, and that is to be the next process, as it would be in life.
fn left_in(path: &Path, thoroughly: bool) -> Left {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("copy.db");
    let (log, log_copy) = (path.with_extension("db-wal"), directory.path().join("copy.db-wal"));
    for (from, to) in [(path, &copy), (&log, &log_copy)] {
        if from.exists() {
            std::fs::copy(from, to).expect("a copy");
        }
    }
    let file = Connection::open(&copy).expect("the file opens");
    if thoroughly {
        let found: String =
            file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("the file is checked");
        assert_eq!(found, "ok");
    }
    let mut left = Left::default();
    let exists = |table: &str| file.prepare(&format!("SELECT * FROM {table}")).is_ok();
    if exists("semel_operations") {
        let mut all = file.prepare("SELECT key, operation_id, state FROM semel_operations").expect("a view");
        let mut rows = all.query([]).expect("records");
        while let Some(row) = rows.next().expect("a record") {
            let key: String = row.get(0).expect("a key");
            let state: String = row.get(2).expect("a state");
            let record = Record { operation_id: row.get(1).expect("an id"), state: state.into() };
            let number = number_of_key(&key).unwrap_or_else(|| panic!("nobody sent the key {key}"));
            left.records.entry(number).or_default().push(record);
        }
    }
    if exists("payments") {
        let columns = "merchant_reference, id, account, amount_hundredths, currency";
        let mut all = file.prepare(&format!("SELECT {columns} FROM payments")).expect("a table");
        let mut rows = all.query([]).expect("payments");
        while let Some(row) = rows.next().expect("a payment") {
            let reference: String = row.get(0).expect("a reference");
            let payment = Payment {
                id: row.get(1).expect("an id"),
                account: row.get(2).expect("an account"),
                hundredths: row.get(3).expect("an amount"),
                currency: row.get(4).expect("a currency"),
            };
            let number = number_of_reference(&reference).unwrap_or_else(|| panic!("nobody paid {reference}"));
            left.payments.entry(number).or_default().push(payment);
        }
    }
    left
}

/// A client that makes payments of its own, retries them, and asks again after each restart what became of them.
struct Client {
    which: u32,
    dice: Dice,
    /// How many payments it has asked for.
    asked: u32,
    /// What it wants to hear of again: acknowledged in the last life, cut off, or in progress.
    open: VecDeque<u32>,
}

impl Client {
    fn new(which: u32, seed: u64) -> Self {
        let dice = Dice::seeded(seed ^ (u64::from(which) + 1) << 40);
        Self { which, dice, asked: 0, open: VecDeque::new() }
    }

    fn number(&self, nth: u32) -> u32 {
        nth * CLIENTS + self.which
    }

    /// Sends payments until the connection breaks.
    async fn work(mut self, address: SocketAddr, clock: Instant, made: Arc<Semaphore>) -> (Self, Vec<Told>) {
        let mut log = Vec::new();
        let mut to_ask_first = self.open.len();
        loop {
            let number = match self.open.pop_front() {
                Some(number) if to_ask_first > 0 => {
                    to_ask_first -= 1;
                    number
                }
                front => {
                    self.open.extend(front);
                    self.new_or_old()
                }
            };
            let told = self.send(number, address, clock).await;
            let answers = || told.iter().filter_map(|told| told.answer.as_ref());
            let is_made = |answer: &&Answer| answer.meaning() == Meaning::Paid && !answer.replayed;
            made.add_permits(answers().filter(is_made).count());
            let settled = answers().any(|answer| match answer.meaning() {
                Meaning::Paid => answer.replayed,
                meaning => meaning == Meaning::Unknown,
            });
            if !settled && !self.open.contains(&number) {
                self.open.push_back(number);
            }
            let cut_off = told.iter().any(|told| told.answer.is_none());
            log.extend(told);
            if cut_off {
                return (self, log);
            }
        }
    }

    fn new_or_old(&mut self) -> u32 {
        if self.asked > 0 && self.dice.below(5) == 0 {
            let nth = self.dice.below(u64::from(self.asked));
            return self.number(u32::try_from(nth).expect("below a u32"));
        }
        self.asked += 1;
        self.number(self.asked - 1)
    }

    /// Sends the payment once or several times at once. Some handlers take their time, so that kills fall into them.
    async fn send(&mut self, number: u32, address: SocketAddr, clock: Instant) -> Vec<Told> {
        let slow = if self.dice.below(3) == 0 { self.dice.below(80) } else { 0 };
        let copies = [1, 1, 1, 2, 3][usize::try_from(self.dice.below(5)).expect("below 5")];
        let mut sending = JoinSet::new();
        for _ in 0..copies {
            let later = Duration::from_millis(self.dice.below(slow / 2 + 3));
            sending.spawn(async move {
                tokio::time::sleep(later).await;
                ask(number, slow, address, clock).await
            });
        }
        sending.join_all().await
    }

    async fn ask_for_everything(self, address: SocketAddr, clock: Instant) -> Vec<Told> {
        let mut log = Vec::new();
        for nth in 0..self.asked {
            log.push(ask(self.number(nth), 0, address, clock).await);
        }
        log
    }
}

async fn ask(number: u32, slow: u64, address: SocketAddr, clock: Instant) -> Told {
    let sent = clock.elapsed();
    let answer = tokio::time::timeout(PATIENCE, exchange(number, slow, address)).await;
    let answer =
        answer.unwrap_or_else(|_| panic!("{number}: neither an answer nor an end within {PATIENCE:?}"));
    Told { number, sent, heard: clock.elapsed(), answer }
}

/// One request on a connection of its own, so that nothing is retried or shared behind our back. `None` if that breaks.
async fn exchange(number: u32, slow: u64, address: SocketAddr) -> Option<Answer> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let mut request = Request::post("/payments")
        .header("host", "payments")
        .header("content-type", "application/json")
        .header("x-account-id", ACCOUNT)
        .header("idempotency-key", key(number));
    if slow > 0 {
        request = request.header(DELAY, format!("{slow}ms"));
    }
    let body = Full::new(Bytes::from(command(number).to_string()));
    let response = sender.send_request(request.body(body).expect("a request")).await.ok()?;
    let (head, body) = response.into_parts();
    // A body that is cut off is no answer: its length was announced.
    let body = body.collect().await.ok()?.to_bytes();
    let telling_apart = ["date", "idempotent-replayed", "original-request-id"];
    let headers = head.headers.iter().filter(|(name, _)| !telling_apart.contains(&name.as_str()));
    Some(Answer {
        status: head.status.as_u16(),
        replayed: head.headers.get("idempotent-replayed").is_some_and(|value| value == "true"),
        headers: headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body,
    })
}
