//! One connection, one request at a time.

use std::fmt::{Display, Formatter};
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) const BODY: &str = r#"{"amount":"10.00","currency":"EUR","invoice":"in_1"}"#;

/// No answer takes this long, unless there is none.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Caller {
    stream: TcpStream,
    path: &'static str,
    buffer: Vec<u8>,
}

/// An answer.
#[derive(PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Display for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

impl Caller {
    pub(crate) fn connect(port: u16, path: &'static str) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, path, buffer: Vec::new() })
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn call(&mut self, key: Option<&str>, body: &str) -> Result<Answer> {
        let key = key.map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{key}Content-Length: {}\r\n\r\n{body}",
            self.path,
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        self.buffer.clear();
        loop {
            if let Some(answer) = parse(&self.buffer)? {
                return Ok(answer);
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => self.buffer.extend_from_slice(&more[..read]),
            }
        }
    }
}

/// The answer, once it is whole. Of the ways to frame a body, those two are known that servers use for small ones.
fn parse(read: &[u8]) -> Result<Option<Answer>> {
    let wrong = || Error::new(ErrorKind::InvalidData, String::from_utf8_lossy(read).into_owned());
    let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&read[..end]).map_err(|_| wrong())?.to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(wrong)?;
    let rest = &read[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let body = match length {
        Some(length) => rest.get(..length),
        None if head.contains("transfer-encoding: chunked") => rest.strip_suffix(b"\r\n0\r\n\r\n"),
        None => return Err(wrong()),
    };
    Ok(body.map(|body| Answer { status, body: body.to_vec() }))
}
