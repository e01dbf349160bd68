//! The description of a store that its test file gives to the kit.

use semel::{ManualClock, Store, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// A store under test, with all that is needed to make one, reach it twice, and close and open it again.
///
/// Nothing has a default: the test file states what a store cannot do, and each rule that is skipped for that prints it on the
/// terminal.
pub trait Subject: Send + Sync + Sized + 'static {
    /// A new store that holds nothing and shares nothing with any other.
    fn fresh() -> impl Future<Output = Self> + Send;

    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Another instance over the same data, as another process would have it: for a database another pool or connection, never a
    /// clone that shares the first one's.
    fn another(&self) -> impl Future<Output = Result<Arc<dyn Store>, Lacking>> + Send;

    /// The same data after everything was closed and opened again. `self` holds the last handle.
    fn reopened(self) -> impl Future<Output = Result<Self, Lacking>> + Send;

    /// Whether records in use can be written in another key format. The one thing with a default, which asks for it: a store whose records are
    /// not written in one atomic step refuses it, and says why.
    fn respells(&self) -> Result<(), Lacking> {
        Ok(())
    }

    /// The hands of the store's clock. Without them the kit waits some tens of milliseconds where time has to pass.
    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking>;
}

/// What a store does not have, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lacking(pub &'static str);

/// A clock that a test can move.
pub trait Hands: Send + Sync {
    /// Lets time pass.
    fn forward(&self, by: Duration);

    /// Has the clock jump ahead, without time passing.
    fn jump(&self, by: Duration);

    /// Takes such a jump back.
    fn come_back(&self, by: Duration);

    /// Sets the clock back, as an administrator or a bad time server would.
    fn back(&self, by: Duration);
}

impl Hands for ManualClock {
    fn forward(&self, by: Duration) {
        self.advance(by);
    }

    fn jump(&self, by: Duration) {
        Self::jump(self, by);
    }

    fn come_back(&self, _by: Duration) {
        Self::come_back(self);
    }

    fn back(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).expect("tests set a clock back by hours at most");
        self.set(Timestamp::from_millis(self.now().as_millis() - millis));
    }
}
