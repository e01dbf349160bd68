//! What each contender does with retries, tried before it is measured.

use crate::contender::Contender;
use semel_benches::caller::{Answer, Caller};
use semel_benches::held::Gate;
use semel_benches::load::{BODY, old_keys};
use std::error::Error;
use std::fmt::{Display, Formatter};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// The same key, another amount.
const ALTERED: &str = r#"{"amount":"99.00","currency":"EUR","invoice":"in_1"}"#;

/// A payment that is under way until it is let go.
const HELD: &str = r#"{"amount":"10.00","currency":"EUR","invoice":"held"}"#;

/// Whoever is told at once is told sooner than this; who is not, waits.
const AT_ONCE: Duration = Duration::from_secs(3);

/// How long a contender has to come back to what was under way when it died.
const COMING_BACK: Duration = Duration::from_secs(20);

/// How long anything may take that is bound to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes of retries.
pub(crate) struct Behaviour {
    retried: String,
    under_way: String,
    died: String,
}

impl Display for Behaviour {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { retried, under_way, died } = self;
        write!(
            f,
            "{retried}; while the first is under way, a second {under_way}; after a death, a retry {died}"
        )
    }
}

type Outcome = Result<String, Box<dyn Error>>;

/// Makes the requests that others repeat, and tells what becomes of retries.
///
/// # Errors
/// It does not do the job: a request fails, or a retry is not answered like the first.
pub(crate) fn try_retries(contender: &mut Contender, gate: &Gate) -> Result<Behaviour, Box<dyn Error>> {
    Ok(Behaviour {
        retried: retried(contender)?,
        under_way: under_way(contender, gate)?,
        died: died(contender, gate)?,
    })
}

fn retried(contender: &Contender) -> Outcome {
    let mut caller = Caller::connect(contender.address())?;
    let mut first = None;
    for key in old_keys() {
        let answer = caller.ask(contender.path, Some(&key), BODY)?;
        if !(200..300).contains(&answer.status) {
            return Err(format!("a request was answered with {answer}").into());
        }
        first.get_or_insert((key, answer));
    }
    let (key, first) = first.ok_or("there are no old keys")?;
    let again = caller.ask(contender.path, Some(&key), BODY)?;
    if again.status != first.status {
        return Err(format!("a retry was answered with {again}, the first with {first}").into());
    }
    let bytes = if again == first { "a retry gets the same bytes" } else { "a retry gets other bytes" };
    let altered = caller.ask(contender.path, Some(&key), ALTERED)?;
    Ok(if altered == again {
        format!("{bytes}, an altered body gets the old answer")
    } else {
        format!("{bytes}, an altered body is refused ({})", altered.status)
    })
}

/// A second request while the first is under way.
fn under_way(contender: &Contender, gate: &Gate) -> Outcome {
    let before = gate.arrivals();
    let first = ask_beside(contender, "key-of-one-that-is-under-way");
    wait_for(gate, before + 1, PATIENCE)?;
    let second = ask_beside(contender, "key-of-one-that-is-under-way");
    let at_once = second.recv_timeout(AT_ONCE);
    let runs = gate.arrivals() - before;
    gate.let_all_go();
    let first = first.recv_timeout(PATIENCE)??;
    let told = match at_once {
        Ok(second) => format!("is told so ({})", second?.status),
        Err(_) if second.recv_timeout(PATIENCE)?? == first => "waits, and gets its answer".into(),
        Err(_) => "waits, and gets another answer".into(),
    };
    Ok(if runs > 1 { format!("{told}, and runs beside it") } else { told })
}

/// A retry after all of the contender was killed, and started again, while the first request was under way.
fn died(contender: &mut Contender, gate: &Gate) -> Outcome {
    let before = gate.arrivals();
    let first = ask_beside(contender, "key-of-one-that-died");
    wait_for(gate, before + 1, PATIENCE)?;
    contender.die_and_rise()?;
    if first.recv_timeout(PATIENCE)?.is_ok() {
        return Err("it answered a request though it was killed".into());
    }
    let retry = ask_beside(contender, "key-of-one-that-died");
    let runs_again = wait_for(gate, before + 2, COMING_BACK).is_ok();
    gate.let_all_go();
    if runs_again {
        return Ok(format!("runs again, and gets {}", retry.recv_timeout(PATIENCE)??.status));
    }
    let told = match retry.try_recv() {
        Ok(answer) => format!("gets {}", answer?.status),
        Err(_) => format!("is not answered within {} s", COMING_BACK.as_secs()),
    };
    Ok(format!("{told}, and nothing runs again"))
}

/// A request that is held, from a thread of its own.
fn ask_beside(contender: &Contender, key: &'static str) -> Receiver<std::io::Result<Answer>> {
    let (told, heard) = mpsc::channel();
    let (address, path) = (contender.address(), contender.held_path);
    thread::spawn(move || {
        let asking = Caller::connect(address).and_then(|mut caller| caller.ask(path, Some(key), HELD));
        // Nobody may want to know any more.
        drop(told.send(asking));
    });
    heard
}

fn wait_for(gate: &Gate, arrivals: usize, patience: Duration) -> Result<(), String> {
    let begun = Instant::now();
    while gate.arrivals() < arrivals {
        if begun.elapsed() > patience {
            return Err("a request did not get to where it is held".into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
