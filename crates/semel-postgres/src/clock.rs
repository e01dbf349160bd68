//! What time it is: the server's clock, which all instances share, as far as it is believed.
//!
//! [`Keeper`] decides, given the row in `semel_clock`, what the server's clock says, and this process's own steady clock; docs/decisions/clock.md
//! says why. No statement is sent for it: each one takes `clock_timestamp()` once, reads the row in its own snapshot, and is told what this handle
//! expects ([`Asked`]). So it stamps by the right time, and purges nothing, even if it is the first to meet a jump. What it found is judged when
//! its answer comes ([`StoreClock::told`]), and written to the row by [`mark`](crate::mark) where that says something else.

use semel::clock::{Clock, ClockReport, Keeper, Mark, Readings, Source, Terms, Told, Wrong};
use semel::{Now, OperationId, StoreError, Timestamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often a mark is left in the row, also when idle.
const MARKED: Duration = Duration::from_secs(60);

/// The server's clock and the wall clock of this machine agree if they differ by no more milliseconds than this.
const AGREE: u64 = 5_000;

/// Without an answer for longer than this the server was away, and owners could not renew their leases.
const AWAY: Duration = Duration::from_secs(5);

/// How often an instance looks that serves nothing, or during a clock hold: what others say of the clock counts if it is seen soon.
const SOON: Duration = Duration::from_secs(1);

/// Far beyond every step, and no number overflows with it.
const ANYTHING: i64 = i64::MAX / 4;

/// What a statement is told about time: its first parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// What it does not go back behind, what time is expected, and how far ahead of that the clock is followed.
    pub(crate) numbers: [i64; 3],
    sent: Duration,
    /// Nothing is expected yet: the answer is judged as at a start.
    is_start: bool,
}

impl Asked {
    /// Of whoever has no handle, and goes by the row.
    pub(crate) const NOTHING: Self = Self { numbers: [0, 0, ANYTHING], sent: Duration::ZERO, is_start: true };
}

/// What a statement answered about time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// The earliest time that it may be, by which it stamped and judged.
    now: i64,
    /// What the server's clock said.
    claimed: i64,
    pub(crate) row: Mark,
}

impl Answered {
    /// From the numbers of the statement's moment.
    pub(crate) fn of(numbers: &[i64]) -> Result<Self, StoreError> {
        let &[now, claimed, at, behind, hold, by] = numbers else {
            return Err(StoreError::Damaged("the server did not answer with its time".into()));
        };
        Ok(Self { now, claimed, row: Mark { at, behind, hold, by } })
    }

    /// The time that the statement stamped by.
    pub(crate) fn stamped(self) -> Now {
        let latest = Timestamp::from_millis(self.now.saturating_add(self.row.held()).max(self.claimed));
        Now { latest, ..Timestamp::from_millis(self.now).into() }
    }
}

/// The clock of one handle. Clones share it.
#[derive(Clone)]
pub(crate) struct StoreClock(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    terms: Terms,
    state: Mutex<State>,
    /// The row does not say what is believed.
    differs: Notify,
}

struct State {
    keeper: Keeper,
    /// Why this instance does not work.
    wrong: Option<String>,
    /// Whether a clock hold is open.
    is_held: bool,
    /// Since when the server was asked without an answer.
    unanswered: Option<Duration>,
    /// Whether the row says something else than what is believed.
    differs: bool,
}

impl std::fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreClock").field("terms", &self.0.terms).finish_non_exhaustive()
    }
}

impl StoreClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, terms: Terms) -> Self {
        let keeper = Keeper::new(terms, instance());
        let state = State { keeper, wrong: None, is_held: false, unanswered: None, differs: false };
        Self(Arc::new(Inner { clock, terms, state: Mutex::new(state), differs: Notify::new() }))
    }

    /// What the next statement is told, whose answer will be judged.
    pub(crate) fn ask(&self) -> Asked {
        let asked = self.expect();
        self.state().unanswered.get_or_insert(asked.sent);
        asked
    }

    /// What a statement is told within a transaction of the application's.
    fn expect(&self) -> Asked {
        let sent = self.0.clock.boottime();
        match self.state().keeper.expectation(sent) {
            None => Asked { sent, ..Asked::NOTHING },
            Some((floor, expected, allowance)) => {
                Asked { numbers: [floor, expected, allowance], sent, is_start: false }
            }
        }
    }

    /// The same, for one that writes: nothing is written by an instance that is wrong.
    pub(crate) fn ask_to_write(&self) -> Result<Asked, StoreError> {
        self.check().map(|()| self.ask())
    }

    /// The same, for one within a transaction of the application's, whose answer is not judged.
    pub(crate) fn expect_to_write(&self) -> Result<Asked, StoreError> {
        self.check().map(|()| self.expect())
    }

    fn check(&self) -> Result<(), StoreError> {
        let wrong = self.state().wrong.clone();
        wrong.map_or(Ok(()), |wrong| Err(StoreError::Unavailable(wrong)))
    }

    /// What is believed, given what a statement answered.
    pub(crate) fn told(&self, asked: &Asked, answered: &Answered) -> Told {
        let (boottime, monotonic) = (self.0.clock.boottime(), self.0.clock.monotonic());
        let Answered { now, claimed, row } = *answered;
        let told = (!asked.is_start).then_some(now);
        let mut state = self.state();
        if state.unanswered.take().is_some_and(|since| boottime.saturating_sub(since) > AWAY) {
            state.keeper.begin_again(monotonic);
        }
        let readings = Readings { claimed, sent: asked.sent, boottime, monotonic, told };
        let told = state.keeper.judge(row, &readings);
        (state.wrong, state.is_held) = (told.wrong.map(reason), told.mark.is_held());
        state.differs = !told.mark.agrees_with(&row) && told.wrong.is_none();
        if state.differs {
            self.0.differs.notify_one();
        }
        drop(state);
        if let Some(turn) = told.turn {
            Source::Server.log(turn);
        }
        told
    }

    /// The same, for whoever is about to decide by it.
    pub(crate) fn judged(&self, asked: &Asked, answered: &Answered) -> Result<Now, StoreError> {
        let told = self.told(asked, answered);
        match told.wrong {
            Some(wrong) => Err(StoreError::Unavailable(reason(wrong))),
            None => Ok(told.now),
        }
    }

    /// Whether the row says something else than what is believed.
    pub(crate) fn differs(&self) -> bool {
        self.state().differs
    }

    /// Returns once the row has to be written, or looked at because nobody else did.
    pub(crate) async fn due(&self) {
        let is_soon = {
            let state = self.state();
            state.wrong.is_some() || state.is_held
        };
        let period = if is_soon { self.period().min(SOON) } else { self.period() };
        let _late = tokio::time::timeout(period, self.0.differs.notified()).await;
    }

    /// An operator says that the server's clock is right, though it is behind the row's mark.
    pub(crate) fn accept_behind(&self) {
        let mut state = self.state();
        state.keeper.accept_behind();
        state.wrong = None;
    }

    /// What the row is to say now, if that is something else than it does.
    pub(crate) fn to_write(&self, answered: &Answered, told: &Told, accept: bool) -> Option<Mark> {
        let row = answered.row;
        let ends = self.is_synchronised(answered.claimed) || accept;
        if told.wrong.is_some() {
            None
        } else if ends && told.now.is_held() {
            Some(self.state().keeper.accepting(told))
        } else {
            // Of several instances one does it: a mark of half a minute is fresh enough for the others.
            let age = told.mark.at.saturating_sub(row.at).unsigned_abs();
            let is_old = u128::from(age) >= MARKED.as_millis() / 2;
            (row.at <= 0 || is_old || !told.mark.agrees_with(&row)).then_some(told.mark)
        }
    }

    /// Whether this machine's kernel has reported a synchronised clock for as long as a hold lasts, and the server's clock agrees with that.
    fn is_synchronised(&self, claimed: i64) -> bool {
        let clock = &self.0.clock;
        let agrees = clock.wall_millis().abs_diff(claimed) <= AGREE;
        let synchronised = agrees && clock.synchronised() == Some(true);
        self.state().keeper.watch(synchronised, clock.boottime(), self.period() * 3)
    }

    /// How often the clock is looked at when nobody else does.
    fn period(&self) -> Duration {
        (self.0.terms.hold / 10).clamp(Duration::from_millis(100), MARKED)
    }

    pub(crate) fn report(&self, answered: &Answered, told: &Told) -> ClockReport {
        let mut report = ClockReport::trusted(told.now.earliest, self.0.terms);
        (report.latest, report.claimed) = (told.now.latest, Timestamp::from_millis(answered.claimed));
        report.synchronised = self.0.clock.synchronised();
        report.synchronised_for = self.state().keeper.watched_for();
        report.wrong = told.wrong.map(reason);
        report
    }

    /// Says by whose word the server's clock is believed.
    pub(crate) fn announce(&self) {
        let (trust, synchronised) = (self.0.terms.trust.as_str(), self.0.clock.synchronised());
        match synchronised {
            Some(synchronised) => tracing::info!(trust, synchronised, "clock"),
            None => tracing::warn!(
                trust,
                "clock: this machine's kernel does not report whether its clock is synchronised; a clock hold ends when the server's clock comes back, or by `semel clock accept`"
            ),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A few numbers that are each valid at any time.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random number that tells this instance's marks from those of others.
fn instance() -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&OperationId::random().as_bytes()[8..]);
    // Zero stands for no instance.
    i64::from_le_bytes(bytes).max(i64::MIN + 1).abs().max(1)
}

/// Why nothing is served.
pub(crate) fn reason(wrong: Wrong) -> String {
    Source::Server.reason(wrong)
}
