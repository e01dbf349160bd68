//! `semel rekey`: what is stored, sealed by the newest key.

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

/// Seal by the newest key what is stored, beside running gateways
///
/// Goes through all records and rewrites those that are sealed by an older key, or were
/// stored before anything was sealed, by the key that seals in the file's [encryption].
/// Clients notice nothing: the same answers are replayed, for just as long. Records that
/// change meanwhile are read again, so that gateways and workers may run on, and it may
/// be stopped at any time: run it again, and it does what is left.
///
/// First give the key to every gateway and worker, then make it the one that seals, then
/// run this. An operation that began before that ends by the older key: those that are
/// still under way, or in doubt, are counted. Run it again once they have ended. Once it
/// says that nothing is left, the older keys can be taken out of the file.
///
/// With --keys it seals the keys of clients too, in a store that was used before they
/// were sealed, or, with --decrypt, writes them in plain text again. For that, stop every
/// gateway, worker and service that uses the store: it refuses while an operation is
/// under way, and whatever still runs is refused by the store afterwards.
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
if operations are under way that may still end by an older key, or if it could not go
on, 2 if the command line is wrong."
)]
pub(crate) struct Arguments {
    /// The gateways' configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// At most so many records in one commit, and answers in memory.
    #[arg(long, value_name = "RECORDS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,

    /// Pause between two batches, at least; it is never shorter than a batch took.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pause_ms: u64,

    /// Take the seals off instead: the file has to say seal_with = "none".
    #[arg(long)]
    decrypt: bool,

    /// Seal the keys of clients too; with --decrypt, write them in plain text again.
    #[arg(long)]
    keys: bool,

    /// Print the counts as JSON.
    #[arg(long)]
    json: bool,
}

/// Why it could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RekeyError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error("{0} has no [encryption]: without keys nothing can be sealed or opened")]
    NoKeys(String),
    #[error(
        "{0} says seal_with = \"none\": name the key that is to seal, or take the seals off with --decrypt"
    )]
    SealsNothing(String),
    #[error(
        "{0} seals by the key {1}, and would go on doing so: write seal_with = \"none\" before --decrypt, for every gateway"
    )]
    SealsStill(String, String),
    #[error("{0}: a store in memory ends with its gateway, and nobody else can read it")]
    NotShared(String),
    #[error(transparent)]
    Open(#[from] OpenStoreError),
    #[error("it went no further: {0}. What was rewritten stays so; run it again")]
    Store(StoreError),
    #[error("client keys stay as they are: {0}")]
    Keys(StoreError),
    #[error(
        "client keys stay as they are: {0} operations are under way. Stop every gateway, worker and service on this store, wait until their leases are over, and run it again"
    )]
    UnderWay(u64),
    #[error("client keys stay as they are: {0}")]
    NotAllowed(String),
    #[error(
        "client keys are sealed still: stop every gateway, worker and service on this store, and add --keys, before you take [encryption] out of the file"
    )]
    KeysSealed,
    #[error("the command's own machinery failed")]
    Machinery(#[from] std::io::Error),
}

/// Rewrites.
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

/// A line on a terminal that changes; nothing elsewhere.
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
        eprint!("\r{} looked at, {} rewritten ", done.looked_at, done.rewritten);
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
        let seal = sealed_by.map_or("without a seal".to_owned(), |id| format!("sealed by the key {id}"));
        let mut words = format!("Records looked at: {looked_at}, rewritten: {rewritten}. ");
        words += &match damaged + held {
            0 if under_way == 0 => format!("All are {seal}."),
            0 => format!("All that have ended are {seal}."),
            left => format!("Not {seal}: {left}"),
        };
        if damaged > 0 {
            words += &format!("\n  do not open: {damaged} (the log says which, and which key they need)");
        }
        if held > 0 {
            words += &format!("\n  held by an open transaction all the time: {held} (run this again)");
        }
        if under_way > 0 {
            words += &format!(
                "\n  under way or in doubt, and may still end by an older key: {under_way} (run this again once they have ended)"
            );
        }
        if sealed_by.is_some() && !keys_sealed {
            words +=
                "\n  client keys are in plain text: stop everything on this store, and run this with --keys";
        }
        words
    };
    // Whoever reads along may have had enough; the status says the rest.
    let _nobody_reads = writeln!(anstream::stdout(), "{words}");
}
