//! At a fixed rate, whatever becomes of the answers: requests are due at times that are known beforehand, and how long one takes is
//! counted from when it was due. A service that stalls is late for all that came due meanwhile.

use crate::contender::{Contender, Who};
use semel_benches::caller::Caller;
use semel_benches::load::BODY;
use std::io::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Connections, a thread each: a thread wakes more exactly than a task, whose timers are a millisecond apart.
const CONNECTIONS: usize = 64;

/// What 99 of 100 requests of each stayed within, in microseconds, where both are asked in turns. Else who failed, and how.
pub(crate) fn in_turns(
    both: [(Who, &Contender); 2],
    rate: f64,
    span: Duration,
    turns: usize,
) -> std::result::Result<[f64; 2], (Who, std::io::Error)> {
    let mut micros = [Vec::new(), Vec::new()];
    for _ in 0..turns {
        for ((who, contender), micros) in both.into_iter().zip(&mut micros) {
            micros.extend(run(contender, rate, span).map_err(|error| (who, error))?);
        }
    }
    Ok(micros.map(|mut micros| p99(&mut micros)))
}

/// How many microseconds each request took, with new keys.
fn run(at: &Contender, rate: f64, span: Duration) -> Result<Vec<f64>> {
    let count = (rate * span.as_secs_f64()) as u64;
    let callers: Result<Vec<Caller>> = (0..CONNECTIONS).map(|_| Caller::connect(at.address())).collect();
    let next = AtomicU64::new(0);
    let begin = Instant::now() + Duration::from_millis(20);
    let send = |mut caller: Caller| {
        let mut micros = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(micros);
            }
            let due = begin + Duration::from_secs_f64(number as f64 / rate);
            let key = Uuid::new_v4().to_string();
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let answer = caller.ask(at.path, Some(&key), BODY)?;
            if !(200..300).contains(&answer.status) {
                return Err(std::io::Error::other(format!("a request was answered with {}", answer.status)));
            }
            micros.push(due.elapsed().as_secs_f64() * 1e6);
        }
    };
    thread::scope(|scope| {
        let sending: Vec<_> = callers?.into_iter().map(|caller| scope.spawn(|| send(caller))).collect();
        let mut micros = Vec::new();
        for sent in sending {
            micros.extend(sent.join().map_err(|_| std::io::Error::other("a caller panicked"))??);
        }
        Ok(micros)
    })
}

/// The time that 99 of 100 stay within.
fn p99(micros: &mut [f64]) -> f64 {
    micros.sort_by(f64::total_cmp);
    let index = (micros.len() * 99).div_ceil(100).saturating_sub(1);
    micros.get(index).copied().unwrap_or(f64::NAN)
}
