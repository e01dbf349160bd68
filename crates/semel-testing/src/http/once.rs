//! A client that writes its requests byte by byte, so that it can send what no library would, and hang up when it likes.

use super::server::Server;
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The key of most requests.
pub const KEY: &str = "key-0123456789abcdef";

/// A request.
#[derive(Clone)]
pub struct Ask {
    method: &'static str,
    path: String,
    lines: Vec<Vec<u8>>,
    body: Bytes,
    chunked: bool,
}

impl Ask {
    /// A payment, with the key of most requests.
    pub fn payment() -> Self {
        Self::new("POST", "/payments").key(KEY).json(r#"{"amount":"10.00"}"#)
    }

    pub fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.into(), lines: Vec::new(), body: Bytes::new(), chunked: false }
    }

    pub fn key(self, key: &str) -> Self {
        self.without("idempotency-key").header("Idempotency-Key", key)
    }

    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let line = [name.as_bytes(), b": ", value.as_ref()].concat();
        self.line(line)
    }

    /// A header line as it is, whatever it is.
    pub fn line(mut self, line: impl Into<Vec<u8>>) -> Self {
        self.lines.push(line.into());
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        let named = |line: &Vec<u8>| line.to_ascii_lowercase().starts_with(format!("{name}:").as_bytes());
        self.lines.retain(|line| !named(line));
        self
    }

    pub fn json(self, body: &'static str) -> Self {
        self.without("content-type").header("Content-Type", "application/json").body(body)
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Without saying beforehand how long the body is.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// The answer of the till to be: this status.
    pub fn status(self, status: u16) -> Self {
        self.without("x-status").header("x-status", status.to_string())
    }

    /// The answer of the till to have this header.
    pub fn answered_with(self, name: &str, value: &str) -> Self {
        self.header("x-respond", format!("{name}={value}"))
    }

    /// The till to wait at its gate.
    pub fn held(self) -> Self {
        self.header("x-hold", "1")
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        if !self.lines.iter().any(|line| line.starts_with(b"Host:")) {
            bytes.extend_from_slice(b"Host: shop\r\n");
        }
        let length = if self.chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {}", self.body.len())
        };
        for line in self.lines.iter().map(Vec::as_slice).chain([length.as_bytes(), b"Connection: close"]) {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        if self.chunked {
            for chunk in self.body.chunks(1000) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }

    /// Sends it, and keeps the connection.
    pub async fn begin(&self, server: &Server) -> TcpStream {
        self.begin_at(server.address).await
    }

    /// Sends it to a server at this address, and keeps the connection.
    pub async fn begin_at(&self, address: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A server that has answered already may have stopped listening to the rest.
        let _ = stream.write_all(&self.bytes()).await;
        stream
    }

    /// Sends it, and reads the answer to its end.
    pub async fn send(&self, server: &Server) -> Answer {
        self.send_to(server.address).await
    }

    pub async fn send_to(&self, address: SocketAddr) -> Answer {
        Answer::read(self.begin_at(address).await).await
    }

    /// Sends it again and again, as `Retry-After` says, for as long as another attempt is in progress.
    pub async fn send_until_settled(&self, address: SocketAddr) -> Answer {
        loop {
            let answer = self.send_to(address).await;
            if answer.status != 409 {
                return answer;
            }
            assert_eq!(answer.code(), "idempotency_key_in_progress");
            let pause = answer.header("retry-after").and_then(|seconds| seconds.parse().ok());
            tokio::time::sleep(Duration::from_secs(pause.unwrap_or(1))).await;
        }
    }
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Answer {
    /// Reads an answer to its end: the server closes.
    pub async fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let reading = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes));
        if let Err(error) = reading.await.expect("every answer comes in bounded time") {
            // The rest of a request that nobody read resets the connection; what came before that counts.
            assert!(!bytes.is_empty(), "no answer: {error}");
        }
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| {
                line.split_once(": ")
                    .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                    .unwrap()
            })
            .collect();
        let body = &bytes[end + 4..];
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { dechunked(body) } else { Bytes::copy_from_slice(body) };
        Self { status, headers, body }
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The machine-readable code of a problem, which has all that a problem has to have.
    pub fn code(&self) -> String {
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 20), "{problem}");
        assert!(problem["retryable"].is_boolean());
        let code = problem["code"].as_str().unwrap().to_owned();
        assert!(problem["type"].as_str().unwrap().ends_with(&code));
        assert!(self.header("link").unwrap().contains("rel=\"describedby\""));
        assert_eq!(problem["operation_id"].as_str(), self.header("semel-operation-id"));
        if self.status != 202 {
            assert_eq!(self.header("content-type"), Some("application/problem+json"));
        }
        code
    }

    pub fn operation_id(&self) -> &str {
        self.header("semel-operation-id").expect("every protected answer names its operation")
    }

    pub fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }
}

fn dechunked(mut rest: &[u8]) -> Bytes {
    let mut body = Vec::new();
    loop {
        // Broken off in the middle: what came is what there is.
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return body.into() };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        rest = &rest[end + 2..];
        if size == 0 || rest.len() < size + 2 {
            return body.into();
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}
