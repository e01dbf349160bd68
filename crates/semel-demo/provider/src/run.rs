//! The provider as a command.

use crate::duration;
use crate::ledger::{LedgerFailed, OpenError};
use crate::misbehaviour::Misbehaviour;
use crate::provider::Provider;
use crate::secret::{InvalidWebhook, Secret};
use crate::settings::{Settings, Webhook};
use clap::Args;
use clap::builder::FalseyValueParser;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;

/// A payment provider that misbehaves on purpose, with a ledger of what happened.
///
/// It charges, refunds, declines, deduplicates by Idempotency-Key, answers lookups
/// and sends webhooks. Its ledger is the truth: an entry is on disk before the
/// client gets an answer.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment, after_long_help = HELP)]
pub struct Arguments {
    /// Address to listen on; port 0 takes any free port
    #[arg(long, env = "PROVIDER_LISTEN", default_value = "127.0.0.1:9100", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The ledger: a file of JSON lines, created if missing
    #[arg(long, env = "PROVIDER_LEDGER", default_value = "provider.ledger", value_name = "FILE")]
    ledger: PathBuf,
    /// Execute every request, even under an identity that was used before
    #[arg(long, env = "PROVIDER_NO_DEDUPLICATION", value_parser = FalseyValueParser::new())]
    no_deduplication: bool,
    /// Answer 501 to lookups
    #[arg(long, env = "PROVIDER_NO_QUERY", value_parser = FalseyValueParser::new())]
    no_query: bool,
    /// What goes wrong, and how often: drop-after=0.1,error-after=0.05,lose-every=7
    #[arg(long, env = "PROVIDER_MISBEHAVE", default_value_t, value_name = "RATES")]
    misbehave: Misbehaviour,
    /// Random seed: the same requests in the same order get the same faults
    #[arg(long, env = "PROVIDER_SEED", default_value_t = 0, value_name = "NUMBER")]
    seed: u64,
    /// How long a stall is
    #[arg(long, env = "PROVIDER_STALL", default_value = "60s", value_name = "DURATION", value_parser = duration::parse)]
    stall: Duration,
    /// Send every outcome to this URL, as a Standard Webhooks message
    #[arg(long, env = "PROVIDER_WEBHOOK_URL", value_name = "URL", requires = "webhook_secret")]
    webhook_url: Option<String>,
    /// Webhook secret: env:NAME, or whsec_... itself
    #[arg(long, env = "PROVIDER_WEBHOOK_SECRET", value_name = "SECRET", hide_env_values = true)]
    webhook_secret: Option<SecretSource>,
    /// The share of webhooks that are sent twice, from 0 to 1
    #[arg(long, env = "PROVIDER_WEBHOOK_DUPLICATE", default_value_t = 0.0, value_name = "RATE")]
    webhook_duplicate: f64,
    /// Delay each webhook at random, up to this long
    #[arg(long, env = "PROVIDER_WEBHOOK_DELAY", default_value = "0s", value_name = "DURATION", value_parser = duration::parse)]
    webhook_delay: Duration,
    /// Send webhooks in blocks of this many, in random order; 0 sends them as they come
    #[arg(long, env = "PROVIDER_WEBHOOK_SHUFFLE", default_value_t = 0, value_name = "NUMBER")]
    webhook_shuffle: usize,
    /// Exit when standard input closes, so as not to outlive the parent process
    #[arg(long)]
    end_with_input: bool,
}

const HELP: &str = "\
What can go wrong with POST /charges and POST /refunds:
  drop-after    effect, then the connection is closed without an answer
  error-after   effect, then 500
  stall-after   effect, then no answer for a long time (--stall)
  stall-before  no effect for a long time, then the effect, even if the client has gone
  decline       402, no effect, and remembered
  reject        503, no effect
  drop-before   no effect, the connection is closed without an answer
  lose-every=N  drop-before for every Nth request
Choose by rate with --misbehave, or for one request with the header X-Provider-Mode
(none: no fault, whatever the rates say).

Try it:
  payment-provider --listen 127.0.0.1:9100 --ledger /tmp/provider.ledger
  curl -i http://127.0.0.1:9100/charges -H 'Idempotency-Key: order-1' \\
    -H 'Content-Type: application/json' -H 'X-Provider-Mode: drop-after' \\
    -d '{\"amount\":\"12.50\",\"currency\":\"EUR\",\"reference\":\"invoice-1\"}'
  curl http://127.0.0.1:9100/charges/by-identity/order-1    what became of it
  curl http://127.0.0.1:9100/ledger/summary                 what happened in all
  curl -X PUT http://127.0.0.1:9100/settings -H 'Content-Type: application/json' \\
    -d '{\"deduplicates\":false}'                             change it while it runs";

/// Where the secret comes from. Never shown.
#[derive(Clone)]
struct SecretSource(String);

impl From<String> for SecretSource {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretSource(..)")
    }
}

impl SecretSource {
    fn secret(&self) -> Result<Secret, RunError> {
        match self.0.strip_prefix("env:") {
            None => Ok(Secret::parse(&self.0)?),
            Some(name) => match std::env::var(name) {
                Ok(text) => Ok(Secret::parse(&text)?),
                Err(_) => Err(RunError::NoSecret(name.to_owned())),
            },
        }
    }
}

/// Why the provider did not run, or not on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The provider was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The webhook cannot be as it was asked for.
    #[error(transparent)]
    Webhook(#[from] InvalidWebhook),
    /// The secret is to be in a variable, and is not.
    #[error("--webhook-secret env:{0}: the variable is not set")]
    NoSecret(String),
    /// There is no listening at this address.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// Nobody can be told where it listens, or it cannot be told to end.
    #[error("system error")]
    Surroundings(#[source] std::io::Error),
    /// The ledger could not be written any more.
    #[error(transparent)]
    Ledger(#[from] LedgerFailed),
}

impl Arguments {
    /// The settings that these arguments ask for.
    ///
    /// # Errors
    /// The webhook or its secret cannot be used.
    pub fn settings(&self) -> Result<Settings, RunError> {
        let webhook = match (&self.webhook_url, &self.webhook_secret) {
            (Some(url), Some(secret)) => Some(Webhook {
                duplicate: self.webhook_duplicate,
                delay: self.webhook_delay,
                shuffle: self.webhook_shuffle,
                ..Webhook::new(url, secret.secret()?)?
            }),
            _ => None,
        };
        Ok(Settings {
            deduplicates: !self.no_deduplication,
            queryable: !self.no_query,
            misbehave: self.misbehave.clone(),
            seed: self.seed,
            stall: self.stall,
            webhook,
        })
    }
}

/// Runs a provider until the process is asked to end: by SIGTERM, by ctrl-c or, if it was told so, by the end of its standard
/// input. Once it listens it says so in one line on the standard output: `provider listens on http://ADDRESS`.
///
/// # Errors
/// It could not start, or the ledger could not be written any more.
pub async fn run(arguments: Arguments) -> Result<(), RunError> {
    let settings = arguments.settings()?;
    let provider = Provider::open(&arguments.ledger, settings)?;
    let cannot_listen = |error| RunError::Listen(arguments.listen, error);
    let listener = TcpListener::bind(arguments.listen).await.map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let end = end(arguments.end_with_input).map_err(RunError::Surroundings)?;
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "provider listens on http://{address}").and_then(|()| out.flush())
    }
    .map_err(RunError::Surroundings)?;
    tracing::info!(%address, ledger = %arguments.ledger.display(), "providing");
    Ok(provider.serve(listener, end).await?)
}

/// Comes when the process is asked to end.
fn end(with_input: bool) -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (ended, end_of_input) = tokio::sync::oneshot::channel();
    if with_input {
        // A thread of its own: a blocking read cannot be cancelled, and the runtime would wait for it.
        std::thread::Builder::new().name("input".to_owned()).spawn(move || {
            let mut rest = [0; 64];
            while std::io::stdin().read(&mut rest).is_ok_and(|read| read > 0) {}
            let _gone = ended.send(());
        })?;
    }
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            Ok(()) = end_of_input => {}
        }
    })
}
