//! Who may read the files: created for their owner alone, and reported where others can.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something by which other users of the machine can read or change what is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Exposure {
    /// A file of the store that others can read or write.
    File {
        /// The database, or its `-wal` or `-shm`.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A directory in which others can create and replace files, the database's `-wal` and `-journal` among them.
    Directory {
        /// The directory of the database.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, mode } => write!(
                f,
                "other users can access the store: {path:?} has mode {mode:04o}; run `chmod 600 {}`",
                path.display()
            ),
            Self::Directory { path, mode } => write!(
                f,
                "other users can replace the store: the directory {path:?} has mode {mode:04o}; run `chmod o-w {}`",
                path.display()
            ),
        }
    }
}

/// The database, and what SQLite keeps beside it.
fn files(path: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm"].into_iter().map(move |suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

#[cfg(unix)]
mod unix {
    use super::{Exposure, files};
    use std::fs::{self, OpenOptions};
    use std::io::ErrorKind;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, PoisonError};

    /// The mode of a database. SQLite gives its log and its shared memory the mode of the database.
    const OWNER_ALONE: u32 = 0o600;
    /// As many symlinks as Linux follows.
    const MAX_LINKS: usize = 40;

    /// Held while a file is created. A process that closes any descriptor of a file loses all of its locks on it, those of another
    /// thread's SQLite connection too: the new file must not be opened here before our descriptor is closed.
    static CREATING: Mutex<()> = Mutex::new(());

    /// Creates the file, readable and writable by its owner only, if it does not exist. Errors are left to SQLite, which reports them better.
    pub(crate) fn create_private(path: &Path) {
        let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut path = PathBuf::from(path);
        for _ in 0..MAX_LINKS {
            // Only if it is new: a descriptor of a database that is in use must not be closed.
            let created = OpenOptions::new().write(true).create_new(true).mode(OWNER_ALONE).open(&path);
            match created.map_err(|error| error.kind()) {
                Err(ErrorKind::AlreadyExists) if !path.exists() => {}
                _ => return,
            }
            // A symlink to a file that is yet to be created.
            let Ok(target) = fs::read_link(&path) else { return };
            path = path.parent().map_or(target.clone(), |directory| directory.join(target));
        }
    }

    /// Which files of the store at `path` other users can read or write. The group does not count: its membership is a choice.
    pub(crate) fn exposed(path: &Path) -> Vec<Exposure> {
        let mode = |path: &Path| fs::metadata(path).ok().map(|found| found.permissions().mode() & 0o7777);
        // SQLite puts its log beside the file that a symlink names.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let file = |path: PathBuf| {
            let mode = mode(&path).filter(|mode| mode & 0o006 != 0)?;
            Some(Exposure::File { path, mode })
        };
        let mut exposed: Vec<Exposure> = files(&path).filter_map(file).collect();
        if let Some(directory) = path.parent()
            && let Some(mode) = mode(directory).filter(|mode| mode & 0o002 != 0)
        {
            // The sticky bit does not help: others could still create a journal, which SQLite would play back.
            exposed.push(Exposure::Directory { path: directory.into(), mode });
        }
        exposed
    }
}

#[cfg(unix)]
pub(crate) use unix::{create_private, exposed};

// Elsewhere a directory's access list decides, which files inherit.
#[cfg(not(unix))]
pub(crate) fn create_private(_path: &Path) {}

#[cfg(not(unix))]
pub(crate) fn exposed(_path: &Path) -> Vec<Exposure> {
    Vec::new()
}
