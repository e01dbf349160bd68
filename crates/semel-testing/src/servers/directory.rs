//! A directory that servers live in, and that goes with them.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A directory with a keeper: a process that ends the servers in it and removes it. It does so when its standard input ends, and
/// that happens when the value is dropped and also when the process that holds it is killed.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    keeper: Child,
}

/// An interrupt from the terminal reaches everybody; the keeper lets it pass, and tidies up after the others.
///
/// Servers are found by the files that they leave their process ids in. One that has not ended after ten seconds is killed, and a
/// zombie counts as ended: the init process of some containers reaps none.
const KEEPER: &str = r#"
trap '' INT TERM HUP
directory=$1
read -r _
runs() {
  kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}
end() {
  pid=$(head -n 1 "$2" 2>/dev/null) && [ -n "$pid" ] || return 0
  kill "-$1" "$pid" 2>/dev/null
  looks=0
  while runs "$pid"; do
    sleep 0.02
    looks=$((looks + 1))
    [ "$looks" -lt 500 ] || kill -KILL "$pid" 2>/dev/null
  done
}
for file in "$directory"/*.pid; do end TERM "$file"; done
for file in "$directory"/*/postmaster.pid; do end QUIT "$file"; done
rm -rf "$directory"
"#;

impl Directory {
    /// A new one in `parent`, for servers of this kind: it is part of the directory's name. A process that leaves its id in a file
    /// `NAME.pid` in it is ended before the directory goes.
    ///
    /// # Errors
    /// It cannot be made there, or has nobody to keep it.
    pub fn new(parent: &Path, kind: &str) -> Result<Self, String> {
        let name = format!("semel-{kind}-{}-{:08x}", std::process::id(), random() & 0xffff_ffff);
        let path = parent.join(name);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "semel-keeper"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let keeper = keeper.map_err(|error| {
            let _gone = fs::remove_dir(&path);
            format!("sh could not be started: {error}")
        })?;
        Ok(Self { path, keeper })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ended = self.keeper.wait();
    }
}

/// A port that nobody listens on, below those that the system hands out for outgoing connections: a server that is stopped for a
/// while finds it free again.
///
/// # Errors
/// Every port is taken.
pub fn free_port() -> Result<u16, String> {
    const FIRST: u16 = 10_000;
    const COUNT: u64 = 20_000;
    let candidates = (0..100).map(|_| FIRST + (random() % COUNT) as u16);
    let mut free = candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().ok_or_else(|| "no free port".into())
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}
