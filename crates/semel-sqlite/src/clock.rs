//! What time it is: the machine's clock, as far as it is believed.
//!
//! [`Keeper`] decides, given the file's row and what the machine's clocks say; docs/decisions/clock.md says why. Every transaction reads the
//! row, and every one that writes leaves it: processes that share the file share its time, and see whether a clock hold is open.

use semel::StoreError;
use semel::clock::{Clock, ClockReport, Keeper, Mark, Source, Terms, Told, Wrong};
use semel::{OperationId, Timestamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a mark is left in the file at least, also when idle.
pub(crate) const MARKED: Duration = Duration::from_secs(60);

/// The clock of one open store.
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    keeper: Mutex<Keeper>,
    terms: Terms,
}

impl StoreClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, terms: Terms) -> Self {
        let keeper = Mutex::new(Keeper::new(terms, process()));
        Self { clock, keeper, terms }
    }

    /// What is believed, given the file's row. The clocks are read under the lock, so that time never goes back from one to the next.
    pub(crate) fn look(&self, row: Mark) -> Told {
        let mut keeper = self.keeper();
        let readings = self.clock.readings();
        let told = keeper.judge(row, &readings);
        drop(keeper);
        if let Some(turn) = told.turn {
            Source::Machine.log(turn);
        }
        told
    }

    /// The same, for work that depends on it: an error if the clock is wrong.
    pub(crate) fn judge(&self, row: Mark) -> Result<Told, StoreError> {
        let told = self.look(row);
        match told.wrong {
            Some(wrong) => Err(StoreError::Unavailable(reason(wrong))),
            None => Ok(told),
        }
    }

    /// Whether the kernel has reported a synchronised clock for as long as a hold lasts, which is asked once in a while.
    pub(crate) fn is_synchronised(&self) -> bool {
        let synchronised = self.clock.synchronised() == Some(true);
        let mut keeper = self.keeper();
        keeper.watch(synchronised, self.clock.boottime(), self.period() * 3)
    }

    /// An operator says that the clock is right, though it is behind the file's mark.
    pub(crate) fn accept_behind(&self) {
        self.keeper().accept_behind();
    }

    /// The row that ends a hold.
    pub(crate) fn accepting(&self, told: &Told) -> Mark {
        self.keeper().accepting(told)
    }

    /// How often the clock is looked at when no request does.
    pub(crate) fn period(&self) -> Duration {
        (self.terms.hold / 10).clamp(Duration::from_millis(100), MARKED)
    }

    pub(crate) fn report(&self, told: &Told) -> ClockReport {
        let mut report = ClockReport::trusted(told.now.earliest, self.terms);
        report.latest = told.now.latest;
        report.claimed = Timestamp::from_millis(self.clock.wall_millis());
        report.synchronised = self.clock.synchronised();
        report.synchronised_for = self.keeper().watched_for();
        report.wrong = told.wrong.map(reason);
        report
    }

    /// Says by whose word the clock is believed.
    pub(crate) fn announce(&self) {
        let Terms { trust, .. } = self.terms;
        let (trust, synchronised) = (trust.as_str(), self.clock.synchronised());
        match synchronised {
            Some(synchronised) => tracing::info!(trust, synchronised, "clock"),
            None => tracing::warn!(
                trust,
                "clock: the kernel does not report whether it is synchronised; a clock hold ends when the clock comes back, or by `semel clock accept`"
            ),
        }
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        // It is a few numbers that are each valid at any time: a panic elsewhere leaves nothing half done.
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random number that tells this process's marks from those of others.
fn process() -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&OperationId::random().as_bytes()[8..]);
    // Zero stands for no process.
    i64::from_le_bytes(bytes).max(i64::MIN + 1).abs().max(1)
}

/// Why nothing is served.
pub(crate) fn reason(wrong: Wrong) -> String {
    Source::Machine.reason(wrong)
}
