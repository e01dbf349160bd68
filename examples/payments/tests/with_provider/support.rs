//! A provider, the service as a process, and databases for them.

use crate::harness::{ACCOUNT, Answer, Service};
use hyper::Method;
use payment_provider::{Provider, Settings};
use payments::ProviderPromise;
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};

/// Longer than anything takes that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A provider on a socket of its own. Its ledger is asked over that socket, as everything else.
#[derive(Clone, Copy)]
pub(crate) struct ProviderAt(pub(crate) Service);

impl ProviderAt {
    pub(crate) async fn start(promise: ProviderPromise) -> Self {
        let settings = Settings {
            deduplicates: promise == ProviderPromise::Deduplicates,
            queryable: promise == ProviderPromise::CanBeAsked,
            ..Settings::default()
        };
        Self::start_with(settings).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let provider = Provider::open(directory.path().join("ledger"), settings).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            provider.serve(listener, std::future::pending()).await.unwrap();
            drop(directory);
        });
        Self(Service { address })
    }

    pub(crate) fn url(self) -> String {
        format!("http://{}", self.0.address)
    }

    async fn ask(self, path: &str) -> Value {
        self.0.send(Method::GET, path, &[], "").await.json()
    }

    pub(crate) async fn summary(self) -> Value {
        self.ask("/ledger/summary").await
    }

    /// How often the money of this operation was moved.
    pub(crate) async fn effects(self, operation_id: &str) -> u64 {
        let deeds = self.ask(&format!("/ledger/by-identity/{operation_id}:charged")).await;
        deeds["effects"].as_u64().unwrap_or_else(|| panic!("{deeds}"))
    }
}

/// Where the service keeps its payments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// A database of its own for each test.
pub(crate) struct Database {
    pub(crate) url: String,
    _directory: TempDir,
}

impl Database {
    pub(crate) async fn new(kind: Kind) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = match kind {
            Kind::Sqlite => format!("sqlite:{}", directory.path().join("payments.db").display()),
            // Processes that are killed with the test may be connected for a while longer.
            Kind::Postgres => semel_testing::database::Database::new().await.into_url(),
        };
        Self { url, _directory: directory }
    }
}

/// The service as a process of its own. Killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) service: Service,
}

/// How a process is started.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) database: &'a str,
    pub(crate) provider: &'a str,
    pub(crate) promise: ProviderPromise,
    pub(crate) lease: Duration,
    pub(crate) fail_point: Option<&'a str>,
    pub(crate) more: &'a [&'a str],
}

impl Process {
    /// Returns once it listens.
    pub(crate) async fn start(start: Start<'_>) -> Self {
        let promise = match start.promise {
            ProviderPromise::Deduplicates => "deduplicates",
            ProviderPromise::CanBeAsked => "can-be-asked",
            ProviderPromise::Neither => "neither",
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_payments"));
        command.args(["--listen", "127.0.0.1:0", "--database", start.database, "--promise", promise]);
        command.args(["--provider", start.provider, "--lease-ms", &start.lease.as_millis().to_string()]);
        command.args(start.fail_point.map(|name| format!("--fail-point={name}")));
        command.args(start.more);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = said(&mut lines).await;
        let address = line.strip_prefix("payments listens on http://").expect("an address").parse();
        Self { child, lines, service: Service { address: address.expect("an address") } }
    }

    /// Waits until a request is at the fail point.
    pub(crate) async fn is_at(&mut self, fail_point: &str) {
        assert_eq!(said(&mut self.lines).await, format!("fail point {fail_point}"));
    }

    /// `kill -9`: no farewell, no clearing up.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("the child is ours to kill");
    }
}

pub(crate) async fn said(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it says something");
    line.expect("its output can be read").expect("it is alive")
}

/// Sends until the answer is one that stays: everything but that another attempt is under way, or that
/// nothing could be decided.
pub(crate) async fn until_settled(service: Service, path: &str, key: &str, body: &Value) -> Answer {
    let headers = [("idempotency-key", key), ("x-account-id", ACCOUNT), ("content-type", "application/json")];
    let settled = async {
        loop {
            let answer = service.send(Method::POST, path, &headers, body.to_string()).await;
            let code = answer.json()["code"].clone();
            if code != "idempotency_key_in_progress" && code != "idempotency_store_unavailable" {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.expect("it is settled at last")
}
