//! PostgreSQL's programs on this machine, and how to run them without the rights of root, which they refuse.

use crate::servers::directory::Directory;
use crate::servers::programs::{is_root, missing, search_path};
use crate::servers::variables::POSTGRES_BIN;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs, and the user to run them as.
#[derive(Clone, Debug)]
pub struct Installed {
    bin: PathBuf,
    /// The words before a command that must not run as root; none where nobody is root.
    prefix: Vec<OsString>,
}

impl Installed {
    /// Looks for the programs.
    ///
    /// # Errors
    /// They are not there: what to do about it.
    pub fn find() -> Result<Self, String> {
        let bin =
            postgres_bin().ok_or_else(|| missing("PostgreSQL (initdb, postgres, pg_ctl)", POSTGRES_BIN))?;
        let prefix = if is_root() { without_rights() } else { Vec::new() };
        Ok(Self { bin, prefix })
    }

    /// Where the programs are.
    #[must_use]
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// A command that runs one of PostgreSQL's programs.
    ///
    /// # Errors
    /// This installation does not have it.
    pub fn program(&self, name: &str) -> Result<Command, String> {
        let program = self.bin.join(name);
        if !program.is_file() {
            return Err(format!("{name} is not in {}: install all of PostgreSQL", self.bin.display()));
        }
        Ok(self.unprivileged(&program))
    }

    /// A command that runs without the rights of root.
    #[must_use]
    pub fn unprivileged(&self, program: &Path) -> Command {
        let mut words = self.prefix.iter().cloned().chain([program.into()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        // A directory that the other user can read: PostgreSQL's programs look at where they are started.
        command.args(words).current_dir("/");
        command
    }

    /// A directory for a server, which belongs to the user that the programs run as.
    pub(crate) fn directory(&self, parent: &Path) -> Result<Directory, String> {
        let directory = Directory::new(parent, "postgres")?;
        self.hand_over(directory.path())?;
        Ok(directory)
    }

    /// Gives a directory to the user that the programs run as.
    pub(crate) fn hand_over(&self, directory: &Path) -> Result<(), String> {
        if self.prefix.is_empty() {
            return Ok(());
        }
        let user = unprivileged_user();
        let owned = Command::new("chown").arg(user).arg(directory).status();
        if owned.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        Err(format!("{}: it cannot be given to {user}", directory.display()))
    }
}

/// The directory that [`POSTGRES_BIN`] names, or where Debian keeps the programs, the newest version first, or wherever the search path
/// leads.
#[must_use]
pub fn postgres_bin() -> Option<PathBuf> {
    let complete =
        |bin: &PathBuf| ["initdb", "postgres", "pg_ctl"].iter().all(|name| bin.join(name).is_file());
    if let Some(named) = env::var_os(POSTGRES_BIN) {
        return Some(PathBuf::from(named)).filter(complete);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    debian.sort_by_key(|bin| {
        let version =
            bin.parent().and_then(Path::file_name).and_then(|name| name.to_str()?.parse::<u32>().ok());
        std::cmp::Reverse(version)
    });
    debian.into_iter().chain(search_path()).find(complete)
}

/// The user that Debian's package makes; where PostgreSQL came some other way, nobody in particular.
fn unprivileged_user() -> &'static str {
    let exists = Command::new("id").args(["-u", "postgres"]).output().is_ok_and(|id| id.status.success());
    if exists { "postgres" } else { "nobody" }
}

fn without_rights() -> Vec<OsString> {
    let user = unprivileged_user();
    // It becomes the program it starts, so that a signal reaches it.
    [
        "setpriv".into(),
        format!("--reuid={user}"),
        "--regid".into(),
        group_of(user),
        "--init-groups".into(),
        "--".into(),
    ]
    .map(OsString::from)
    .into()
}

fn group_of(user: &str) -> String {
    let id = Command::new("id").args(["-g", user]).output();
    id.map(|id| String::from_utf8_lossy(id.stdout.trim_ascii()).into_owned()).unwrap_or_default()
}
