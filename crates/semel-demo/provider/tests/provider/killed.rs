//! `kill -9` at any moment, under load.
//!
//! The story that this test is afraid of: somebody hears "charged" or "nothing is known", the process dies, and after the restart
//! the charge is not in the ledger, or reads differently, or the attempt that was said to have had no effect has one. So all
//! that each life says is held against what the next one says.

use crate::command::Process;
use crate::harness::{Answer, Client, PATIENCE, terms};
use hyper::body::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

const LIVES: u64 = 9;
const CLIENTS: u64 = 8;

/// What clients were told.
#[derive(Default)]
struct Told {
    asked: BTreeSet<String>,
    charged: BTreeMap<String, Bytes>,
    /// Identities of which it was said that nothing is known.
    absent: BTreeSet<String>,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.asked.extend(other.asked);
        self.charged.extend(other.charged);
        self.absent.extend(other.absent);
    }
}

/// Throws that can be had again (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Charges, asks and comes again until the process dies.
async fn work(client: Client, heard: watch::Sender<u64>, life: u64, number: u64, mut dice: Dice) -> Told {
    let mut told = Told::default();
    for order in 0.. {
        let identity = format!("order-{life}-{number}-{order}");
        told.asked.insert(identity.clone());
        let mode =
            ["none", "none", "none", "drop-after", "error-after", "drop-before"][dice.below(6) as usize];
        let charge = |mode| {
            let identity = identity.clone();
            async move {
                client.try_post("/charges", &identity, &[("x-provider-mode", mode)], &terms("1.00")).await
            }
        };
        let ask = || async { client.try_send(hyper::Method::GET, &path(&identity), &[], "").await };
        // Some are asked about before they are sent, and some have no answer and come again.
        let asked_first = dice.below(8) == 0;
        if asked_first {
            let Ok(answer) = ask().await else { return told };
            told.hear(&identity, &answer);
        }
        let answer = match charge(mode).await {
            Ok(answer) if answer.status < 500 => Ok(answer),
            _ if dice.below(2) == 0 => ask().await,
            _ => charge("none").await,
        };
        let Ok(answer) = answer else { return told };
        told.hear(&identity, &answer);
        heard.send_modify(|answers| *answers += 1);
        assert!(!asked_first || answer.status != 201, "charged after it was said that it would not be");
    }
    told
}

fn path(identity: &str) -> String {
    format!("/charges/by-identity/{identity}?attempt=1")
}

impl Told {
    fn hear(&mut self, identity: &str, answer: &Answer) {
        match answer.status {
            200 | 201 => drop(self.charged.insert(identity.to_owned(), answer.body.clone())),
            404 => drop(self.absent.insert(identity.to_owned())),
            409 => assert!(self.absent.contains(identity), "refused without a reason"),
            status => panic!("{identity}: {status} {:?}", answer.body),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_acknowledged_outlives_a_kill_and_whatever_was_denied_stays_undone() {
    let seed = std::env::var("PROVIDER_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("PROVIDER_KILL_SEED={seed}");
    let mut dice = Dice(seed | 1 << 40);
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("provider.ledger");
    let mut told = Told::default();
    for life in 0..LIVES {
        let mut process = Process::start(&ledger, &[]).await;
        let mut working = JoinSet::new();
        let (heard, mut answers) = watch::channel(0);
        for number in 0..CLIENTS {
            working.spawn(work(process.client, heard.clone(), life, number, Dice(dice.below(u64::MAX) | 1)));
        }
        // In the middle of the work, however fast it goes; then at any moment of what follows.
        let enough = 20 + dice.below(60);
        let reached = timeout(PATIENCE, answers.wait_for(|answers| *answers >= enough)).await;
        reached.expect("answers come").unwrap();
        tokio::time::sleep(Duration::from_micros(dice.below(3000))).await;
        process.kill().await;
        let mut heard = Told::default();
        while let Some(ended) = working.join_next().await {
            heard.add(ended.unwrap());
        }
        // A kill seldom cuts a write in two; what it leaves then is left here on purpose.
        let torn = life % 3 == 1;
        if torn {
            tear(&ledger);
        }
        let mut process = Process::start(&ledger, &[]).await;
        if torn {
            assert!(std::fs::read(&ledger).unwrap().ends_with(b"}\n"), "the torn line is dropped");
        }
        hold_to_it(process.client, &heard).await;
        told.add(heard);
        // Dead for sure: the next one is refused the ledger as long as this one has it.
        process.kill().await;
    }
    // All of it once more, after all the kills.
    let process = Process::start(&ledger, &[]).await;
    hold_to_it(process.client, &told).await;
    let summary = process.client.summary().await;
    assert_eq!(summary["identities_charged_twice"], 0);
    let charged = summary["charges"].as_u64().unwrap();
    println!(
        "{} asked, {} acknowledged, {} denied: {summary}",
        told.asked.len(),
        told.charged.len(),
        told.absent.len()
    );
    // The test must have got somewhere.
    assert!(told.charged.len() > 100 && told.absent.len() > 10, "too little was done to be killed in");
    assert!(charged >= told.charged.len() as u64 && charged <= told.asked.len() as u64);
}

/// The beginning of a line whose end was never written.
fn tear(ledger: &Path) {
    let text = std::fs::read_to_string(ledger).unwrap();
    let line = text.lines().last().unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(ledger).unwrap();
    file.write_all(&line.as_bytes()[..line.len() - 7]).unwrap();
}

async fn hold_to_it(client: Client, told: &Told) {
    let mut asking = JoinSet::new();
    for identity in told.asked.clone() {
        if asking.len() >= 16 {
            asking.join_next().await.unwrap().unwrap();
        }
        let (charged, absent) = (told.charged.get(&identity).cloned(), told.absent.contains(&identity));
        asking.spawn(async move {
            let effects = client.effects(&identity).await;
            assert!(effects <= 1, "{identity} was charged {effects} times");
            if let Some(body) = charged {
                assert_eq!(effects, 1, "{identity} was acknowledged, and is not in the ledger");
                let again = client.charge(&identity, "1.00").await;
                assert_eq!((again.status, again.body), (201, body), "{identity} reads differently");
            }
            if absent {
                assert_eq!(effects, 0, "{identity} was denied, and is in the ledger");
                assert_eq!(client.charge(&identity, "1.00").await.code(), (409, "sealed".into()));
            }
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.unwrap();
    }
}
