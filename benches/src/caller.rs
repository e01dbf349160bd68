//! One caller, one request at a time.

use crate::load::{BODY, PAYMENTS};
use std::fmt::{Display, Formatter};
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longer than any answer takes: what is not there by then never comes. Answers that are held back are given up on earlier.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that is kept.
#[derive(Debug)]
pub struct Caller {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

impl Display for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

impl Caller {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Sends a request and waits for its answer, which has to be one of success, for so many microseconds.
    ///
    /// # Errors
    /// The connection broke, or the answer is another one.
    pub fn call(&mut self, key: Option<&str>) -> Result<f64> {
        self.call_at(PAYMENTS, key)
    }

    /// The same at another path.
    ///
    /// # Errors
    /// As there.
    pub fn call_at(&mut self, path: &str, key: Option<&str>) -> Result<f64> {
        let begun = Instant::now();
        let answer = self.ask(path, key, BODY)?;
        let took = begun.elapsed();
        if !(200..300).contains(&answer.status) {
            return Err(Error::other(answer.to_string()));
        }
        Ok(took.as_secs_f64() * 1e6)
    }

    /// Sends a request with this body and waits for its answer, whatever it is.
    ///
    /// # Errors
    /// The connection broke, or what came is no answer.
    pub fn ask(&mut self, path: &str, key: Option<&str>, body: &str) -> Result<Answer> {
        let key = key.map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{key}Content-Length: {}\r\n\r\n{body}",
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

/// How long each request took, in microseconds.
///
/// # Errors
/// One of them failed.
pub fn requests(at: SocketAddr, with_key: bool, span: Duration) -> Result<Vec<f64>> {
    let mut caller = Caller::connect(at)?;
    let (start, mut micros) = (Instant::now(), Vec::new());
    while start.elapsed() < span {
        let key = with_key.then(|| uuid::Uuid::new_v4().to_string());
        micros.push(caller.call(key.as_deref())?);
    }
    Ok(micros)
}

/// Makes the requests that others repeat.
///
/// # Errors
/// One of them failed.
pub fn first_requests(at: SocketAddr, keys: impl Iterator<Item = String>) -> Result<()> {
    let mut caller = Caller::connect(at)?;
    for key in keys {
        caller.call(Some(&key))?;
    }
    Ok(())
}
