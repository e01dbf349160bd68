//! Who does the job: Semel in its shapes, and its peers.

use crate::processor;
use crate::running::{FAREWELL, Running};
use std::error::Error;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    GatewaySqlite,
    Restate,
    IdempotentProxy,
    GatewayPostgres,
    LayerPostgres,
    Textbook,
    Dbos,
    Powertools,
}

impl Who {
    /// Neighbours are measured one after the other, so those stand beside each other that are compared.
    pub(crate) const ALL: [Self; 8] = [
        Self::GatewaySqlite,
        Self::Restate,
        Self::IdempotentProxy,
        Self::GatewayPostgres,
        Self::LayerPostgres,
        Self::Textbook,
        Self::Dbos,
        Self::Powertools,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GatewaySqlite => "Semel gateway, SQLite",
            Self::GatewayPostgres => "Semel gateway, PostgreSQL",
            Self::LayerPostgres => "Semel layer, PostgreSQL",
            Self::Textbook => "textbook, PostgreSQL",
            Self::Restate => "Restate",
            Self::IdempotentProxy => "idempotent-proxy, Redis",
            Self::Dbos => "DBOS, PostgreSQL",
            Self::Powertools => "Powertools, Redis",
        }
    }

    /// What it does not do, or does otherwise. What becomes of retries is tried in every run, and not said here.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::GatewaySqlite | Self::GatewayPostgres | Self::LayerPostgres => {
                "fingerprint of the canonical body; doubt is a state; one fsync for a batch, before the answer"
            }
            Self::Textbook => "hash of the raw body; an fsync for each statement",
            Self::Restate => "no fingerprint; an fsync for a batch, before the answer",
            Self::IdempotentProxy => {
                "no fingerprint, and not even the path; durable by Redis alone (appendfsync always)"
            }
            Self::Dbos => "no fingerprint; an fsync for each statement",
            Self::Powertools => {
                "hash of what it is told to compare (nothing here: with it, Redis refuses identical retries); durable by Redis alone \
                 (appendfsync always)"
            }
        }
    }
}

/// One of them, and where it listens. It ends with this value.
pub(crate) struct Contender {
    pub(crate) port: u16,
    /// Where it takes payments.
    pub(crate) path: &'static str,
    /// Where it takes those that are held.
    pub(crate) held_path: &'static str,
    pub(crate) running: Vec<Running>,
    /// What else works for it: the service behind it, the server that keeps its keys.
    pub(crate) stands_on: Vec<u32>,
}

impl Contender {
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// All of its processes are killed, and started again. What it stands on stays.
    pub(crate) fn die_and_rise(&mut self) -> Result<(), Box<dyn Error>> {
        self.running.iter_mut().try_for_each(Running::die)?;
        // Its workers are as dead as their parent a moment later.
        let begun = Instant::now();
        while TcpStream::connect(self.address()).is_ok() {
            if begun.elapsed() > FAREWELL {
                return Err("somebody still listens though it was killed".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        // What others of it need was started last.
        self.running.iter_mut().rev().try_for_each(Running::rise)?;
        self.running.iter_mut().take(1).try_for_each(|running| running.wait_until_listening(self.port))
    }

    /// What it and all that works for it have taken of the processors since they began.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        let own = self.running.iter().map(Running::id);
        processor::time_of(&own.chain(self.stands_on.iter().copied()).collect::<Vec<_>>())
    }
}
