//! What is remembered of a key, in memory and on disk; and the ledger of effects.

use super::Fault;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// A stored answer.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// The states of a key.
#[derive(Clone)]
pub(super) enum Known {
    Running {
        fingerprint: String,
        body: String,
    },
    Done {
        fingerprint: String,
        body: String,
        answer: Stored,
    },
    Expired {
        fingerprint: String,
        body: String,
    },
    /// A crash came in between.
    Unknown {
        fingerprint: String,
        body: String,
    },
}

impl Known {
    pub(super) fn fingerprint(&self) -> &str {
        match self {
            Self::Running { fingerprint, .. }
            | Self::Done { fingerprint, .. }
            | Self::Unknown { fingerprint, .. }
            | Self::Expired { fingerprint, .. } => fingerprint,
        }
    }

    pub(super) fn body(&self) -> &str {
        match self {
            Self::Running { body, .. }
            | Self::Done { body, .. }
            | Self::Unknown { body, .. }
            | Self::Expired { body, .. } => body,
        }
    }
}

/// All keys of one or several nodes.
#[derive(Clone, Default)]
pub(super) struct Keys(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    known: HashMap<String, Known>,
    log: Option<File>,
}

impl Keys {
    /// Reads what an earlier life left.
    pub(super) fn open(fault: Option<Fault>, directory: &Path) -> Self {
        if fault == Some(Fault::KeysInMemory) {
            return Self::default();
        }
        let file = directory.join("keys");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let mut known = HashMap::new();
        for line in text.lines() {
            // The last line may be half of one.
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let (key, fingerprint, body) = (text("key"), text("fingerprint"), text("body"));
            let state = match line["status"].as_u64() {
                None => Known::Unknown { fingerprint, body },
                Some(0) => {
                    known.remove(&key);
                    continue;
                }
                Some(status) => {
                    let headers = serde_json::from_value(line["headers"].clone()).unwrap();
                    let answer =
                        Stored { status: u16::try_from(status).unwrap(), headers, body: text("answer") };
                    Known::Done { fingerprint, body, answer }
                }
            };
            known.insert(key, state);
        }
        match fault {
            Some(Fault::LockGoneAfterCrash) => known.retain(|_, known| matches!(known, Known::Done { .. })),
            // The lock is taken for one that is held.
            Some(Fault::StuckAfterCrash) => {
                for known in known.values_mut() {
                    if let Known::Unknown { fingerprint, body } = known {
                        *known = Known::Running {
                            fingerprint: std::mem::take(fingerprint),
                            body: std::mem::take(body),
                        };
                    }
                }
            }
            _ => {}
        }
        let log = OpenOptions::new().create(true).append(true).open(file).unwrap();
        Self(Arc::new(Mutex::new(Table { known, log: Some(log) })))
    }

    pub(super) fn find(&self, key: &str) -> Option<Known> {
        self.0.lock().unwrap().known.get(key).cloned()
    }

    /// Reserves the key, if it is free: one atomic step.
    pub(super) fn reserve(&self, key: &str, fingerprint: &str, body: &str) -> Result<(), Known> {
        let mut table = self.0.lock().unwrap();
        if let Some(known) = table.known.get(key) {
            return Err(known.clone());
        }
        table.put(key, Known::Running { fingerprint: fingerprint.to_owned(), body: body.to_owned() });
        Ok(())
    }

    /// Writes, whatever was there.
    pub(super) fn put(&self, key: &str, known: Known) {
        self.0.lock().unwrap().put(key, known);
    }

    /// The window of every key is over.
    pub(super) fn expire(&self, forget: bool) {
        let mut table = self.0.lock().unwrap();
        if forget {
            table.known.clear();
        }
        for known in table.known.values_mut() {
            let (fingerprint, body) = (known.fingerprint().to_owned(), known.body().to_owned());
            *known = Known::Expired { fingerprint, body };
        }
    }

    pub(super) fn release(&self, key: &str) {
        let mut table = self.0.lock().unwrap();
        table.known.remove(key);
        table.write(&json!({ "key": key, "status": 0 }));
    }
}

impl Table {
    fn put(&mut self, key: &str, known: Known) {
        let mut line = json!({ "key": key, "fingerprint": known.fingerprint(), "body": known.body() });
        if let Known::Done { answer, .. } = &known {
            line["status"] = answer.status.into();
            line["headers"] = serde_json::to_value(&answer.headers).unwrap();
            line["answer"] = answer.body.clone().into();
        }
        self.write(&line);
        self.known.insert(key.to_owned(), known);
    }

    fn write(&mut self, line: &Value) {
        if let Some(log) = &mut self.log {
            log.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
    }
}

/// The effects: one line for each, with its reference.
pub(super) struct Ledger {
    lines: Mutex<(Vec<String>, File)>,
    /// How many lines an earlier life left.
    recovered: usize,
}

impl Ledger {
    pub(super) fn open(directory: &Path) -> Self {
        let file = directory.join("ledger");
        let lines: Vec<String> =
            std::fs::read_to_string(&file).unwrap_or_default().lines().map(str::to_owned).collect();
        let file = OpenOptions::new().create(true).append(true).open(file).unwrap();
        Self { recovered: lines.len(), lines: Mutex::new((lines, file)) }
    }

    /// Adds an effect, and returns its number.
    pub(super) fn add(&self, reference: &str) -> usize {
        let mut lines = self.lines.lock().unwrap();
        lines.1.write_all(format!("{reference}\n").as_bytes()).unwrap();
        lines.0.push(reference.to_owned());
        lines.0.len()
    }

    pub(super) fn count(&self, reference: Option<&str>) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.0.iter().filter(|line| reference.is_none_or(|reference| *line == reference)).count()
    }
    /// Whether an earlier life had this effect.
    pub(super) fn recovered(&self, reference: &str) -> bool {
        self.lines.lock().unwrap().0[..self.recovered].iter().any(|line| line == reference)
    }
}

/// How many requests have come for each reference.
#[derive(Default)]
pub(super) struct Arrivals {
    count: Mutex<HashMap<String, usize>>,
    came: Notify,
}

impl Arrivals {
    pub(super) fn add(&self, reference: &str) {
        *self.count.lock().unwrap().entry(reference.to_owned()).or_default() += 1;
        self.came.notify_waiters();
    }

    /// Waits for a duplicate, so long at most.
    pub(super) async fn duplicate(&self, reference: &str, most: Duration) {
        let has_come = async {
            loop {
                let came = self.came.notified();
                if self.count.lock().unwrap().get(reference).is_some_and(|count| *count > 1) {
                    return;
                }
                came.await;
            }
        };
        // Without one, it was only slow.
        let _came = tokio::time::timeout(most, has_come).await;
    }
}
