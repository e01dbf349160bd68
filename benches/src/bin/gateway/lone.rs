//! One caller, one request at a time.

use semel::fingerprint::{Command, Recipe};
use semel::{Decision, Engine, Incoming, Outcome, Policy, RecordKey};
use semel_sqlite::SqliteStore;
use std::error::Error;
use std::io::{Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BODY: &str = r#"{"amount":"10.00","currency":"EUR","invoice":"in_1"}"#;

/// A connection to the gateway.
struct Caller {
    stream: TcpStream,
    buffer: [u8; 4096],
}

impl Caller {
    fn connect(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: [0; 4096] })
    }

    /// Sends a request and waits for its answer, for so many microseconds.
    fn call(&mut self, key: Option<&str>) -> Result<f64> {
        let key = key.map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
        let request = format!(
            "POST /payments HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{key}Content-Length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        let begun = Instant::now();
        self.stream.write_all(request.as_bytes())?;
        // The answer is small, and ends with the body's brace.
        let mut end = 0;
        while !self.buffer[..end].ends_with(b"}") {
            let read = self.stream.read(&mut self.buffer[end..])?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            end += read;
        }
        Ok(begun.elapsed().as_secs_f64() * 1e6)
    }
}

/// How long each request took, in microseconds.
pub(crate) fn requests(at: SocketAddr, with_key: bool, span: Duration) -> Result<Vec<f64>> {
    let mut caller = Caller::connect(at)?;
    let (start, mut micros) = (Instant::now(), Vec::new());
    while start.elapsed() < span {
        let key = with_key.then(|| uuid::Uuid::new_v4().to_string());
        micros.push(caller.call(key.as_deref())?);
    }
    Ok(micros)
}

/// Makes the requests that others repeat.
pub(crate) fn first_requests(at: SocketAddr, keys: impl Iterator<Item = String>) -> Result<()> {
    let mut caller = Caller::connect(at)?;
    for key in keys {
        caller.call(Some(&key))?;
    }
    Ok(())
}

/// How long the two commits of an operation take by themselves, in microseconds.
pub(crate) async fn commits(file: &Path, span: Duration) -> std::result::Result<Vec<f64>, Box<dyn Error>> {
    let engine = Engine::new(SqliteStore::open(file).await?);
    let recipe = Arc::new(Recipe::builder().command("bench/1").build()?);
    let command = Command::new(recipe, None, &serde_json::json!({ "amount": "10.00" }))?;
    let policy = Arc::new(Policy::default());
    let (start, mut micros) = (Instant::now(), Vec::new());
    while start.elapsed() < span {
        let key = RecordKey::new("tenant", "bench", uuid::Uuid::new_v4().to_string());
        let begun = Instant::now();
        let incoming = Incoming { key, subject: &command, policy: Arc::clone(&policy) };
        let Decision::Execute(ticket) = engine.begin(incoming).await? else {
            return Err("a new key was not new".into());
        };
        ticket.finish(Outcome::Completed { response: None, resource: None }).await?;
        micros.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(micros)
}
