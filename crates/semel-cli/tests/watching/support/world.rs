//! The service behind the gateway, and the collector beside it, in one process.

use super::{exchange, python_tool};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

pub(crate) struct World {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl World {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(python_tool("python3"))
            .args(["-c", include_str!("world.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.trim().parse().unwrap()));
        Self { process, address }
    }

    /// What the collector was told so far.
    pub(crate) fn received(&self) -> Value {
        exchange(self.address, "GET", "/received", &[], "").json()
    }

    /// Lets the service answer what it holds.
    pub(crate) fn release(&self) {
        self.tell("/release");
    }

    /// From now on the collector takes nothing.
    pub(crate) fn refuse(&self) {
        self.tell("/refuse");
    }

    /// From now on the collector takes everything.
    pub(crate) fn accept(&self) {
        self.tell("/accept");
    }

    fn tell(&self, what: &str) {
        assert_eq!(exchange(self.address, "GET", what, &[], "").status, 200);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
