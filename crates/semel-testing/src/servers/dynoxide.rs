//! dynoxide: the interface of DynamoDB on SQLite, in memory.

use crate::servers::answer::wait_for;
use crate::servers::directory::{Directory, free_port};
use crate::servers::programs::{missing, search_path, tools};
use crate::servers::variables::DYNOXIDE;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

/// A server with tables in memory. It ends with this value.
#[derive(Debug)]
pub struct Dynoxide {
    port: u16,
    server: Child,
    _directory: Directory,
}

impl Dynoxide {
    /// Starts one. Once this returns, it answers.
    ///
    /// # Errors
    /// dynoxide is not there, or did not start: what it said.
    pub fn start() -> Result<Self, String> {
        let program = dynoxide().ok_or_else(|| missing("dynoxide", DYNOXIDE))?;
        let directory = Directory::new(&env::temp_dir(), "dynoxide")?;
        let port = free_port()?;
        let log = directory.path().join("dynoxide.log");
        let output = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new(&program);
        command.args(["serve", "--log", "quiet", "--port", &port.to_string()]);
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).spawn();
        let mut server =
            server.map_err(|error| format!("{} could not be started: {error}", program.display()))?;
        let pid = directory.path().join("dynoxide.pid");
        fs::write(&pid, server.id().to_string()).map_err(|error| format!("{}: {error}", pid.display()))?;
        wait_for(&mut server, port, b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1", &log)?;
        Ok(Self { port, server, _directory: directory })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Dynoxide {
    fn drop(&mut self) {
        let _gone = self.server.kill().and_then(|()| self.server.wait());
    }
}

/// The program that [`DYNOXIDE`] names, that is on the search path, or in [`tools`].
#[must_use]
pub fn dynoxide() -> Option<PathBuf> {
    let named = env::var_os(DYNOXIDE).map(PathBuf::from);
    let found = search_path().into_iter().map(|directory| directory.join("dynoxide"));
    let own = tools().map(|tools| tools.join("dynoxide/bin/dynoxide"));
    named.into_iter().chain(found).chain(own).find(|program| program.is_file())
}
