//! What happened in a run, line by line: the same for the same seed, byte by byte.

use std::fmt::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Where something happens: each is a column of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Clients,
    Gateways,
    Service,
    Store,
    Provider,
    Operators,
    /// Between them, or to everybody.
    Faults,
}

impl Place {
    /// All of them, in the order of the columns.
    pub(crate) const ALL: [Self; 7] = [
        Self::Clients,
        Self::Gateways,
        Self::Service,
        Self::Store,
        Self::Provider,
        Self::Operators,
        Self::Faults,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Gateways => "gateways",
            Self::Service => "service",
            Self::Store => "store",
            Self::Provider => "provider",
            Self::Operators => "operators",
            Self::Faults => "faults",
        }
    }
}

/// The lines of a run. The hash of all is always kept, the lines themselves only where somebody wants to read them.
pub(crate) struct Trace {
    begun: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    buffer: String,
    hash: u64,
    lines: u64,
    text: Option<String>,
}

impl Trace {
    pub(crate) fn begin(keep: bool) -> Self {
        let inner = Inner {
            buffer: String::new(),
            hash: 0xcbf2_9ce4_8422_2325,
            lines: 0,
            text: keep.then(String::new),
        };
        Self { begun: Instant::now(), inner: Mutex::new(inner) }
    }

    /// Milliseconds since the beginning.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn note(&self, place: Place, what: fmt::Arguments<'_>) {
        let at = self.now();
        let mut inner = self.inner();
        let Inner { buffer, hash, lines, text } = &mut *inner;
        buffer.clear();
        // Writing to a string does not fail.
        let _ = writeln!(buffer, "{:>5}.{:03} {} {what}", at / 1000, at % 1000, place.as_str());
        *hash = hashed(*hash, buffer.as_bytes());
        *lines += 1;
        if let Some(text) = text {
            text.push_str(buffer);
        }
    }

    /// The hash of all lines, and how many there are.
    pub(crate) fn hash(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.hash, inner.lines)
    }

    pub(crate) fn text(&self) -> Option<String> {
        self.inner().text.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hash of the lines so far and one more, eight bytes at a time.
fn hashed(hash: u64, line: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let words = line.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(mix(hash, line.len() as u64), mix)
}
