//! One caller, one request at a time.

use crate::load::{BODY, PAYMENTS};
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A connection that is kept.
#[derive(Debug)]
pub struct Caller {
    stream: TcpStream,
    buffer: [u8; 4096],
}

impl Caller {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: [0; 4096] })
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
        let key = key.map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{key}Content-Length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        let begun = Instant::now();
        self.stream.write_all(request.as_bytes())?;
        // The answer is small, and ends with the body's brace.
        let mut end = 0;
        while !self.buffer[..end].ends_with(b"}") {
            let read = self.stream.read(&mut self.buffer[end..])?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            end += read;
        }
        if !self.buffer.starts_with(b"HTTP/1.1 2") {
            return Err(Error::other(String::from_utf8_lossy(&self.buffer[..end])));
        }
        Ok(begun.elapsed().as_secs_f64() * 1e6)
    }
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
