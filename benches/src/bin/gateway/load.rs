//! Load from many clients at once, made by wrk.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What the requests are.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Not protected.
    WithoutKey,
    /// Each with a key of its own.
    NewKeys,
    /// With the keys of a thousand requests that were made before.
    OldKeys,
}

/// The keys of requests that were made before.
pub(crate) fn old_keys() -> impl Iterator<Item = String> {
    (0..1000).map(|number| format!("key-of-an-old-request-{number:04}"))
}

/// A POST with a body of 53 bytes. `init` gets a name for the run and the kind.
const SCRIPT: &str = r#"
local body = '{"amount":"10.00","currency":"EUR","invoice":"in_1"}'
local count = 0
local threads = 0
function setup(thread) threads = threads + 1; thread:set("id", threads) end
function init(args) run, kind = args[1], args[2] end
function request()
  count = count + 1
  local headers = { ["Content-Type"] = "application/json" }
  if kind == "new" then headers["Idempotency-Key"] = string.format("key-%s-%d-%012d", run, id, count) end
  if kind == "old" then headers["Idempotency-Key"] = string.format("key-of-an-old-request-%04d", count % 1000) end
  return wrk.format("POST", "/payments", headers, body)
end
"#;

pub(crate) struct Load {
    script: PathBuf,
    connections: usize,
    span: Duration,
    runs: AtomicU32,
}

impl Load {
    pub(crate) fn new(directory: &Path, connections: usize, span: Duration) -> Result<Self> {
        let script = directory.join("load.lua");
        std::fs::write(&script, SCRIPT)?;
        Ok(Self { script, connections, span, runs: AtomicU32::new(0) })
    }

    /// Requests answered with success in a second.
    pub(crate) fn run(&self, at: SocketAddr, kind: Kind) -> Result<f64> {
        let kind = match kind {
            Kind::WithoutKey => "none",
            Kind::NewKeys => "new",
            Kind::OldKeys => "old",
        };
        // wrk takes whole seconds.
        let seconds = self.span.as_secs().max(1);
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let output = Command::new("wrk")
            .arg("-t2")
            .arg(format!("-c{}", self.connections))
            .arg(format!("-d{seconds}s"))
            .arg("-s")
            .arg(&self.script)
            .arg(format!("http://{at}/payments"))
            .args(["--", &format!("{run:06}"), kind])
            .output()
            .map_err(|error| {
                Error::other(format!(
                    "wrk cannot be started ({error}): install it (Debian: apt-get install wrk)"
                ))
            })?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if said.contains("Non-2xx") || said.contains("Socket errors") {
            return Err(Error::other(format!("some requests failed:\n{said}")));
        }
        let rate = said.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
        rate.ok_or_else(|| Error::other(format!("wrk says no rate:\n{said}")))
    }
}
