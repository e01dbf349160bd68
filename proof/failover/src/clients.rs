//! Clients that retry, and what they were told.

use crate::http::{self, Message};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How long an attempt may take, how long a client waits between two, and how long it tries.
const ATTEMPT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(150);

/// What all clients know.
#[derive(Clone)]
pub(crate) struct Clients(Arc<Inner>);

struct Inner {
    gateways: Vec<SocketAddr>,
    stop: AtomicBool,
    numbers: AtomicU64,
    acknowledged: Mutex<HashMap<String, Vec<u8>>>,
    /// Keys that no client got an outcome for.
    open: AtomicU64,
    /// Answers to keys that were executed before they got one, by which nothing can be told.
    wrong: Mutex<Vec<String>>,
    /// When a new key was last acknowledged.
    last: Mutex<Instant>,
}

/// What a last look at all keys came to.
pub(crate) struct Verdict {
    pub(crate) acknowledged: usize,
    /// Acknowledged, and not answered the same any more.
    pub(crate) lost: Vec<String>,
    pub(crate) open: u64,
    /// What was answered otherwise while it ran.
    pub(crate) wrong: Vec<String>,
}

impl Clients {
    pub(crate) fn new(gateways: Vec<SocketAddr>) -> Self {
        Self(Arc::new(Inner {
            gateways,
            stop: AtomicBool::new(false),
            numbers: AtomicU64::new(0),
            acknowledged: Mutex::default(),
            open: AtomicU64::new(0),
            wrong: Mutex::default(),
            last: Mutex::new(Instant::now()),
        }))
    }

    /// Starts so many.
    pub(crate) fn start(&self, count: usize) -> Vec<JoinHandle<()>> {
        let client = || {
            let clients = self.clone();
            thread::spawn(move || {
                while !clients.0.stop.load(Ordering::SeqCst) {
                    clients.pay();
                }
            })
        };
        (0..count).map(|_| client()).collect()
    }

    pub(crate) fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.told().len()
    }

    /// Whether a new key was acknowledged since.
    pub(crate) fn served_since(&self, moment: Instant) -> bool {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) > moment
    }

    fn told(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<u8>>> {
        self.0.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One payment, until it is acknowledged.
    fn pay(&self) {
        let number = self.0.numbers.fetch_add(1, Ordering::SeqCst);
        let key = format!("key-{number:012}");
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(answer) = self.ask(&key) {
                match answer.status() {
                    201 => {
                        self.told().insert(key, answer.body);
                        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                        // Every tenth asks for an earlier one again.
                        if number.is_multiple_of(10) {
                            self.ask_again(fastrand::u64(..=number));
                        }
                        return;
                    }
                    // In doubt: its owner may still store what became of it.
                    409 | 425 | 429 | 502..=504 => {}
                    status => {
                        self.note(format!("{key}: {status}"));
                        return;
                    }
                }
            }
            sleep(PAUSE);
        }
        self.0.open.fetch_add(1, Ordering::SeqCst);
    }

    fn ask(&self, key: &str) -> std::io::Result<Message> {
        let at = fastrand::usize(..self.0.gateways.len());
        let fields = [("idempotency-key", key), ("x-account", "shop"), ("content-type", "application/json")];
        http::send(self.0.gateways[at], "POST /payments", &fields, "{\"amount\":1}", ATTEMPT)
    }

    /// A key that was acknowledged has the same answer, or for now none.
    fn ask_again(&self, number: u64) {
        let key = format!("key-{number:012}");
        let Some(told) = self.told().get(&key).cloned() else { return };
        if let Ok(answer) = self.ask(&key)
            && answer.status() == 201
            && answer.body != told
        {
            self.note(format!("{key}: another answer"));
        }
    }

    fn note(&self, what: String) {
        self.0.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Asks for every acknowledged key once more.
    pub(crate) fn verify(&self) -> Verdict {
        let told: Vec<(String, Vec<u8>)> =
            self.told().iter().map(|(key, body)| (key.clone(), body.clone())).collect();
        let acknowledged = told.len();
        let parts: Vec<Vec<(String, Vec<u8>)>> =
            told.chunks(told.len().div_ceil(8).max(1)).map(<[_]>::to_vec).collect();
        let asking = parts.into_iter().map(|part| {
            let clients = self.clone();
            thread::spawn(move || {
                part.into_iter().filter(|(key, body)| !clients.has(key, body)).map(|(key, _)| key).collect()
            })
        });
        let asking: Vec<JoinHandle<Vec<String>>> = asking.collect();
        let lost = asking.into_iter().flat_map(|asked| asked.join().unwrap_or_default()).collect();
        let wrong = std::mem::take(&mut *self.0.wrong.lock().unwrap_or_else(PoisonError::into_inner));
        Verdict { acknowledged, lost, open: self.0.open.load(Ordering::SeqCst), wrong }
    }

    fn has(&self, key: &str, body: &[u8]) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.ask(key) {
                Ok(answer) if answer.status() == 201 => {
                    return answer.body == body && answer.field("idempotent-replayed") == Some("true");
                }
                Ok(answer) if answer.status() < 500 && answer.status() != 409 && answer.status() != 429 => {
                    return false;
                }
                _ => sleep(PAUSE),
            }
        }
        false
    }
}
