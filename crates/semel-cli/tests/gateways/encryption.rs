//! From plain to encrypted, and through two changes of keys, under load: nobody who retries notices anything.

use crate::support::{Answer, Ask, Database, Gateway, PAYMENTS, Service, post, semel, try_send, until};
use serde_json::Value;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CLIENTS: usize = 3;
/// How many requests are answered in each stage at least.
const LOAD: usize = 15;

/// What may not differ between an answer and its replays.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Said {
    status: u16,
    body: Vec<u8>,
    headers: Vec<Option<String>>,
}

impl Said {
    fn by(answer: &Answer) -> Self {
        let names = ["content-type", "content-length", "location", "semel-operation-id"];
        let headers = names.iter().map(|name| answer.header(name).map(str::to_owned)).collect();
        Self { status: answer.status, body: answer.body.clone(), headers }
    }
}

/// Clients that pay and retry without end, and where they find the gateways at the moment.
#[derive(Default)]
struct Load {
    addresses: Mutex<[Option<SocketAddr>; 2]>,
    next: AtomicUsize,
    answered: AtomicUsize,
    first: Mutex<Vec<(usize, Said)>>,
    over: AtomicBool,
}

impl Load {
    /// The answer of one of the gateways, whichever is there to give one.
    async fn send(&self, which: usize, ask: &Ask) -> Answer {
        for turn in which.. {
            let address = self.addresses.lock().unwrap()[turn % 2].unwrap();
            let Some(answer) = try_send(address, ask).await else { continue };
            if answer.status == 201 {
                return answer;
            }
            match (answer.status, answer.code().as_str()) {
                // Of a request whose first answer went with its gateway; and a store that is late on a busy machine.
                (409, "idempotency_key_in_progress") | (503, "idempotency_store_unavailable") => {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                _ => panic!("{answer:?}"),
            }
        }
        unreachable!("there is always another turn")
    }

    async fn go_on(&self, client: usize) {
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let said = Said::by(&self.send(client, &payment(number)).await);
            let earlier = {
                let mut first = self.first.lock().unwrap();
                first.push((number, said));
                // One of the latest, and one from anywhere.
                [first.len() - 1, number * 7919 % first.len()].map(|at| first[at].clone())
            };
            for (number, said) in earlier {
                self.is_replayed(client + 1, number, &said).await;
            }
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn is_replayed(&self, which: usize, number: usize, said: &Said) {
        let replay = self.send(which, &payment(number)).await;
        assert!(replay.is_replay(), "{replay:?}");
        assert_eq!(&Said::by(&replay), said);
    }

    async fn has_gone_on(&self) {
        let so_far = self.answered.load(Ordering::Relaxed);
        until("requests are answered", || self.answered.load(Ordering::Relaxed) >= so_far + LOAD).await;
    }
}

fn payment(number: usize) -> Ask {
    let ask = post(&format!("/payments?number={number}"), &format!("sealed-payment-{number}"));
    ask.field("x-header: Location: /payments/b0dy-of-a-header")
}

/// A section with these keys. Nothing of them may be in a log, which has nothing with this beginning in it.
pub(crate) fn keys(ids: &[&str], more: &str) -> String {
    let key = |id: &&str| {
        let fill = "A".repeat(39 - id.len());
        format!("{{ id = \"{id}\", key = \"k3y-{id}{fill}\" }}")
    };
    let keys: Vec<String> = ids.iter().map(key).collect();
    format!("{PAYMENTS}\n[encryption]\nkeys = [{}]\n{more}\n", keys.join(", "))
}

/// Runs `semel rekey` with these sections, and returns what it counted.
pub(crate) async fn rekey(store: &str, sections: &str, more: &'static [&str]) -> (Option<i32>, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.toml");
    let text = format!("upstream = \"http://127.0.0.1:9\"\nstore = \"{store}\"\n{sections}");
    std::fs::write(&file, text).unwrap();
    let output = tokio::task::spawn_blocking(move || {
        semel()
            .args(["rekey", "--json", "--batch", "16", "--pause-ms", "1", "--config"])
            .arg(file)
            .args(more)
            .output()
    });
    let output = output.await.unwrap().unwrap();
    drop(directory);
    let said = [output.stdout.as_slice(), &output.stderr].map(String::from_utf8_lossy);
    for secret in ["k3y-", "b0dy-"] {
        assert!(!said.iter().any(|text| text.contains(secret)), "{said:?}");
    }
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said:?}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_plain_to_encrypted_and_through_two_changes_of_keys_every_replay_is_the_same() {
    let (service, database) = (Service::start(), Database::new().await);
    let load = Arc::new(Load::default());
    let mut gateways = [None, None];
    let mut clients = Vec::new();
    // Each key is given to every gateway before the first of them seals by it.
    let stages = [
        (PAYMENTS.to_owned(), None),
        (keys(&["one"], "seal_with = \"none\""), None),
        (keys(&["one"], ""), Some("one")),
        (keys(&["one", "two"], ""), None),
        (keys(&["two", "one"], ""), Some("two")),
        (keys(&["two", "three"], ""), None),
        (keys(&["three", "two"], ""), Some("three")),
        (keys(&["three"], "plain = \"refused\""), None),
    ];
    for (sections, rekeyed) in &stages {
        for (which, place) in gateways.iter_mut().enumerate() {
            let new = Gateway::configured(&service, &database.url(), "", sections).await;
            load.addresses.lock().unwrap()[which] = Some(new.address);
            if let Some(mut old) = place.replace(new) {
                old.is_told_to_end();
                assert_eq!(old.ended().await.code(), Some(0));
            }
        }
        if clients.is_empty() {
            let client = |client| {
                let load = Arc::clone(&load);
                tokio::spawn(async move { load.go_on(client).await })
            };
            clients.extend((0..CLIENTS).map(client));
        }
        load.has_gone_on().await;
        if let Some(id) = rekeyed {
            let (status, counts) = rekey(&database.url(), sections, &[]).await;
            assert_eq!((status, counts["sealed_by"].as_str()), (Some(0), Some(*id)), "{counts}");
            assert!(counts["rewritten"].as_u64().unwrap() > 0, "{counts}");
        }
    }
    load.over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }

    let first = load.first.lock().unwrap().clone();
    for (turn, (number, said)) in first.iter().enumerate() {
        load.is_replayed(turn, *number, said).await;
    }
    let executions = service.executions();
    assert_eq!(executions.len(), first.len());
    assert_eq!(executions.iter().collect::<HashSet<_>>().len(), first.len(), "each was executed once");
    let dump = database.dump().await;
    let canary: String = "b0dy-".bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(dump.contains("sealed-payment-0") && !dump.contains("b0dy-") && !dump.contains(&canary));

    let (sections, _) = &stages[stages.len() - 1];
    let (status, counts) = rekey(&database.url(), sections, &[]).await;
    assert_eq!((status, counts["rewritten"].as_u64()), (Some(0), Some(0)), "{counts}");
    assert_eq!(counts["looked_at"].as_u64(), Some(first.len() as u64));
    // Without its key nothing is rewritten, and that is said.
    let (status, counts) = rekey(&database.url(), &keys(&["four"], ""), &[]).await;
    assert_eq!((status, counts["damaged"].as_u64()), (Some(1), Some(first.len() as u64)), "{counts}");
    let (status, _) = rekey(&database.url(), &keys(&["three"], "seal_with = \"none\""), &["--decrypt"]).await;
    assert_eq!(status, Some(0));
    assert!(database.dump().await.contains(&canary), "the seals are off again");
}
