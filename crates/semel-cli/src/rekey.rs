//! `semel rekey`: seals all stored records with the newest key.

use crate::logs::log_as;
use anstream::{eprint, eprintln};
use clap::Args;
use semel::{Engine, EngineOptions, KeysConverted, StoreError};
use semel_gateway::config::LoadError;
use semel_gateway::{Config, OpenStoreError};
use semel_worker::{RekeyOptions, Rekeyed, Rekeyer};
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Seal all stored records with the newest key, while gateways run
///
/// Reads all records and rewrites those that are plain or sealed with an older key, using
/// the `seal_with` key of the file's [encryption]. Clients notice nothing: the same answers
/// are replayed, for just as long. Gateways and workers may keep running. It may be stopped
/// at any time; run it again to do the rest.
///
/// First give the new key to every gateway and worker, then make it `seal_with`, then run
/// this. Operations that began before may still be sealed with the older key: those in
/// flight or in doubt are counted. Run it again once they have ended. When nothing is
/// left, remove the older keys from the file.
///
/// With --keys it also seals client keys in a store that was used before they were sealed,
/// or, with --decrypt, writes them in plain text again. For that, stop every gateway,
/// worker and service on the store: it refuses while an operation is in flight, and the
/// store refuses processes that still run afterwards.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel rekey --config semel.toml
  semel rekey --config semel.toml --pause-ms 100   more slowly, on a busy store
  semel rekey --config semel.toml --json           the counts, for a script
  semel rekey --config semel.toml --keys           client keys too; stop everything first

Exit status: 0 if every record is as the file says and will stay so, 1 if some are not,
if operations in flight may still be sealed with an older key, or if it had to stop,
2 usage error."
)]
pub(crate) struct Arguments {
    /// The gateways' configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Maximum number of records in one commit, and of answers in memory.
    #[arg(long, value_name = "RECORDS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,

    /// Minimum pause between two batches; it is never shorter than the batch took.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pause_ms: u64,

    /// Remove the seals instead; needs seal_with = "none" in the file.
    #[arg(long)]
    decrypt: bool,

    /// Seal client keys too; with --decrypt, write them in plain text again.
    #[arg(long)]
    keys: bool,

    /// Print the counts as JSON.
    #[arg(long)]
    json: bool,
}

/// Why records could not be rewritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RekeyError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error("{0} has no [encryption]: without keys nothing can be sealed or opened")]
    NoKeys(String),
    #[error("{0} says seal_with = \"none\": name a key to seal with, or remove the seals with --decrypt")]
    SealsNothing(String),
    #[error("{0} still seals with the key {1}: set seal_with = \"none\" for every gateway before --decrypt")]
    SealsStill(String, String),
    #[error("{0}: only the gateway itself can read a memory: store")]
    NotShared(String),
    #[error(transparent)]
    Open(#[from] OpenStoreError),
    #[error("stopped: {0}. What was rewritten stays rewritten; run this again")]
    Store(StoreError),
    #[error("client keys were not changed: {0}")]
    Keys(StoreError),
    #[error(
        "client keys were not changed: {0} operations are in flight. Stop every gateway, worker and service on this store, \
         wait until their leases have expired, and run this again"
    )]
    UnderWay(u64),
    #[error("client keys were not changed: {0}")]
    NotAllowed(String),
    #[error(
        "client keys are still sealed: before you remove [encryption] from the file, stop every gateway, worker and \
         service on this store and run this with --keys"
    )]
    KeysSealed,
    #[error("system error")]
    Machinery(#[from] std::io::Error),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, RekeyError> {
    let config = Config::from_file(&arguments.config)?;
    let file = || arguments.config.display().to_string();
    let keyring = config.encryption.clone().ok_or_else(|| RekeyError::NoKeys(file()))?;
    match keyring.seals_with() {
        None if !arguments.decrypt => return Err(RekeyError::SealsNothing(file())),
        Some(id) if arguments.decrypt => return Err(RekeyError::SealsStill(file(), id.to_owned())),
        _ => {}
    }
    if !config.store.is_durable() {
        return Err(RekeyError::NotShared(config.store.to_string()));
    }
    let _logs = log_as(&config.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (done, keys_sealed) = runtime.block_on(rewrite(&config, arguments))?;
    tell(&done, keyring.seals_with(), keys_sealed, arguments.json);
    if arguments.decrypt && keys_sealed {
        return Err(RekeyError::KeysSealed);
    }
    Ok(if done.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was rewritten, and whether client keys are sealed.
async fn rewrite(config: &Config, arguments: &Arguments) -> Result<(Rekeyed, bool), RekeyError> {
    let opened = config.store.open(config.store_timeout, config.clock).await?;
    let options = EngineOptions {
        store_timeout: config.store_timeout,
        keyring: config.encryption.clone(),
        ..EngineOptions::default()
    };
    let engine = Engine::with_options(opened.store, options);
    if arguments.keys {
        match engine.convert_client_keys().await.map_err(RekeyError::Keys)? {
            KeysConverted::UnderWay(count) => return Err(RekeyError::UnderWay(count)),
            KeysConverted::NotAllowed(why) => return Err(RekeyError::NotAllowed(why)),
            _ => {}
        }
    }
    let options =
        RekeyOptions { batch: arguments.batch.into(), pause: Duration::from_millis(arguments.pause_ms) };
    let mut progress = Progress::new();
    let done = Rekeyer::new(engine.clone(), options).run(|done| progress.shown(done)).await;
    progress.end();
    let done = done.map_err(RekeyError::Store)?;
    Ok((done, engine.seals_client_keys().await.map_err(RekeyError::Store)?))
}

/// A progress line, on a terminal only.
struct Progress {
    on: bool,
    shown: Option<Instant>,
}

impl Progress {
    /// Between two changes.
    const EVERY: Duration = Duration::from_millis(200);

    fn new() -> Self {
        Self { on: std::io::stderr().is_terminal(), shown: None }
    }

    fn shown(&mut self, done: &Rekeyed) {
        if !self.on || self.shown.is_some_and(|shown| shown.elapsed() < Self::EVERY) {
            return;
        }
        self.shown = Some(Instant::now());
        eprint!("\r{} read, {} rewritten ", done.looked_at, done.rewritten);
    }

    fn end(&self) {
        if self.shown.is_some() {
            eprintln!();
        }
    }
}

fn tell(done: &Rekeyed, sealed_by: Option<&str>, keys_sealed: bool, as_json: bool) {
    let Rekeyed { looked_at, rewritten, damaged, held, under_way } = *done;
    let words = if as_json {
        json!({
            "sealed_by": sealed_by,
            "looked_at": looked_at,
            "rewritten": rewritten,
            "damaged": damaged,
            "held": held,
            "under_way": under_way,
            "client_keys": if keys_sealed { "sealed" } else { "plain" },
        })
        .to_string()
    } else {
        let seal = sealed_by.map_or("without a seal".to_owned(), |id| format!("sealed with the key {id}"));
        let mut words = format!("Records read: {looked_at}, rewritten: {rewritten}. ");
        words += &match damaged + held {
            0 if under_way == 0 => format!("All are {seal}."),
            0 => format!("All that have ended are {seal}."),
            left => format!("Not {seal}: {left}"),
        };
        if damaged > 0 {
            words += &format!(
                "\n  cannot be decrypted: {damaged} (the log names them and the key that they need)"
            );
        }
        if held > 0 {
            words += &format!("\n  locked by an open transaction: {held} (run this again)");
        }
        if under_way > 0 {
            words += &format!(
                "\n  in flight or in doubt, and may still be sealed with an older key: {under_way} (run this again once \
                 they have ended)"
            );
        }
        if sealed_by.is_some() && !keys_sealed {
            words += "\n  client keys are in plain text: stop everything that uses this store, and run this with --keys";
        }
        words
    };
    // Whoever reads along may have had enough; the status says the rest.
    let _nobody_reads = writeln!(anstream::stdout(), "{words}");
}
