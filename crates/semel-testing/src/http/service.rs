//! The service behind the gateway: a process of its own, in another language, that can be killed and started again.

use crate::servers::free_port;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SCRIPT: &str = include_str!("service.py");

/// One interpreter starts the services of all tests, each as a process of its own: loading it takes longer than most tests.
static INTERPRETER: LazyLock<Mutex<Interpreter>> = LazyLock::new(|| Mutex::new(Interpreter::start()));

struct Interpreter {
    /// Ends with its input, when this process does.
    _process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Interpreter {
    fn start() -> Self {
        let mut process = Command::new("python3")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("these tests need python3: install it (Debian: apt-get install python3)");
        let answers = BufReader::new(process.stdout.take().unwrap());
        let commands = process.stdin.take().unwrap();
        Self { _process: process, commands, answers }
    }

    /// Gives a command, and waits until it is done.
    fn does(command: &str) -> u32 {
        let mut interpreter = INTERPRETER.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(interpreter.commands, "{command}").unwrap();
        let mut answer = String::new();
        interpreter.answers.read_line(&mut answer).unwrap();
        answer.trim().parse().unwrap_or_else(|_| panic!("the service's interpreter failed at: {command}"))
    }
}

/// A service, running or not. Its executions are counted in a file, so that they outlive it.
pub struct Service {
    directory: TempDir,
    pub port: u16,
    process: Option<u32>,
}

impl Service {
    pub fn start() -> Self {
        let mut service = Self::stopped();
        service.run();
        service
    }

    /// Has a port, and nobody listening there.
    pub fn stopped() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("executions"), "").unwrap();
        Self { directory, port: free_port().unwrap(), process: None }
    }

    /// Starts it at its port; restarts it if it runs.
    pub fn run(&mut self) {
        self.kill();
        let directory = self.directory.path().display();
        self.process = Some(Interpreter::does(&format!("run {} {directory}", self.port)));
    }

    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            Interpreter::does(&format!("kill {process}"));
        }
    }

    /// Waits until it has died by itself.
    pub fn died(&mut self) {
        Interpreter::does(&format!("wait {}", self.process.take().unwrap()));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Lets requests go on that wait for `name`.
    pub fn let_go(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    /// Every request that it ever began to execute.
    pub fn executions(&self) -> Vec<String> {
        let lines = std::fs::read(self.path("executions")).unwrap();
        String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect()
    }

    pub fn executed(&self) -> usize {
        self.executions().len()
    }

    /// Waits until it has begun to execute so many requests.
    pub async fn has_executed(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.executed() < count {
            assert!(Instant::now() < deadline, "the service has only seen {:?}", self.executions());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}
