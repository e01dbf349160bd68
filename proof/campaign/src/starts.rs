//! The log of starts: what a service notes before it does anything, and once it knows that it did nothing. All services of a round append to one
//! file, so that the order of its lines is the order of events, whatever their clocks say. A `kill -9` takes no line away.

use crate::outcome::Outcome;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgPoolOptions};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One line of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Start(Start),
    /// The service's word that this attempt did nothing, and will not.
    Nothing {
        operation_id: String,
        attempt: i64,
    },
    /// The provider's word that it knows of none of these attempts, up to this one, and refuses them from now on.
    Sealed {
        operation_id: String,
        attempt: i64,
    },
}

/// A service is about to act.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    /// In hexadecimal digits alone.
    pub(crate) operation_id: String,
    pub(crate) attempt: i64,
    pub(crate) reference: String,
    /// Since 1970, by the service's clock.
    pub(crate) at: Duration,
    /// Whether the store had this operation at that moment, past Semel; `None`: it could not be asked.
    pub(crate) reserved: Option<bool>,
}

/// Where a service notes its starts.
pub(crate) struct Notebook {
    file: File,
    look: Look,
}

/// How the store is looked at, past Semel.
enum Look {
    /// Not at all: a second reader of the file would be in the way of a power cut.
    No,
    Sqlite(PathBuf),
    Postgres(PgPool),
}

/// A look that takes longer is given up: the service has other things to do.
const PATIENCE: Duration = Duration::from_millis(300);

impl Notebook {
    /// `store`: as `sqlite:…` or `postgres://…`; without one nobody looks whether operations are reserved.
    pub(crate) fn open(path: &Path, store: Option<&str>) -> Outcome<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        let look = match store.map(|store| (store.strip_prefix("sqlite:"), store)) {
            None => Look::No,
            Some((Some(path), _)) => Look::Sqlite(path.into()),
            Some((None, url)) => {
                let pool = PgPoolOptions::new().max_connections(4).acquire_timeout(PATIENCE);
                Look::Postgres(pool.connect_lazy(url)?)
            }
        };
        Ok(Self { file, look })
    }

    /// Notes that an attempt begins. Nothing may be done before this has returned.
    pub(crate) async fn start(
        &self,
        operation_id: &str,
        attempt: i64,
        reference: &str,
    ) -> std::io::Result<()> {
        let operation_id = operation_id.replace('-', "");
        let reserved = self.is_reserved(&operation_id).await;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.note(&json!({
            "start": operation_id, "attempt": attempt, "reference": reference, "at": u64::try_from(at).unwrap_or(u64::MAX),
            "reserved": reserved
        }))
    }

    /// Notes that an attempt did nothing and will not. Before anybody is told.
    pub(crate) fn nothing(&self, operation_id: &str, attempt: i64) -> std::io::Result<()> {
        self.note(&json!({ "nothing": operation_id.replace('-', ""), "attempt": attempt }))
    }

    /// Notes that attempts up to this one were not executed and will not be. Before anybody is told.
    pub(crate) fn sealed(&self, operation_id: &str, attempt: i64) -> std::io::Result<()> {
        self.note(&json!({ "sealed": operation_id.replace('-', ""), "attempt": attempt }))
    }

    fn note(&self, line: &Value) -> std::io::Result<()> {
        // One write, so that lines of several processes do not mix.
        (&self.file).write_all(format!("{line}\n").as_bytes())
    }

    async fn is_reserved(&self, operation_id: &str) -> Option<bool> {
        match &self.look {
            Look::No => None,
            Look::Sqlite(path) => {
                let (path, id) = (path.clone(), operation_id.to_owned());
                tokio::task::spawn_blocking(move || {
                    let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
                    let no_checkpoint = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
                    file.set_db_config(no_checkpoint, true).ok()?;
                    file.busy_timeout(PATIENCE).ok()?;
                    let look = "SELECT 1 FROM semel_records WHERE operation_id = unhex(?1)";
                    Some(file.query_row(look, [id], |_| Ok(())).optional().ok()?.is_some())
                })
                .await
                .ok()?
            }
            Look::Postgres(pool) => {
                let look =
                    sqlx::query_scalar::<_, i32>("SELECT 1 FROM semel_records WHERE operation_id = $1::uuid");
                let look = look.bind(operation_id).fetch_optional(pool);
                Some(tokio::time::timeout(PATIENCE, look).await.ok()?.ok()?.is_some())
            }
        }
    }
}

/// Reads a log of starts; without a file nothing has started.
pub(crate) fn read(path: &Path) -> Outcome<Vec<Event>> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(Vec::new()) };
    let event = |(number, line): (usize, &str)| {
        event(line).ok_or_else(|| format!("{}:{}: not a start: {line}", path.display(), number + 1).into())
    };
    text.lines().enumerate().map(event).collect()
}

fn event(line: &str) -> Option<Event> {
    let line: Value = serde_json::from_str(line).ok()?;
    let attempt = line["attempt"].as_i64()?;
    if let Some(operation_id) = line["nothing"].as_str() {
        return Some(Event::Nothing { operation_id: operation_id.to_owned(), attempt });
    }
    if let Some(operation_id) = line["sealed"].as_str() {
        return Some(Event::Sealed { operation_id: operation_id.to_owned(), attempt });
    }
    Some(Event::Start(Start {
        operation_id: line["start"].as_str()?.to_owned(),
        attempt,
        reference: line["reference"].as_str()?.to_owned(),
        at: Duration::from_millis(line["at"].as_u64()?),
        reserved: line["reserved"].as_bool(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_noted_is_read_in_its_order() {
        let directory = tempfile::tempdir().unwrap();
        let (log, store) = (directory.path().join("starts"), directory.path().join("semel.db"));
        let file = Connection::open(&store).unwrap();
        file.execute_batch(
            "CREATE TABLE semel_records (operation_id BLOB); INSERT INTO semel_records VALUES (x'0198')",
        )
        .unwrap();
        let notebook = Notebook::open(&log, Some(&format!("sqlite:{}", store.display()))).unwrap();
        notebook.start("01-98", 1, "a").await.unwrap();
        notebook.nothing("01-98", 1).unwrap();
        notebook.sealed("01-98", 7).unwrap();
        notebook.start("0199", 2, "b").await.unwrap();
        std::fs::remove_file(&store).unwrap();
        notebook.start("019a", 1, "c").await.unwrap();
        let events = read(&log).unwrap();
        let reserved: Vec<_> = events
            .iter()
            .map(|event| match event {
                Event::Start(start) => (start.operation_id.as_str(), start.attempt, start.reserved),
                Event::Nothing { operation_id, attempt } | Event::Sealed { operation_id, attempt } => {
                    (operation_id.as_str(), -attempt, None)
                }
            })
            .collect();
        assert_eq!(
            reserved,
            [
                ("0198", 1, Some(true)),
                ("0198", -1, None),
                ("0198", -7, None),
                ("0199", 2, Some(false)),
                ("019a", 1, None)
            ]
        );
    }

    #[test]
    fn a_line_that_cannot_be_read_is_not_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("starts");
        std::fs::write(&log, "{\"start\":\"0198\"}\n").unwrap();
        assert!(read(&log).unwrap_err().to_string().contains("starts:1: not a start"));
    }
}
