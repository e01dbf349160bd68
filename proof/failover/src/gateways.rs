//! Two gateways on the group, as processes.

use semel_testing::servers::free_port;
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// They end with this value.
pub(crate) struct Gateways {
    processes: Vec<Child>,
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Gateways {
    /// Starts both with this binary, in this directory.
    pub(crate) fn start(
        semel: &Path,
        directory: &Path,
        store: &str,
        replication: &str,
        service: SocketAddr,
    ) -> Result<Self, String> {
        let mut gateways = Self { processes: Vec::new(), addresses: Vec::new() };
        for number in 1..=2 {
            let (port, admin) = (free_port()?, free_port()?);
            let settings = format!(
                "upstream = \"http://{service}\"\nlisten = \"127.0.0.1:{port}\"\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n\
                 [scope]\ntenant = [\"header:x-account\"]\ntrusted_peers = [\"127.0.0.1\"]\n\
                 [store]\nurl = \"{store}\"\n{replication}\n\
                 [[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n"
            );
            let file = directory.join(format!("gateway-{number}.toml"));
            std::fs::write(&file, settings).map_err(|error| error.to_string())?;
            let log = directory.join(format!("gateway-{number}.log"));
            let log = File::create(log).map_err(|error| error.to_string())?;
            let process = Command::new(semel)
                .args(["gateway", "--config"])
                .arg(&file)
                .current_dir(directory)
                .stdin(Stdio::null())
                .stdout(log.try_clone().map_err(|error| error.to_string())?)
                .stderr(log)
                .spawn()
                .map_err(|error| format!("{}: {error}", semel.display()))?;
            gateways.processes.push(process);
            gateways.addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        }
        Ok(gateways)
    }
}

impl Drop for Gateways {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _gone = process.kill().and_then(|()| process.wait());
        }
        let _flushed = std::io::stdout().flush();
    }
}
