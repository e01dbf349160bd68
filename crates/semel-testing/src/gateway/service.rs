//! The service behind the gateway: a process of its own, in another language.

use super::exchange::exchange;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = include_str!("service.py");

pub struct Service {
    process: Child,
    pub address: SocketAddr,
}

impl Service {
    pub fn start() -> Self {
        let mut process = Command::new("python3")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("these tests need python3: install it (Debian: apt-get install python3)");
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.trim().parse().unwrap()));
        Self { process, address }
    }

    fn witness(&self, of: &str) -> Vec<Value> {
        exchange(self.address, "GET", "/witness", &[], "").json()[of].as_array().unwrap().clone()
    }

    /// Operation id and attempt of everything that it executed.
    pub fn executions(&self) -> Vec<Value> {
        self.witness("executions")
    }

    /// Path, operation id and attempt of everything that it was asked.
    pub fn questions(&self) -> Vec<Value> {
        self.witness("questions")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
