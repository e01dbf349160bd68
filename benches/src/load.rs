//! Load from many clients at once, made by wrk.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What the requests are, and with it what the answers have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not protected.
    WithoutKey,
    /// Each with a key of its own.
    NewKeys,
    /// With the keys of a thousand requests that were made before: replays.
    OldKeys,
    /// With the keys of requests that are under way at [`HELD`]: conflicts.
    HeldKeys,
    /// With the keys of a thousand requests that were made before, and another body: mismatches.
    OtherBodies,
    /// With keys of a store that was filled, in random order, from this number up to but not including that one: replays.
    StoredKeys(u64, u64),
}

/// Where requests are held until they are let go.
pub const HELD: &str = "/held";

/// Where the others go.
pub const PAYMENTS: &str = "/payments";

/// How many requests are held.
pub const HELD_KEYS: usize = 16;

/// The keys of requests that were made before.
pub fn old_keys() -> impl Iterator<Item = String> {
    (0..1000).map(|number| format!("key-of-an-old-request-{number:04}"))
}

/// The keys of requests that are held in this run of the load.
pub fn held_keys(run: u32) -> impl Iterator<Item = String> {
    (0..HELD_KEYS).map(move |number| format!("key-of-a-held-request-{run:06}-{number:04}"))
}

/// A key of a store that was filled.
#[must_use]
pub fn stored_key(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// The body of all requests, but of those that have another.
pub const BODY: &str = r#"{"amount":"10.00","currency":"EUR","invoice":"in_1"}"#;

/// A POST with a body of 53 bytes. `init` gets a name for the run, the kind, the path and two numbers.
const SCRIPT: &str = r#"
local body = '{"amount":"10.00","currency":"EUR","invoice":"in_1"}'
local count = 0
local threads = 0
function setup(thread) threads = threads + 1; thread:set("id", threads) end
function init(args)
  run, kind, path, low, high = args[1], args[2], args[3], tonumber(args[4]), tonumber(args[5])
  if kind == "other" then body = '{"amount":"99.00","currency":"EUR","invoice":"in_1"}' end
  math.randomseed(tonumber(run) * 7919 + id)
end
function key()
  -- New keys begin at random, as clients' keys do: an index that is filled in order would be cheaper than it is in life.
  if kind == "new" then return string.format("%08x-%s-%d-%012d", math.random(0, 4294967295), run, id, count) end
  if kind == "held" then return string.format("key-of-a-held-request-%s-%04d", run, count % high) end
  if kind == "stored" then return string.format("00000000-0000-4000-8000-%012d", math.random(low, high - 1)) end
  return string.format("key-of-an-old-request-%04d", count % 1000)
end
function request()
  count = count + 1
  local headers = { ["Content-Type"] = "application/json" }
  if kind ~= "none" then headers["Idempotency-Key"] = key() end
  return wrk.format("POST", path, headers, body)
end
function done(summary, latency)
  local errors = summary.errors
  print(string.format("measured: %d %d %d %d %f %f", summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, latency:percentile(50), latency:percentile(99)))
end
"#;

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    /// How many answers there were.
    pub requests: u64,
    /// Answers in a second.
    pub per_second: f64,
    /// The time within which half of the requests were answered, in milliseconds.
    pub median_millis: f64,
    /// The time within which 99 of 100 requests were answered, in milliseconds.
    pub p99_millis: f64,
}

/// Clients that send one request after the other.
#[derive(Debug)]
pub struct Load {
    script: PathBuf,
    connections: usize,
    span: Duration,
}

/// Counts the runs of all loads: keys are new in every one.
static RUNS: AtomicU32 = AtomicU32::new(0);

impl Load {
    /// Load by so many connections, for so long each time. wrk takes whole seconds, and no less than one.
    ///
    /// # Errors
    /// Its script cannot be written to the directory.
    pub fn new(directory: &Path, connections: usize, span: Duration) -> Result<Self> {
        let script = directory.join("load.lua");
        std::fs::write(&script, SCRIPT)?;
        Ok(Self { script, connections, span })
    }

    /// The number of the run that comes next.
    #[must_use]
    pub fn next_run() -> u32 {
        RUNS.load(Ordering::Relaxed)
    }

    /// What came of requests of this kind to the path where they go.
    ///
    /// # Errors
    /// As [`run_at`](Self::run_at).
    pub fn run(&self, at: SocketAddr, kind: Kind) -> Result<Answered> {
        self.run_at(at, if kind == Kind::HeldKeys { HELD } else { PAYMENTS }, kind)
    }

    /// What came of requests of this kind to this path.
    ///
    /// # Errors
    /// wrk cannot be started, or the answers were not all of the sort that they have to be.
    pub fn run_at(&self, at: SocketAddr, path: &str, kind: Kind) -> Result<Answered> {
        let (name, low, high) = match kind {
            Kind::WithoutKey => ("none", 0, 0),
            Kind::NewKeys => ("new", 0, 0),
            Kind::OldKeys => ("old", 0, 0),
            Kind::OtherBodies => ("other", 0, 0),
            Kind::HeldKeys => ("held", 0, HELD_KEYS as u64),
            Kind::StoredKeys(low, high) => ("stored", low, high),
        };
        let seconds = self.span.as_secs().max(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let output = Command::new("wrk")
            // No more threads than connections: wrk does not take less than one for each.
            .arg(format!("-t{}", self.connections.min(2)))
            .arg(format!("-c{}", self.connections))
            .arg(format!("-d{seconds}s"))
            .arg("-s")
            .arg(&self.script)
            .arg(format!("http://{at}{path}"))
            .args(["--", &format!("{run:06}"), name, path, &low.to_string(), &high.to_string()])
            .output()
            .map_err(|error| {
                Error::other(format!(
                    "wrk cannot be started ({error}): install it (Debian: apt-get install wrk)"
                ))
            })?;
        let said = String::from_utf8_lossy(&output.stdout);
        let measured = measured(&said).ok_or_else(|| Error::other(format!("wrk says nothing:\n{said}")))?;
        measured.judged(matches!(kind, Kind::HeldKeys | Kind::OtherBodies)).ok_or_else(|| {
            Error::other(format!(
                "requests of the kind {kind:?} were not answered as they have to be:\n{said}"
            ))
        })
    }
}

/// What the script prints in the end.
struct Measured {
    requests: u64,
    micros: f64,
    /// Answers with a status of 400 or more.
    refused: u64,
    broken: u64,
    median_micros: f64,
    p99_micros: f64,
}

fn measured(said: &str) -> Option<Measured> {
    let line = said.lines().find_map(|line| line.strip_prefix("measured: "))?;
    let numbers: Vec<f64> = line.split(' ').map_while(|number| number.parse().ok()).collect();
    let [requests, micros, refused, broken, median_micros, p99_micros] = numbers[..] else { return None };
    let [requests, refused, broken] = [requests, refused, broken].map(|count| count as u64);
    Some(Measured { requests, micros, refused, broken, median_micros, p99_micros })
}

impl Measured {
    /// `None` if not all answers were of one sort: all refused if they are to be, and none if not.
    fn judged(&self, to_be_refused: bool) -> Option<Answered> {
        let expected = if to_be_refused { self.requests } else { 0 };
        (self.requests > 0 && self.broken == 0 && self.refused == expected).then(|| Answered {
            requests: self.requests,
            per_second: self.requests as f64 / (self.micros / 1e6),
            median_millis: self.median_micros / 1e3,
            p99_millis: self.p99_micros / 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_to_be_of_one_sort() {
        let measured = |line: &str| measured(&format!("Running 1s test\n{line}\n"));
        let all_well = measured("measured: 2000 1000000 0 0 500.0 1500.0").unwrap();
        assert_eq!(
            all_well.judged(false),
            Some(Answered { requests: 2000, per_second: 2000.0, median_millis: 0.5, p99_millis: 1.5 })
        );
        assert_eq!(all_well.judged(true), None, "none was refused, and all had to be");
        let refused = measured("measured: 2000 1000000 2000 0 500.0 1500.0").unwrap();
        assert!(refused.judged(true).is_some() && refused.judged(false).is_none());
        for wrong in
            ["measured: 2000 1000000 1 0 1 2", "measured: 2000 1000000 0 1 1 2", "measured: 0 1 0 0 0 0"]
        {
            assert_eq!(measured(wrong).unwrap().judged(false), None, "{wrong}");
        }
        assert!(measured("Requests/sec: 12").is_none());
    }
}
