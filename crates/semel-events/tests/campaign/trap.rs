//! Places at which a process says that it is there, so that it, or the broker, is killed there.

use std::sync::Mutex;

/// What the process says.
pub(crate) const REACHED: &str = "reached the trap";

/// A place that both kinds of process come by once for each event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// It has an event, and has done nothing about it.
    Before,
    /// Of the consumer alone: rows are written, and not committed.
    InTransaction,
    /// Of the consumer alone: one of several effects is committed.
    BetweenEffects,
    /// It is sent and confirmed, or booked and committed; who asked for it has not heard so.
    After,
}

const PLACES: [Place; 4] = [Place::Before, Place::InTransaction, Place::BetweenEffects, Place::After];

/// One trap: the `count`th that comes by says so. Then it goes no further, or does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trap {
    pub(crate) place: Place,
    pub(crate) count: usize,
    pub(crate) holds: bool,
}

impl Trap {
    /// As an argument.
    pub(crate) fn text(self) -> String {
        let place = PLACES.iter().position(|place| *place == self.place).unwrap();
        format!("{place}:{}:{}", self.count, self.holds)
    }

    fn of_text(text: &str) -> Self {
        let [place, count, holds] = text.split(':').collect::<Vec<_>>().try_into().unwrap();
        let place = PLACES[place.parse::<usize>().unwrap()];
        Self { place, count: count.parse().unwrap(), holds: holds.parse().unwrap() }
    }
}

/// The traps of a process: the second one counts from when the first was reached.
pub(crate) struct Traps(Mutex<Vec<Trap>>);

impl Traps {
    /// Of arguments.
    pub(crate) fn of_texts<'a>(texts: impl DoubleEndedIterator<Item = &'a str>) -> Self {
        Self(Mutex::new(texts.rev().map(Trap::of_text).collect()))
    }

    /// Comes by.
    pub(crate) async fn at(&self, place: Place) {
        if self.holds_at(place) {
            std::future::pending::<()>().await;
        }
    }

    /// The same where nothing can be awaited.
    pub(crate) fn at_blocking(&self, place: Place) {
        if self.holds_at(place) {
            loop {
                std::thread::park();
            }
        }
    }

    #[allow(clippy::print_stdout, reason = "the parent listens")]
    fn holds_at(&self, place: Place) -> bool {
        let mut traps = self.0.lock().unwrap();
        let Some(next) = traps.last_mut().filter(|trap| trap.place == place) else { return false };
        next.count -= 1;
        if next.count > 0 {
            return false;
        }
        let holds = next.holds;
        traps.pop();
        // On a line of its own, whatever the test runner has begun to print.
        println!("\n{REACHED}");
        holds
    }
}
