//! As fast as it goes, from a number of connections, and what it takes of the processors.

use crate::contender::Contender;
use semel_benches::load::{self, Load};
use std::io::Result;

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

/// Requests of one kind over so many connections as the load has.
pub(crate) fn run(load: &Load, at: &Contender, kind: Kind) -> Result<Measured> {
    let kind = match kind {
        Kind::New => load::Kind::NewKeys,
        Kind::Replayed => load::Kind::OldKeys,
    };
    let before = at.processor_time();
    let answered = load.run_at(at.address(), at.path, kind)?;
    let took = before.zip(at.processor_time()).map(|(before, after)| after.saturating_sub(before));
    Ok(Measured {
        rate: answered.per_second,
        median: answered.median_millis * 1e3,
        p99: answered.p99_millis * 1e3,
        processor: took.map_or(f64::NAN, |took| took.as_secs_f64() * 1e6 / answered.requests as f64),
    })
}
