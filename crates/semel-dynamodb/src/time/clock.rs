//! The clock of one handle.
//!
//! [`Keeper`] decides, given the row that all instances share (the item `clock`), what the service's clock says ([`Estimate`]), and this process's
//! own steady clock; docs/decisions/clock.md and docs/decisions/dynamodb.md say why. A table cannot compute a time while it writes, so a write is
//! stamped before it is sent: by an answer and a row that are no older than [`FRESH`], carried on by CLOCK_BOOTTIME. Without them nothing is
//! stamped and nothing judged.

use super::estimate::Estimate;
use semel::clock::{Clock, ClockReport, Keeper, Mark, Readings, Source, Terms, Told, Wrong};
use semel::{Now, OperationId, StoreError, Timestamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// For how long an answer says what time it is.
const FRESH: Duration = Duration::from_secs(5);

/// How often a mark is left in the row, also when idle.
const MARKED: Duration = Duration::from_secs(60);

/// The service's clock and the wall clock of this machine agree if they differ by no more milliseconds than this.
const AGREE: u64 = 5_000;

/// Without an answer for longer than this the service was away, and owners could not renew their leases.
const AWAY: Duration = Duration::from_secs(5);

/// How often an instance that serves nothing looks whether it may.
const SOON: Duration = Duration::from_secs(1);

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
    estimate: Option<Estimate>,
    /// When the last answer came that said what time it is.
    heard: Option<Duration>,
    /// The row, and when it was read.
    row: Option<(Mark, Duration)>,
    /// Why this instance does not work: its clock, or its table.
    wrong: Option<String>,
    refused: Option<String>,
    /// Since when the service was asked without an answer.
    unanswered: Option<Duration>,
    differs: bool,
}

/// What time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// What is told, and what everything is judged by.
    pub(crate) told: Now,
    /// By how much it may be later than anything that is told, because nobody can know it better.
    width: Duration,
}

impl Moment {
    /// What is stamped: windows count from the very latest time that it may be.
    pub(crate) fn stamp(self) -> Now {
        Now { latest: self.told.latest.plus(self.width), ..self.told }
    }
}

/// What was found of the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    pub(crate) row: Mark,
    pub(crate) claimed: i64,
    pub(crate) told: Told,
    width: Duration,
}

impl Looked {
    pub(crate) fn moment(self) -> Moment {
        Moment { told: self.told.now, width: self.width }
    }
}

impl std::fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreClock").field("terms", &self.0.terms).finish_non_exhaustive()
    }
}

impl StoreClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, terms: Terms) -> Self {
        let state = State {
            keeper: Keeper::new(terms, instance()),
            estimate: None,
            heard: None,
            row: None,
            wrong: None,
            refused: None,
            unanswered: None,
            differs: false,
        };
        Self(Arc::new(Inner { clock, terms, state: Mutex::new(state), differs: Notify::new() }))
    }

    /// This machine's time of day, which the service compares signatures with.
    pub(crate) fn wall_millis(&self) -> i64 {
        self.0.clock.wall_millis()
    }

    /// A request is about to be sent.
    pub(crate) fn asked(&self) -> Duration {
        let sent = self.0.clock.boottime();
        self.state().unanswered.get_or_insert(sent);
        sent
    }

    /// An answer of the service's said that it was `date`, or later by up to `resolution`.
    pub(crate) fn heard(&self, date: i64, resolution: i64, sent: Duration) {
        let (received, monotonic) = (self.0.clock.boottime(), self.0.clock.monotonic());
        let new = Estimate::of(date, resolution, sent, received);
        let mut state = self.state();
        if state.unanswered.take().is_some_and(|since| received.saturating_sub(since) > AWAY) {
            state.keeper.begin_again(monotonic);
        }
        // What is older than any answer may be says nothing of now: the clock may have been set since.
        state.estimate = Some(match state.estimate {
            Some(estimate) => estimate.and(new),
            None => new,
        });
        state.heard = Some(received);
    }

    /// What time it is, where that is known; `None`: [`look`](Self::looked) first.
    pub(crate) fn now(&self) -> Option<Result<Moment, StoreError>> {
        let boottime = self.0.clock.boottime();
        let mut state = self.state();
        let is_fresh = |at: Duration| boottime.saturating_sub(at) <= FRESH;
        let (row, read) = state.row?;
        if !is_fresh(read) || !state.heard.is_some_and(is_fresh) {
            return None;
        }
        Some(self.judge(&mut state, row, boottime).and_then(|looked| serving(&state, looked)))
    }

    /// What is believed, given the row as it was just read.
    pub(crate) fn looked(&self, row: Mark) -> Result<Looked, StoreError> {
        let boottime = self.0.clock.boottime();
        let mut state = self.state();
        state.row = Some((row, boottime));
        self.judge(&mut state, row, boottime)
    }

    /// The same, for whoever is about to decide by it.
    pub(crate) fn decided(&self, row: Mark) -> Result<Moment, StoreError> {
        let looked = self.looked(row)?;
        serving(&self.state(), looked)
    }

    fn judge(&self, state: &mut State, row: Mark, boottime: Duration) -> Result<Looked, StoreError> {
        let is_fresh = |heard: Duration| boottime.saturating_sub(heard) <= FRESH;
        let Some(estimate) = state.estimate.filter(|_| state.heard.is_some_and(is_fresh)) else {
            return Err(StoreError::Unavailable("the service's answers do not say what time it is".into()));
        };
        let claimed = estimate.earliest(boottime);
        let monotonic = self.0.clock.monotonic();
        let readings = Readings { claimed, sent: boottime, boottime, monotonic, told: None };
        let told = state.keeper.judge(row, &readings);
        state.wrong = told.wrong.map(reason);
        state.differs = !told.mark.agrees_with(&row) && told.wrong.is_none();
        if state.differs {
            self.0.differs.notify_one();
        }
        if let Some(turn) = told.turn {
            Source::Server.log(turn);
        }
        Ok(Looked { row, claimed, told, width: estimate.width() })
    }

    /// The table is not one that may be worked with, or is again.
    pub(crate) fn refuse(&self, why: Option<String>) {
        self.state().refused = why;
    }

    /// Returns once the row has to be written, or looked at because nobody else did.
    pub(crate) async fn due(&self) {
        // Whoever serves nothing looks often, and serves as soon as the clock is right.
        let is_idle = {
            let state = self.state();
            state.wrong.is_some() || state.refused.is_some()
        };
        let period = if is_idle { self.period().min(SOON) } else { self.period() };
        let _late = tokio::time::timeout(period, self.0.differs.notified()).await;
    }

    /// An operator says that the service's clock is right, though it is behind the row's mark.
    pub(crate) fn accept_behind(&self) {
        let mut state = self.state();
        state.keeper.accept_behind();
        state.wrong = None;
    }

    /// What the row is to say now, if that is something else than it does.
    pub(crate) fn to_write(&self, looked: &Looked, accept: bool) -> Option<Mark> {
        let Looked { row, told, claimed, .. } = looked;
        let ends = self.is_synchronised(*claimed) || accept;
        if told.wrong.is_some() {
            None
        } else if ends && told.now.is_held() {
            Some(self.state().keeper.accepting(told))
        } else {
            // Of several instances one does it: a mark of half a minute is fresh enough for the others.
            let age = told.mark.at.saturating_sub(row.at).unsigned_abs();
            let is_old = u128::from(age) >= MARKED.as_millis() / 2;
            (row.at <= 0 || is_old || !told.mark.agrees_with(row)).then_some(told.mark)
        }
    }

    /// Whether this machine's kernel has reported a synchronised clock for as long as a hold lasts, and the service's clock agrees with that.
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

    pub(crate) fn report(&self, looked: &Looked) -> ClockReport {
        let Looked { told, claimed, .. } = looked;
        let mut report = ClockReport::trusted(told.now.earliest, self.0.terms);
        (report.latest, report.claimed) = (told.now.latest, Timestamp::from_millis(*claimed));
        report.synchronised = self.0.clock.synchronised();
        report.synchronised_for = self.state().keeper.watched_for();
        report.wrong = told.wrong.map(reason);
        report
    }

    /// Says by whose word the service's clock is believed.
    pub(crate) fn announce(&self) {
        let (trust, synchronised) = (self.0.terms.trust.as_str(), self.0.clock.synchronised());
        match synchronised {
            Some(synchronised) => tracing::info!(trust, synchronised, "clock"),
            None => tracing::warn!(
                trust,
                "clock: this machine's kernel does not report whether its clock is synchronised; a clock hold ends when the service's clock comes back, or by `semel clock accept`"
            ),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A few numbers that are each valid at any time.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serving(state: &State, looked: Looked) -> Result<Moment, StoreError> {
    match state.refused.as_ref().or(state.wrong.as_ref()) {
        Some(why) => Err(StoreError::Unavailable(why.clone())),
        None => Ok(looked.moment()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    /// A machine that is up for this long.
    struct Up(Duration);

    impl Clock for Up {
        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            self.0
        }

        fn boottime(&self) -> Duration {
            self.0
        }

        fn synchronised(&self) -> Option<bool> {
            None
        }
    }

    #[test]
    fn windows_are_stamped_from_the_latest_time_that_a_date_leaves_open_and_judged_by_the_earliest() {
        let clock = StoreClock::new(Arc::new(Up(Duration::from_secs(100))), Terms::default());
        assert!(clock.now().is_none(), "nobody has said what time it is");
        assert!(clock.decided(Mark::NONE).is_err());
        // Sent 40 ms ago; the service wrote its date some time between, and cut off up to 999 ms.
        clock.heard(1_800_000_000_000, 999, Duration::from_millis(99_960));
        let moment = clock.decided(Mark::NONE).unwrap();
        assert_eq!(moment.told.earliest, Timestamp::from_millis(1_800_000_000_000));
        assert_eq!(moment.told.latest, moment.told.earliest, "no clock hold is open");
        assert_eq!(moment.stamp().latest, moment.told.earliest.plus(Duration::from_millis(1_039)));
        assert_eq!(moment.stamp().earliest, moment.told.earliest);
    }
}
