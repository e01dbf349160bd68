//! One request on a connection of its own.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

/// An answer, whole.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let named =
            |line: &&str| line.split(':').next().is_some_and(|other| other.eq_ignore_ascii_case(name));
        self.head.lines().find(named).map(|line| line[name.len() + 1..].trim())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The code of a problem document.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends a request, and leaves the connection to whoever waits for the answer.
pub fn send(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    try_send(to, method, path, headers, body).unwrap()
}

fn try_send(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(to)?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
    Ok(stream)
}

pub fn exchange(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    try_exchange(to, method, path, headers, body)
        .unwrap_or_else(|error| panic!("{method} {path} got no answer: {error}"))
}

/// The answer, or why the call failed.
pub fn try_exchange(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<Answer> {
    let mut answer = String::new();
    try_send(to, method, path, headers, body)?.read_to_string(&mut answer)?;
    let broken_off = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken_off)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken_off)?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
