//! A client that writes its requests byte by byte, so that it can send what no library would, and hang up when it likes.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The key of most requests.
pub const KEY: &str = "key-0123456789abcdef";

/// No answer takes longer; a test that waits for one that never comes fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request.
#[derive(Clone)]
pub struct Ask {
    line: String,
    fields: Vec<String>,
    body: Vec<u8>,
}

impl Ask {
    /// A payment, with the key of most requests.
    pub fn payment() -> Self {
        Self::new("POST /payments").key(KEY).body(r#"{"amount":"10.00"}"#)
    }

    /// A method and a target.
    pub fn new(line: &str) -> Self {
        Self { line: line.to_owned(), fields: vec!["Host: shop.example".into()], body: Vec::new() }
    }

    pub fn key(self, key: &str) -> Self {
        self.without("Idempotency-Key").field(&format!("Idempotency-Key: {key}"))
    }

    pub fn field(mut self, field: &str) -> Self {
        self.fields.push(field.to_owned());
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|field| !field.starts_with(&format!("{name}:")));
        self
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    pub fn head(&self) -> String {
        let length = if self.body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", self.body.len())
        };
        format!("{} HTTP/1.1\r\n{}\r\n{length}\r\n", self.line, self.fields.join("\r\n"))
    }

    pub fn bytes(&self) -> Vec<u8> {
        [self.head().as_bytes(), &self.body].concat()
    }
}

/// Sends a request over a connection of its own to a server that may be going away: none if it never answered.
pub async fn try_send(address: SocketAddr, ask: &Ask) -> Option<Answer> {
    let mut client = Client::of(TcpStream::connect(address).await.ok()?);
    client.stream.write_all(&ask.bytes()).await.ok()?;
    while find(&client.read, b"\r\n\r\n").is_none() {
        if !client.more().await {
            return None;
        }
    }
    Some(client.answer().await)
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), read: Vec::new() }
    }

    /// The other end of a connection.
    pub fn of(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// Reads a request with a length or without a body; false if the connection has ended.
    pub async fn read_request(&mut self) -> bool {
        while find(&self.read, b"\r\n\r\n").is_none() {
            if !self.more().await {
                return false;
            }
        }
        let request = self.head().await;
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        while self.read.len() < length {
            assert!(self.more().await);
        }
        self.read.drain(..length);
        true
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub async fn send(&mut self, ask: &Ask) -> Answer {
        self.write(ask.bytes()).await;
        if ask.line.starts_with("HEAD ") { self.head().await } else { self.answer().await }
    }

    /// Reads one more piece; false at the end.
    async fn more(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        let count = tokio::time::timeout(PATIENCE, self.stream.read(&mut piece))
            .await
            .expect("every answer comes in bounded time")
            .unwrap_or(0);
        self.read.extend_from_slice(&piece[..count]);
        count > 0
    }

    /// Reads a head as it stands.
    pub async fn head_text(&mut self) -> String {
        let end = loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.more().await, "the head breaks off");
        };
        String::from_utf8(self.read.drain(..end).collect()).unwrap()
    }

    /// Reads exactly this.
    pub async fn expect(&mut self, bytes: &[u8]) {
        while self.read.len() < bytes.len() {
            assert!(self.more().await, "{} bytes are missing", bytes.len() - self.read.len());
        }
        let read: Vec<u8> = self.read.drain(..bytes.len()).collect();
        assert!(read == bytes, "something else came");
    }

    /// Reads the head of an answer.
    pub async fn head(&mut self) -> Answer {
        let end = loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                break end;
            }
            assert!(self.more().await, "no answer, but {:?}", String::from_utf8_lossy(&self.read));
        };
        let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
        self.read.drain(..end + 4);
        Answer::of(&head)
    }

    /// Reads a whole answer.
    pub async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                answer.body.extend(chunk);
            }
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().unwrap();
            while self.read.len() < length {
                assert!(self.more().await, "{} bytes are missing", length - self.read.len());
            }
            answer.body = self.read.drain(..length).collect();
        } else if ![204, 304].contains(&answer.status) {
            answer.body = self.rest().await;
        }
        answer
    }

    /// Reads the next chunk; none after the last.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(end) = find(&self.read, b"\r\n") {
                break end;
            }
            assert!(self.more().await, "the answer breaks off");
        };
        let size = usize::from_str_radix(std::str::from_utf8(&self.read[..end]).unwrap(), 16).unwrap();
        while self.read.len() < end + 2 + size + 2 {
            assert!(self.more().await, "the answer breaks off");
        }
        self.read.drain(..end + 2);
        let chunk = self.read.drain(..size).collect();
        self.read.drain(..2);
        (size > 0).then_some(chunk)
    }

    /// Reads the next chunk; after the last, adds the trailers to `trailers`.
    pub async fn chunk_or_trailers(&mut self, trailers: &mut String) -> Option<Vec<u8>> {
        let size = loop {
            match find(&self.read, b"\r\n") {
                Some(_) if self.read.starts_with(b"0\r\n") => break 0,
                Some(end) => break end,
                None => assert!(self.more().await, "the body breaks off"),
            }
        };
        if size > 0 {
            return self.chunk().await;
        }
        self.read.drain(..3);
        let end = loop {
            match find(&self.read, b"\r\n\r\n") {
                _ if self.read.starts_with(b"\r\n") => break 0,
                Some(end) => break end + 2,
                None => assert!(self.more().await, "the trailers break off"),
            }
        };
        trailers.push_str(std::str::from_utf8(&self.read[..end]).unwrap());
        self.read.drain(..end + 2);
        None
    }

    /// Reads what comes until the other side closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Of a connection that was read to its end.
    pub fn read(bytes: &[u8]) -> Self {
        let end = find(bytes, b"\r\n\r\n").unwrap();
        let mut answer = Self::of(&String::from_utf8_lossy(&bytes[..end]));
        answer.body = bytes[end + 4..].to_vec();
        answer
    }

    fn of(head: &str) -> Self {
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap_or(0);
        let field = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        Self { status, headers: lines.map(field).collect(), body: Vec::new() }
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The machine-readable code of a problem, in whatever format: the link names it in all of them.
    pub fn code(&self) -> String {
        if self.header("content-type") == Some("application/json") {
            let link = self.header("link").unwrap_or_else(|| panic!("{self:?}"));
            let (_, code) = link.split_once('#').unwrap_or_else(|| panic!("{self:?}"));
            return code.split('>').next().unwrap_or_default().to_owned();
        }
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert!(problem["retryable"].is_boolean());
        problem["code"].as_str().unwrap_or_default().to_owned()
    }

    pub fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// A header as the service got it, in an answer that tells.
    pub fn told(&self, name: &str) -> Vec<String> {
        let headers = self.json()["headers"].clone();
        let headers = headers.as_array().unwrap().iter();
        headers
            .filter(|pair| pair[0].as_str().unwrap().eq_ignore_ascii_case(name))
            .map(|pair| pair[1].as_str().unwrap().to_owned())
            .collect()
    }
}
