//! The binary: how it starts, and how it ends.

use crate::harness::{Client, PATIENCE};
use crate::receiver::listen;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// A provider as a process of its own.
pub(crate) struct Process {
    pub(crate) client: Client,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn command(ledger: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_payment-provider"));
    // Its standard input is its lifeline: it never outlives the test, however that ends.
    command.args(["--listen", "127.0.0.1:0", "--end-with-input", "--ledger"]).arg(ledger);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command
}

impl Process {
    pub(crate) async fn start(ledger: &Path, more: &[&str]) -> Self {
        let mut child = command(ledger).args(more).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it starts").unwrap();
        let address = line.as_deref().and_then(|line| line.strip_prefix("provider listens on http://"));
        let address = address.unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        Self { client: Client { address }, child, lines }
    }

    /// SIGKILL, and nothing of it is left.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// How it ends; nothing more was said.
    async fn end(mut self) -> ExitStatus {
        assert_eq!(timeout(PATIENCE, self.lines.next_line()).await.expect("it ends").unwrap(), None);
        self.child.wait().await.unwrap()
    }
}

/// What it says when it does not start.
async fn refusal(mut command: Command) -> String {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Waiting would close the input, and that is another reason to end.
    let _input = child.stdin.take();
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).await.unwrap();
    assert!(!child.wait().await.unwrap().success());
    words
}

#[tokio::test]
async fn it_says_where_it_listens_and_ends_in_good_order() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("provider.ledger");
    for signal in ["-TERM", "-INT"] {
        let process = Process::start(&ledger, &[]).await;
        assert_eq!(process.client.charge("order-1", "1.00").await.status, 201);
        let pid = process.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
        assert!(process.end().await.success());
    }
    let mut process = Process::start(&ledger, &[]).await;
    assert_eq!(process.client.effects("order-1").await, 1);
    drop(process.child.stdin.take());
    assert!(process.end().await.success());
}

#[tokio::test]
async fn arguments_and_environment_become_settings() {
    let directory = tempfile::tempdir().unwrap();
    let mut receiver = listen().await;
    let (url, secret) = (receiver.url(), receiver.secret());
    let more = ["--no-deduplication", "--misbehave", "decline=1", "--seed", "7", "--webhook-url", &url];
    let mut command = command(&directory.path().join("provider.ledger"));
    command.args(more).args(["--webhook-secret", "env:THE_SECRET"]).env("THE_SECRET", secret);
    command.env("PROVIDER_NO_QUERY", "1").env("PROVIDER_STALL", "5s");
    let mut child = command.spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let client = Client { address: line.rsplit('/').next().unwrap().parse().unwrap() };
    let settings = client.get("/settings").await.json();
    assert_eq!(settings["deduplicates"], false);
    assert_eq!(settings["queryable"], false);
    assert_eq!(settings["misbehave"], serde_json::json!({ "decline": 1.0 }));
    assert_eq!((&settings["seed"], &settings["stall"]), (&7.into(), &"5s".into()));
    assert_eq!(client.charge("order-1", "1.00").await.status, 402);
    assert_eq!(receiver.next().await.body["outcome"], "failed");
    child.kill().await.unwrap();
}

#[tokio::test]
async fn what_is_wrong_is_said_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("provider.ledger");
    let with = |arguments: &[&str]| {
        let mut command = command(&ledger);
        command.args(arguments);
        refusal(command)
    };
    assert!(with(&["--misbehave", "drop=1"]).await.contains("drop-after, error-after"));
    assert!(with(&["--stall", "60"]).await.contains("60s"));
    let url = ["--webhook-url", "http://127.0.0.1:9/"];
    assert!(with(&url).await.contains("--webhook-secret"));
    assert!(with(&[&url[..], &["--webhook-secret", "env:NOT_THERE"]].concat()).await.contains("NOT_THERE"));
    let told = with(&[&url[..], &["--webhook-secret", "hush-hush"]].concat()).await;
    assert!(told.contains("whsec_") && !told.contains("hush-hush"), "{told}");
    std::fs::write(&ledger, "{}\n").unwrap();
    assert!(with(&[]).await.contains("provider.ledger:1:"));
    std::fs::remove_file(&ledger).unwrap();
    let running = Process::start(&ledger, &[]).await;
    assert!(with(&[]).await.contains("in use"));
    drop(running);
}
