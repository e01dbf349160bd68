//! Work that a handler does: always the same amount, whoever else wants the core meanwhile.
//!
//! A handler that looked at the clock until its time is over would do less of it the busier the machine is, and what costs the machine more
//! beside it would seem to cost less.

use crate::held::reply;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long the handlers take that take their time.
pub const LONG: Duration = Duration::from_micros(200);

/// Where the handler is that works.
pub const WORKING: &str = "/working";

/// An amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    turns: u64,
}

impl Work {
    /// As much as takes so long on a core that nobody else wants.
    #[must_use]
    pub fn lasting(span: Duration) -> Self {
        const TRIES: usize = 200;
        let tried = Self { turns: 50_000 };
        let timed = || {
            let begun = Instant::now();
            tried.done();
            begun.elapsed()
        };
        // The fastest of many is the one that nothing came in between of.
        let fastest = (0..TRIES).map(|_| timed()).min().unwrap_or(span);
        Self { turns: (tried.turns as f64 * span.as_secs_f64() / fastest.as_secs_f64()) as u64 }
    }

    /// Does it.
    pub fn done(self) {
        let mixed = |mixed: u64, turn: u64| black_box((mixed ^ turn).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        black_box((0..self.turns).fold(0, mixed));
    }

    /// A router with a handler at [`WORKING`] that does it and answers.
    pub fn router(self) -> Router {
        let handler = async move |_body: Bytes| {
            self.done();
            reply()
        };
        Router::new().route(WORKING, post(handler))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_longer_is_more_work() {
        let (short, long) = (Work::lasting(LONG), Work::lasting(LONG * 100));
        assert!(short.turns > 0 && long.turns > short.turns, "{short:?} {long:?}");
    }
}
