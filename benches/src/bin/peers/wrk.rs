//! As fast as it goes, from a number of connections: wrk.

use crate::contender::Contender;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What the requests are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Each with a key of its own.
    New,
    /// With the keys of a thousand requests that were made before.
    Replayed,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::New => "new keys",
            Self::Replayed => "replays",
        }
    }
}

/// What a measurement came to. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) rate: f64,
    pub(crate) median: f64,
    pub(crate) p99: f64,
    /// What the contender and all that works for it took of the processors for a request; not a number where nobody tells.
    pub(crate) processor: f64,
}

/// The keys of requests that were made before.
pub(crate) fn old_keys() -> impl Iterator<Item = String> {
    (0..1000).map(|number| format!("key-of-an-old-request-{number:04}"))
}

/// New keys begin at random, as clients' keys do: an index that is filled in order would be cheaper than it is in life.
const SCRIPT: &str = r#"
local count, threads = 0, 0
function setup(thread) threads = threads + 1; thread:set("id", threads) end
function init(args)
  run, kind, body = args[1], args[2], args[3]
  math.randomseed(tonumber(run) * 16 + id)
end
function request()
  count = count + 1
  local headers = { ["Content-Type"] = "application/json" }
  if kind == "new" then
    headers["Idempotency-Key"] = string.format("%08x-%s-%d-%09d", math.random(0, 4294967295), run, id, count)
  else
    headers["Idempotency-Key"] = string.format("key-of-an-old-request-%04d", count % 1000)
  end
  return wrk.format("POST", nil, headers, body)
end
function done(summary, latency, requests)
  local e = summary.errors
  print(string.format("measured %d %d %d %d %d", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
"#;

pub(crate) struct Wrk {
    script: PathBuf,
    runs: u32,
}

impl Wrk {
    pub(crate) fn new(directory: &Path) -> Result<Self, Box<dyn Error>> {
        let script = directory.join("load.lua");
        std::fs::write(&script, SCRIPT)?;
        Ok(Self { script, runs: 0 })
    }

    /// Requests of one kind over so many connections, for a number of whole seconds.
    pub(crate) fn run(
        &mut self,
        at: &Contender,
        kind: Kind,
        connections: usize,
        span: Duration,
    ) -> Result<Measured, Box<dyn Error>> {
        self.runs += 1;
        let kind = match kind {
            Kind::New => "new",
            Kind::Replayed => "old",
        };
        let before = at.processor_time();
        let done = Command::new("wrk")
            .args(["--timeout", "10s", "-t", &connections.min(2).to_string(), "-c", &connections.to_string()])
            .args(["-d", &format!("{}s", span.as_secs().max(1)), "-s"])
            .arg(&self.script)
            .arg(format!("http://127.0.0.1:{}{}", at.port, at.path))
            .args(["--", &format!("{:06}", self.runs), kind, crate::caller::BODY])
            .output()
            .map_err(|error| format!("wrk could not be started: {error}"))?;
        let said = String::from_utf8_lossy(&done.stdout);
        let measured = said.lines().find_map(|line| line.strip_prefix("measured "));
        let numbers = measured.unwrap_or_default().split(' ').map_while(|number| number.parse::<f64>().ok());
        let [requests, micros, median, p99, errors] = numbers.collect::<Vec<_>>()[..] else {
            return Err(
                format!("wrk told no figures: {said}{}", String::from_utf8_lossy(&done.stderr)).into()
            );
        };
        if errors > 0.0 {
            return Err(format!("{errors} of {requests} requests at {connections} connections failed").into());
        }
        let took = before.zip(at.processor_time()).map(|(before, after)| after.saturating_sub(before));
        let processor = took.map_or(f64::NAN, |took| took.as_secs_f64() * 1e6 / requests);
        Ok(Measured { rate: requests / micros * 1e6, median, p99, processor })
    }
}
