//! The bookkeeper as a process, and what it has in its books.

use crate::partner::Partner;
use crate::support::{Database, Kind, PATIENCE, said};
use semel_testing::servers::Nats;
use sqlx::{Connection as _, PgConnection, Row as _};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// For the partner's webhooks.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A database of their own, and a directory for receipts.
pub(crate) struct Books {
    kind: Kind,
    database: Database,
    receipts: TempDir,
}

impl Books {
    pub(crate) async fn new(kind: Kind) -> Self {
        Self { kind, database: Database::new(kind).await, receipts: tempfile::tempdir().unwrap() }
    }

    /// Starts a bookkeeper; returns once it is at work.
    pub(crate) async fn keep(&self, nats: &Nats, partner: &Partner, fail_point: Option<&str>) -> Bookkeeper {
        let mut command = Command::new(env!("CARGO_BIN_EXE_payments"));
        command.args([
            "consume",
            "--nats",
            &nats.url(),
            "--database",
            &self.database.url,
            "--lease-ms",
            "1000",
        ]);
        command.arg("--receipts").arg(self.receipts.path());
        command.args(["--partner", &partner.url(), "--partner-secret", SECRET]);
        command.args(fail_point.map(|name| format!("--fail-point={name}")));
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(said(&mut lines).await, "payments keeps the books");
        Bookkeeper { child, lines }
    }

    /// Which payments are entered, and how much.
    pub(crate) async fn ledger(&self) -> Vec<(String, i64)> {
        let entries = "SELECT payment, amount_hundredths FROM general_ledger ORDER BY payment";
        match self.kind {
            Kind::Postgres => {
                let rows = sqlx::query(entries).fetch_all(&mut self.connection().await).await.unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
            Kind::Sqlite => {
                let file = self.file();
                let mut reading = file.prepare(entries).unwrap();
                let rows = reading.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
                rows.collect::<Result<_, _>>().unwrap()
            }
        }
    }

    /// How many receipts are queued and not known to be sent.
    pub(crate) async fn unsent(&self) -> i64 {
        self.count("SELECT count(*) FROM receipts WHERE NOT sent").await
    }

    /// How many notifications the partner has not confirmed, as far as is noted.
    pub(crate) async fn unconfirmed(&self) -> i64 {
        self.count("SELECT count(*) FROM semel_outbox").await
    }

    async fn count(&self, sql: &'static str) -> i64 {
        match self.kind {
            Kind::Postgres => sqlx::query(sql).fetch_one(&mut self.connection().await).await.unwrap().get(0),
            Kind::Sqlite => self.file().query_row(sql, [], |row| row.get(0)).unwrap(),
        }
    }

    /// The receipts that are in the directory.
    pub(crate) fn mailed(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.receipts.path()).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        // What a bookkeeper was writing when it was killed begins with a dot: it is no receipt yet, and the next one writes its own.
        names.retain(|name| !name.starts_with('.'));
        names.sort_unstable();
        names
    }

    async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.database.url).await.unwrap()
    }

    fn file(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.database.url.strip_prefix("sqlite:").unwrap()).unwrap()
    }
}

/// A process. Killed when it is dropped.
pub(crate) struct Bookkeeper {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Bookkeeper {
    pub(crate) async fn is_at(&mut self, fail_point: &str) {
        assert_eq!(said(&mut self.lines).await, format!("fail point {fail_point}"));
    }

    /// `kill -9`: no farewell, no clearing up.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("the child is ours to kill");
    }
}

/// Waits for what somebody else is about to do.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{what} never came"))
}
