//! A store in a file: who can read it, how long its log is, and how much room is left.

use super::Finding;
use crate::config::Config;
use crate::setting::show_size;
use semel::Store;
use semel_http::with_causes;
use semel_sqlite::SqliteOptions;
use std::path::Path;
use std::sync::Arc;

/// A log that is longer was not checkpointed for long: a reader stands in the way, or the disk is slow.
const LONG_WAL: u64 = 256 << 20;
/// Less room than this is soon used up, and less than that is too little: SQLite needs room for its log before it can free any.
const LITTLE: u64 = 1 << 30;
const NONE: u64 = 64 << 20;

pub(super) async fn examine(
    file: &Path,
    config: &Config,
    findings: &mut Vec<Finding>,
) -> Option<Arc<dyn Store>> {
    const OPENS: &str = "store.opens";
    if !file.exists() {
        let found = format!("{} does not exist", file.display());
        let cure =
            "start the gateway, which creates it, or run this in the directory that the gateway runs in";
        findings.push(Finding::wrong(OPENS, found, cure));
        return None;
    }
    // Before it is opened, which may make a log of its own.
    let wal = wal(file);
    let store = match SqliteOptions::new().clock_terms(config.clock).open(file).await {
        Ok(store) => store,
        Err(error) => {
            let cure = "see to what the error says; run this as the user that the gateway runs as";
            findings.push(Finding::wrong(OPENS, with_causes(&error), cure));
            return None;
        }
    };
    findings.push(Finding::fine(OPENS, format!("{} is open", file.display())));
    let exposed = store.exposed();
    match exposed.is_empty() {
        true => findings.push(Finding::fine("sqlite.files", "other users cannot access the files")),
        false => findings.extend(exposed.iter().map(|exposure| {
            let told = exposure.to_string();
            let (found, cure) = told.split_once("; ").unwrap_or((&told, "take the permission away"));
            Finding::wrong("sqlite.files", found, cure)
        })),
    }
    findings.push(wal);
    findings.push(room(file));
    Some(Arc::new(store))
}

fn wal(file: &Path) -> Finding {
    const CHECK: &str = "sqlite.wal";
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    let size = std::fs::metadata(Path::new(&name)).map_or(0, |found| found.len());
    if size > LONG_WAL {
        return Finding::risky(
            CHECK,
            format!("the WAL has {} MiB: it is not checkpointed", size >> 20),
            "close what else reads the file for long (a backup, a shell); it is checkpointed then",
        );
    }
    Finding::fine(CHECK, format!("the WAL has {}", show_size(size)))
}

#[cfg(unix)]
fn room(file: &Path) -> Finding {
    const CHECK: &str = "sqlite.disk";
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = match rustix::fs::statvfs(directory) {
        Ok(found) => found,
        Err(error) => return Finding::unseen(CHECK, &error),
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let said = format!("{} MiB are free on the disk of {}", free >> 20, file.display());
    let cure = "make room, or move the file: without room nothing is stored, and requests get 503";
    match free {
        0..NONE => Finding::wrong(CHECK, said, cure),
        NONE..LITTLE => Finding::risky(CHECK, said, cure),
        _ => Finding::fine(CHECK, said),
    }
}

#[cfg(not(unix))]
fn room(_file: &Path) -> Finding {
    Finding::fine("sqlite.disk", "not looked at on this system")
}
