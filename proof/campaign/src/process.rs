//! One process: started, killed, frozen, ended and started again.

use crate::off::Off;
use crate::outcome::Outcome;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

/// One process that is started again after every fault.
pub(crate) struct Process {
    pub(crate) name: String,
    program: PathBuf,
    /// Another build of the same.
    pub(crate) other_program: Option<PathBuf>,
    arguments: Vec<String>,
    /// What it is always started with.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) log: PathBuf,
    listens: Option<SocketAddr>,
    child: Mutex<Option<Child>>,
}

impl Process {
    pub(crate) fn new(
        name: &str,
        program: &Path,
        log_directory: &Path,
        listens: Option<SocketAddr>,
        arguments: &[&str],
    ) -> Self {
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            other_program: None,
            environment: Vec::new(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            log: log_directory.join(format!("{name}.log")),
            listens,
            child: Mutex::new(None),
        }
    }

    /// Starts it, and waits until it listens. Returns at once if it runs.
    pub(crate) async fn start(&self) -> Outcome<()> {
        self.start_with(&self.program, &[]).await.map(drop)
    }

    /// The same, by the other build if there is one.
    pub(crate) async fn start_other(&self) -> Outcome<()> {
        self.start_with(self.other_program.as_ref().unwrap_or(&self.program), &[]).await.map(drop)
    }

    /// Starts it on a machine whose clock is off by this much. Its number; `None` if it runs already, or refuses to start: a service
    /// whose clock is far behind the store's mark ends at once.
    pub(crate) async fn start_with_clock(&self, off: Off) -> Outcome<Option<u32>> {
        let (library, shown) = (faketime().await?, off.to_string());
        let preloaded = self.environment.iter().find(|(name, _)| name == "LD_PRELOAD");
        // A disk with a mind of its own stays under it.
        let library = match preloaded {
            Some((_, others)) if !others.contains("libfaketime") => format!("{library}:{others}"),
            _ => library,
        };
        let settings = [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME", shown.as_str()),
            // Timers run as always: it is the time of day that is wrong.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        if off.is_far_behind() {
            return self.start_once(&settings).await;
        }
        self.start_with(&self.program, &settings).await
    }

    /// Starts it with these settings, once. `None` if it runs already, or ends before it listens.
    async fn start_once(&self, settings: &[(&str, &str)]) -> Outcome<Option<u32>> {
        let mut child = self.child.lock().await;
        if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Ok(None);
        }
        let child = child.insert(self.spawn(&self.program, settings)?);
        Ok(if self.is_ready(child, None).await { child.id() } else { None })
    }

    /// The number of the process, while it runs.
    pub(crate) async fn id(&self) -> Option<u32> {
        self.child.lock().await.as_ref().and_then(Child::id)
    }

    async fn start_with(&self, program: &Path, settings: &[(&str, &str)]) -> Outcome<Option<u32>> {
        let mut child = self.child.lock().await;
        for _ in 0..40 {
            if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
                return Ok(None);
            }
            let child = child.insert(self.spawn(program, settings)?);
            if self.is_ready(child, None).await {
                return Ok(child.id());
            }
            // It has ended: its store may be down. It is started again, as a supervisor would.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(format!("{} does not start: see {}", self.name, self.log.display()).into())
    }

    /// Starts it with these settings, and does not mind if it never gets as far as to listen.
    pub(crate) async fn try_with(&self, settings: &[(&str, &str)], patience: Duration) -> Outcome<()> {
        let mut child = self.child.lock().await;
        if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Ok(());
        }
        let child = child.insert(self.spawn(&self.program, settings)?);
        self.is_ready(child, Some(Instant::now() + patience)).await;
        Ok(())
    }

    /// Starts it and kills it before it is ready, or just as it is.
    pub(crate) async fn start_in_vain(&self, life: Duration) -> Outcome<()> {
        let mut child = self.child.lock().await;
        if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Ok(());
        }
        let child = child.insert(self.spawn(&self.program, &[])?);
        tokio::time::sleep(life).await;
        child.kill().await?;
        Ok(())
    }

    fn spawn(&self, program: &Path, settings: &[(&str, &str)]) -> Outcome<Child> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command.kill_on_drop(true).spawn()?)
    }

    /// Waits until it listens; false: it has ended, or it takes too long.
    async fn is_ready(&self, child: &mut Child, until: Option<Instant>) -> bool {
        let Some(address) = self.listens else { return true };
        while matches!(child.try_wait(), Ok(None)) && until.is_none_or(|until| Instant::now() < until) {
            if TcpStream::connect(address).await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// `kill -9`: no farewell, no clearing up.
    pub(crate) async fn kill(&self) -> Outcome<()> {
        self.kill_and(|| Ok(())).await
    }

    /// The same, and does this before anybody can start it again.
    pub(crate) async fn kill_and(&self, then: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
        let mut place = self.child.lock().await;
        if let Some(mut child) = place.take() {
            let id = child.id();
            child.kill().await?;
            id.into_iter().for_each(clear_after_faketime);
        }
        then()
    }

    /// Stops it for `time`, and lets it go on as if nothing had been.
    pub(crate) async fn freeze(&self, time: Duration) -> Outcome<()> {
        let child = self.child.lock().await;
        let Some(id) = child.as_ref().and_then(Child::id) else { return Ok(()) };
        signal(id, "STOP").await?;
        tokio::time::sleep(time).await;
        signal(id, "CONT").await
    }

    /// Lets it go on, if it is frozen.
    pub(crate) async fn wake(&self) -> Outcome<()> {
        match self.child.lock().await.as_ref().and_then(Child::id) {
            Some(id) => signal(id, "CONT").await,
            None => Ok(()),
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn end(&self) -> Outcome<()> {
        let mut child = self.child.lock().await;
        if let Some(mut running) = child.take() {
            if let Some(id) = running.id() {
                signal(id, "TERM").await?;
            }
            running.wait().await?;
        }
        Ok(())
    }
}

async fn signal(id: u32, name: &str) -> Outcome<()> {
    Command::new("kill").args([format!("-{name}"), id.to_string()]).status().await?;
    Ok(())
}

/// A process with a wrong clock that is killed leaves shared memory behind, by its number, and no other one of that number gets past it.
fn clear_after_faketime(id: u32) {
    for left in [format!("/dev/shm/sem.faketime_sem_{id}"), format!("/dev/shm/faketime_shm_{id}")] {
        let _none_mostly = std::fs::remove_file(left);
    }
}

/// The library that `faketime` puts before the system's. Shared memory that a killed process left behind may be in its way: the next try has
/// another number.
pub(crate) async fn faketime() -> Outcome<String> {
    let mut said = String::new();
    for _ in 0..10 {
        let told = Command::new("faketime").args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output().await;
        let told =
            told.map_err(|error| format!("faketime cannot be run ({error}): install it (Debian: faketime)"))?;
        if told.status.success() {
            return Ok(String::from_utf8(told.stdout)?.trim().to_owned());
        }
        said = String::from_utf8_lossy(&told.stderr).into_owned();
    }
    Err(format!("faketime does not work: {said}").into())
}
