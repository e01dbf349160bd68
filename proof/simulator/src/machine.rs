//! The clocks of a machine. They go by tokio's clock, which is virtual and true, and each may be wrong in its own way.

use semel::clock::{Clock, Readings};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// A machine: a wall clock that can step and drift, and two steady clocks, one of which stands still while the machine is suspended. Clones are
/// the same machine.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// When tokio's clock began to move this one; `None`: it is moved by hand alone.
    begun: Option<Instant>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Milliseconds that have passed besides those of tokio's clock.
    passed: i64,
    /// By how many milliseconds the wall clock is ahead of the true time, besides its drift.
    ahead: i64,
    wall: Rate,
    steady: Rate,
    /// When the machine stood still, and until when, in milliseconds of true time.
    suspended: Vec<(i64, i64)>,
    /// When it stood still so that none of its clocks but the wall clock knows of it: a virtual machine that was paused.
    paused: Vec<(i64, i64)>,
    synchronised: bool,
    /// Every step ahead of the wall clock, in milliseconds.
    ahead_by: Vec<i64>,
}

/// By how much a clock has drifted, and how fast it does.
#[derive(Clone, Copy, Default, Debug)]
struct Rate {
    drifted: i64,
    since: i64,
    millionths: i64,
}

impl Rate {
    fn by(self, elapsed: i64) -> i64 {
        self.drifted + (elapsed - self.since).saturating_mul(self.millionths) / 1_000_000
    }

    fn set(&mut self, millionths: i64, elapsed: i64) {
        *self = Self { drifted: self.by(elapsed), since: elapsed, millionths };
    }
}

/// What the wall clock says in the beginning, in milliseconds since 1970.
pub(crate) const EPOCH: i64 = 1_800_000_000_000;

/// By how much a clock may be off without being wrong, in milliseconds: less than that is discipline.
pub(crate) const DISCIPLINE: i64 = 2_000;

/// By how much a clock may be off, in milliseconds, which an operator who looks at another one says is right.
pub(crate) const LOOKS_RIGHT: i64 = 1_000;

/// How long a machine has been up by then.
const UPTIME: Duration = Duration::from_secs(86_400);

impl Machine {
    /// A machine whose clocks are right.
    #[must_use]
    pub fn new() -> Self {
        Self::since(Some(Instant::now()))
    }

    /// The same, with clocks that stand still until they are moved.
    #[must_use]
    pub fn by_hand() -> Self {
        Self::since(None)
    }

    fn since(begun: Option<Instant>) -> Self {
        let state = State {
            passed: 0,
            ahead: 0,
            wall: Rate::default(),
            steady: Rate::default(),
            suspended: Vec::new(),
            paused: Vec::new(),
            synchronised: true,
            ahead_by: Vec::new(),
        };
        Self(Arc::new(Inner { begun, state: Mutex::new(state) }))
    }

    /// Whether both are the same machine.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sets the wall clock ahead, or back. Nobody is told that it is right.
    pub fn step(&self, millis: i64) {
        let mut state = self.state();
        state.ahead += millis;
        state.synchronised = false;
        state.ahead_by.extend((millis > 0).then_some(millis));
    }

    /// Has the wall clock run too fast by so many millionths.
    pub fn drift(&self, millionths: i64) {
        let elapsed = self.elapsed();
        self.state().wall.set(millionths, elapsed);
    }

    /// Has the steady clocks run too fast by so many millionths.
    pub fn drift_steadily(&self, millionths: i64) {
        let elapsed = self.elapsed();
        self.state().steady.set(millionths, elapsed);
    }

    /// Lets time pass on all clocks at once.
    pub fn forward(&self, by: Duration) {
        self.state().passed += millis(by);
    }

    /// The machine is suspended from now on for so long: its boot time goes on.
    pub(crate) fn suspend(&self, span: Duration) {
        let now = self.elapsed();
        self.state().suspended.push((now, now + millis(span)));
    }

    /// The virtual machine is paused from now on for so long: its boot time does not go on.
    pub(crate) fn pause(&self, span: Duration) {
        let now = self.elapsed();
        self.state().paused.push((now, now + millis(span)));
    }

    /// Puts the wall clock right, and has all clocks run as they should.
    pub fn put_right(&self) {
        let elapsed = self.elapsed();
        let mut state = self.state();
        let off = state.ahead + state.wall.by(elapsed);
        state.ahead_by.extend((off < 0).then_some(-off));
        (state.ahead, state.wall) = (0, Rate::default());
        state.steady.set(0, elapsed);
        state.synchronised = true;
    }

    /// Every step ahead that the wall clock ever made, in milliseconds.
    pub(crate) fn steps_ahead(&self) -> Vec<i64> {
        self.state().ahead_by.clone()
    }

    /// What the wall clock would say if it were right.
    pub(crate) fn true_millis(&self) -> i64 {
        EPOCH + self.elapsed()
    }

    /// What a store reads that goes by `server`'s time of day, and is asked from this machine.
    pub(crate) fn readings_of(&self, server: &Self) -> Readings {
        Readings { claimed: server.wall_millis(), ..self.readings() }
    }

    /// By how much the wall clock is ahead of the true time.
    pub(crate) fn off(&self) -> i64 {
        self.wall_millis() - self.true_millis()
    }

    /// For how long it has stood still so far without its boot time knowing of it, in milliseconds.
    pub(crate) fn paused(&self) -> i64 {
        let elapsed = self.elapsed();
        stood_still(&self.state().paused, elapsed)
    }

    /// The true time since the beginning, in milliseconds.
    fn elapsed(&self) -> i64 {
        self.0.begun.map_or(0, |begun| millis(begun.elapsed())) + self.state().passed
    }

    /// The time since the machine was started, without those spans.
    fn steady(&self, without: impl Fn(&State) -> i64) -> Duration {
        let elapsed = self.elapsed();
        let state = self.state();
        let steady = elapsed + state.steady.by(elapsed) - without(&state);
        UPTIME + Duration::from_millis(u64::try_from(steady).unwrap_or(0))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Machine {
    fn wall(&self) -> SystemTime {
        let elapsed = self.elapsed();
        let state = self.state();
        let millis = EPOCH + elapsed + state.wall.by(elapsed) + state.ahead;
        let by = Duration::from_millis(millis.unsigned_abs());
        if millis < 0 { SystemTime::UNIX_EPOCH - by } else { SystemTime::UNIX_EPOCH + by }
    }

    fn monotonic(&self) -> Duration {
        let elapsed = self.elapsed();
        self.steady(|state| stood_still(&state.suspended, elapsed) + stood_still(&state.paused, elapsed))
    }

    fn boottime(&self) -> Duration {
        let elapsed = self.elapsed();
        self.steady(|state| stood_still(&state.paused, elapsed))
    }

    fn synchronised(&self) -> Option<bool> {
        Some(self.state().synchronised)
    }
}

/// How long it stood still until now, in all. Spans that overlap count once.
fn stood_still(spans: &[(i64, i64)], now: i64) -> i64 {
    let mut until = i64::MIN;
    let mut sum = 0;
    for (from, to) in spans {
        let (from, to) = ((*from).max(until), (*to).min(now));
        sum += (to - from).max(0);
        until = until.max(to);
    }
    sum
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspended_machine_knows_by_its_boot_time_and_a_paused_one_by_its_wall_clock_alone() {
        let machine = Machine::by_hand();
        let read = || (machine.true_millis(), machine.wall_millis(), machine.boottime(), machine.monotonic());
        let (begun, second) = (read(), Duration::from_secs(1));
        machine.suspend(second);
        machine.forward(second * 2);
        assert_eq!(read(), (begun.0 + 2_000, begun.1 + 2_000, begun.2 + second * 2, begun.3 + second));
        machine.pause(second);
        machine.forward(second);
        assert_eq!(read(), (begun.0 + 3_000, begun.1 + 3_000, begun.2 + second * 2, begun.3 + second));
    }

    #[test]
    fn a_clock_that_is_put_right_says_the_true_time_and_what_it_did_is_known() {
        let machine = Machine::by_hand();
        machine.step(-500);
        machine.drift(10_000);
        machine.drift_steadily(-10_000);
        machine.forward(Duration::from_secs(10));
        assert_eq!(machine.wall_millis(), machine.true_millis() - 400);
        assert_eq!(machine.boottime(), UPTIME + Duration::from_millis(9_900));
        machine.put_right();
        assert_eq!((machine.wall_millis(), machine.steps_ahead()), (machine.true_millis(), vec![400]));
        machine.forward(Duration::from_secs(10));
        assert_eq!(machine.boottime(), UPTIME + Duration::from_millis(19_900));
    }
}
