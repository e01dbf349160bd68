//! A bank that stands for any provider: its ledger is its own, and no transaction of ours includes it.
//!
//! It executes a charge of one key once, however often it is asked to. Charges of 1313 cents are made, and never answered: the first
//! time.

use semel::Identity;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What the bank said for certain. It is stored with the operation, as JSON.
#[derive(Serialize, Deserialize)]
pub enum Verdict {
    Charged { id: String },
    Declined { code: String },
}

#[derive(Clone)]
pub struct Bank {
    ledger: Arc<Mutex<PathBuf>>,
}

impl Bank {
    pub fn with_ledger(file: impl Into<PathBuf>) -> Self {
        Self { ledger: Arc::new(Mutex::new(file.into())) }
    }

    /// One call to the bank. An error would mean: no answer. The bank may have charged all the same.
    pub async fn charge(&self, identity: Identity, cents: u32) -> io::Result<Verdict> {
        if cents > 100_000 {
            return Ok(Verdict::Declined { code: "limit_exceeded".to_owned() });
        }
        let key = identity.into_key();
        let first = self.enter(&key, cents)?;
        if first && cents == 1313 {
            std::future::pending::<()>().await;
        }
        Ok(Verdict::Charged { id: format!("charge_{key}") })
    }

    /// Writes a charge into the ledger, unless it has one of this key.
    fn enter(&self, key: &str, cents: u32) -> io::Result<bool> {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let charges = std::fs::read_to_string(&*ledger).unwrap_or_default();
        if charges.lines().any(|charge| charge.starts_with(&format!("{key} "))) {
            return Ok(false);
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&*ledger)?;
        writeln!(file, "{key} {cents}")?;
        Ok(true)
    }
}
