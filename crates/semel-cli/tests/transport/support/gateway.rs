//! The gateway as users run it.

use super::Service;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub(crate) struct Gateway {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    _directory: TempDir,
}

impl Gateway {
    /// With these settings more.
    pub(crate) fn start(service: &Service, settings: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("semel.db");
        let file = directory.path().join("semel.toml");
        let top = format!(
            "upstream = \"http://{}\"\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\n",
            service.address,
            store.display()
        );
        let admin = "[admin]\nlisten = \"127.0.0.1:0\"\n";
        std::fs::write(&file, format!("{top}{admin}{settings}")).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_semel"))
            .args(["gateway", "--config"])
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut address = || {
            let line = said.next().expect("the gateway says where it listens");
            line.split("://").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
        };
        let (address, admin) = (address(), address());
        Self { process, address, admin, _directory: directory }
    }

    /// Its resident memory, in MiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
