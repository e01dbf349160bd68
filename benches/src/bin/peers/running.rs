//! A program that runs for as long as it is measured.

use semel_testing::servers::Directory;
use std::error::Error;
use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take until it listens, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take to end by itself.
pub(crate) const FAREWELL: Duration = Duration::from_secs(5);

/// A program that runs. It ends with this value; and if nobody is left to drop it, with the directory that it was started in.
pub(crate) struct Running {
    program: Command,
    child: Child,
    log: PathBuf,
    /// The file by which the directory's keeper would find it.
    pid: PathBuf,
}

impl Running {
    /// Starts a program, in a group of its own. What it says goes into a file in the directory.
    pub(crate) fn start(
        directory: &Directory,
        name: &str,
        mut program: Command,
    ) -> Result<Self, Box<dyn Error>> {
        let log = directory.path().join(format!("{name}.log"));
        let said = File::create(&log)?;
        program.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).process_group(0);
        let child = spawn(&mut program)?;
        let pid = directory.path().join(format!("{name}.pid"));
        fs::write(&pid, format!("{}\n", child.id()))?;
        Ok(Self { program, child, log, pid })
    }

    /// Kills it with all of its group.
    pub(crate) fn die(&mut self) -> Result<(), Box<dyn Error>> {
        let group = format!("-{}", self.child.id());
        if !Command::new("kill").args(["-KILL", "--", &group]).status()?.success() {
            return Err("it could not be killed".into());
        }
        self.child.wait()?;
        Ok(())
    }

    /// Starts it again as it was.
    pub(crate) fn rise(&mut self) -> Result<(), Box<dyn Error>> {
        self.child = spawn(&mut self.program)?;
        Ok(fs::write(&self.pid, format!("{}\n", self.child.id()))?)
    }

    /// Waits until somebody listens on the port.
    pub(crate) fn until_listening(mut self, port: u16) -> Result<Self, Box<dyn Error>> {
        self.wait_until_listening(port)?;
        Ok(self)
    }

    /// The same of one that was started before.
    pub(crate) fn wait_until_listening(&mut self, port: u16) -> Result<(), Box<dyn Error>> {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(ended) = self.child.try_wait()? {
                return Err(format!("it ended ({ended}): {}", self.last_words()).into());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("it does not listen: {}", self.last_words()).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The end of what it said.
    pub(crate) fn last_words(&self) -> String {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

fn spawn(program: &mut Command) -> Result<Child, String> {
    program
        .spawn()
        .map_err(|error| format!("{} could not be started: {error}", program.get_program().display()))
}

impl Drop for Running {
    fn drop(&mut self) {
        // Politely: programs with workers end those too.
        let _told = Command::new("kill").arg(self.child.id().to_string()).status();
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < FAREWELL {
            thread::sleep(Duration::from_millis(20));
        }
        let _killed = self.child.kill();
        let _gone = self.child.wait();
        // Its number may be somebody else's from now on.
        let _removed = fs::remove_file(&self.pid);
    }
}
