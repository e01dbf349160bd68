//! What is wrong or risky with a store and its deployment, and what to do about it.
//!
//! The store is opened as a gateway would open it, but nothing is migrated; whatever keeps it from being opened is the first finding. Then the server or
//! the file is looked at, and a sample of the records.

mod postgres;
mod records;
mod sqlite;

use crate::config::Config;
use crate::store::StoreUrl;
use semel::StoreHandle;
use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// As it should be.
    Fine,
    /// It works, and may not for long, or not in a failure.
    Risky,
    /// A promise does not hold, or nothing works.
    Wrong,
}

impl Severity {
    /// As output has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Risky => "risky",
            Self::Wrong => "wrong",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one check came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which check it was: a stable name.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub found: String,
    /// What to do about it; none where it is fine.
    pub cure: Option<String>,
}

impl Finding {
    fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, severity: Severity::Fine, found: found.into(), cure: None }
    }

    fn risky(check: &'static str, found: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, severity: Severity::Risky, found: found.into(), cure: Some(cure.into()) }
    }

    fn wrong(check: &'static str, found: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, severity: Severity::Wrong, found: found.into(), cure: Some(cure.into()) }
    }

    /// That something could not be looked at.
    fn unseen(check: &'static str, error: &dyn fmt::Display) -> Self {
        Self::risky(
            check,
            format!("could not be checked: {error}"),
            "see to what the error says, and run this again",
        )
    }
}

/// All that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnosis {
    /// The store, without its password.
    pub store: String,
    /// What each check came to, in the order in which they were made.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// How bad the worst finding is.
    #[must_use]
    pub fn worst(&self) -> Severity {
        self.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Fine)
    }
}

/// Looks at the store of a configuration, and at the configuration where the store depends on it.
pub async fn examine(config: &Config) -> Diagnosis {
    let mut findings = vec![tenants(config)];
    let store: &StoreUrl = &config.store;
    let opened = if let Some((options, url)) = store.postgres_options(config.clock) {
        postgres::examine(options, url, &mut findings).await
    } else if let Some(file) = store.file() {
        sqlite::examine(file, config, &mut findings).await
    } else {
        let cure = "name a file or a server: store = \"sqlite:semel.db\"";
        findings.push(Finding::wrong(
            "store.durable",
            "the store is in memory: a restart forgets every key",
            cure,
        ));
        None
    };
    if let Some(opened) = opened {
        let handle = StoreHandle::new(opened, config.store_timeout);
        records::examine(&handle, config, &mut findings).await;
    }
    Diagnosis { store: store.to_string(), findings }
}

fn tenants(config: &Config) -> Finding {
    const CHECK: &str = "config.tenants";
    if config.scope.by_credential() {
        return Finding::risky(
            CHECK,
            "tenants come from bearer credentials: with a refreshed token a retry is another tenant's, and executes again",
            "name a source that stays: [scope] tenant = [\"header:x-account-id\"], [\"jwt:sub\"] or [\"forward-auth\"]",
        );
    }
    Finding::fine(CHECK, "tenants do not depend on a credential that is refreshed")
}
