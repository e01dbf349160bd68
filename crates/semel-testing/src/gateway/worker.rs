//! `semel worker` as a process.

use super::{ClockOff, semel, signal};
use jiff::Timestamp;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};

/// `semel worker`.
pub struct Worker(Child);

impl Worker {
    pub fn start(config: &Path) -> Self {
        Self::start_logging(config, Stdio::null())
    }

    /// What it logs goes there.
    pub fn start_logging(config: &Path, log: impl Into<Stdio>) -> Self {
        Self(semel().args(["worker", "--config"]).arg(config).stderr(log).spawn().unwrap())
    }

    /// With an admin API of its own, and where that is.
    pub fn start_with_admin(config: &Path) -> (Self, SocketAddr) {
        let mut command = semel();
        let command = command.args(["worker", "--admin-listen", "127.0.0.1:0", "--config"]).arg(config);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = said.find_map(|line| line.split("http://").nth(1)?.parse().ok());
        (Self(process), address.expect("it says where its admin API is"))
    }

    /// On a machine whose clock is wrong. Returns once it works, with what time it takes it to be.
    pub fn start_with(config: &Path, clock: ClockOff) -> (Self, Timestamp) {
        let mut command = semel();
        let command = clock.on(&mut command).args(["worker", "--config"]).arg(config);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let first = said.find(|line| line.contains("worker started")).expect("it says that it works");
        // Whatever else it says, somebody reads it.
        std::thread::spawn(move || said.for_each(drop));
        let time = first.split_whitespace().find_map(|word| word.parse().ok());
        (Self(process), time.unwrap_or_else(|| panic!("no time of day: {first}")))
    }

    /// Tells it to end, and waits until it has.
    pub fn stop(mut self) -> Option<i32> {
        signal(&self.0, "-TERM");
        self.0.wait().unwrap().code()
    }

    /// SIGHUP.
    pub fn is_told_to_reload(&self) {
        signal(&self.0, "-HUP");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
