//! A server as a process: started, asked where it listens, and killed when the test is over.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running server. Killed when it is dropped.
pub struct Program {
    process: Child,
    /// Where it listens.
    pub address: SocketAddr,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts a server that prints `http://ADDRESS` once it listens, and waits for that line.
    pub fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut output = BufReader::new(process.stdout.take().expect("its output is piped"));
        let address = loop {
            let line = read_line(&mut output).expect("the program ended before it said where it listens");
            let address = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next());
            if let Some(address) = address.and_then(|address| address.parse().ok()) {
                break address;
            }
        };
        Self { process, address, output }
    }

    /// Kills it, without a warning.
    pub fn kill(&mut self) {
        let _gone_already = self.process.kill();
        let _reaped = self.process.wait();
    }

    /// Kills it, and reads what it had printed since it began to listen.
    pub fn finish(mut self) -> Vec<String> {
        self.kill();
        std::iter::from_fn(|| read_line(&mut self.output)).collect()
    }
}

fn read_line(output: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    let read = output.read_line(&mut line).expect("the program's output is text");
    (read > 0).then(|| line.trim_end().to_owned())
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}
