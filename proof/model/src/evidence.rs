//! Evidence as it is in real life: late, partial and repeated.
//!
//! Whoever looked into attempt n may speak when attempt n + 1 is there, and may not say which attempt it was. A provider's message is
//! delivered any number of times, long after what it tells of, by operation id or by the client's key alone. A question may be answered
//! by somebody else than the provider. What is known ([`Proof`]) and what is named of it ([`Names`]) are two things.
//!
//! None of this takes room in the state: what a provider may have told follows from its ledger for good.

use crate::config::Config;
use crate::mutants::Mutant;
use crate::proof::{Finding, Names, Proof};
use crate::provider::{SETTLED, SETTLED_FAILURE};
use crate::reached::Event;
use crate::state::{Book, Settler, World, Writer};
use crate::turn::Turn;
use semel::State;

/// A provider's message about something that it knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// What it knows.
    pub proof: Proof,
    /// What the message names of it.
    pub names: Names,
}

/// Who answers a poll.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answerer {
    /// The provider.
    Provider,
    /// Somebody on the way who has never heard of any operation: a proxy's own 404.
    Stranger,
    /// A cache: what the provider said about an earlier attempt.
    Cache,
}

/// Everything that a provider with these books may tell about: what was carried out, declined and refused, of whichever operation and
/// attempt, however long ago.
fn known(books: &[Book]) -> impl Iterator<Item = Proof> {
    books.iter().enumerate().flat_map(|(op, book)| {
        let op = op as u8;
        let happened = (book.effects > 0).then_some((1, Finding::Completed(Some(SETTLED))));
        let declined = (book.declined > 0).then_some((book.declined, Finding::Failed(Some(SETTLED_FAILURE))));
        let refused = (1..=book.refused).map(|attempt| (attempt, Finding::Absent));
        let all = happened.into_iter().chain(declined).chain(refused);
        all.map(move |(attempt, finding)| Proof { op, attempt, finding })
    })
}

/// The messages that may be delivered now, for the first time or again.
pub(crate) fn messages(world: &World) -> impl Iterator<Item = Message> {
    // Evidence moves unknown alone, whoever brings it; what else it meets is played with the reconciler and the operator.
    let unknown = world.record.is_some_and(|kept| kept.state == State::Unknown);
    known(if unknown { &world.books } else { &[] }).flat_map(|proof| {
        let names: &[Names] = match proof.finding {
            // Of whichever attempt it is true, it is true of the operation.
            Finding::Completed(_) => &[Names::Operation, Names::Key],
            _ => &[Names::Attempt, Names::Operation, Names::Key],
        };
        names.iter().map(move |names| Message { proof, names: *names })
    })
}

/// Who may answer a question about an attempt.
pub(crate) fn answerers(config: &Config, world: &World) -> impl Iterator<Item = Answerer> {
    let Settler::Asking { op, attempt, .. } = world.reconciler else {
        return [None; 3].into_iter().flatten();
    };
    // Where absence is no proof, a stranger cannot say anything.
    let stranger = config.absence_is_proof.then_some(Answerer::Stranger);
    let refused = world.books[usize::from(op)].refused;
    let cache = (refused > 0 && refused < attempt).then_some(Answerer::Cache);
    [Some(Answerer::Provider), stranger, cache].into_iter().flatten()
}

impl Turn<'_> {
    /// What an answer to a poll proves: nothing, unless it is the provider's own and about this very attempt.
    pub(crate) fn answer(&mut self, answerer: Answerer, op: u8, attempt: u8) -> Option<Proof> {
        let believed = match answerer {
            Answerer::Provider => return self.ask(op, attempt),
            Answerer::Stranger => {
                self.note(Event::StrangersAnswer);
                self.rules.is(Mutant::AnyAbsenceBelieved)
            }
            Answerer::Cache => self.rules.is(Mutant::EchoIgnored),
        };
        believed.then_some(Proof { op, attempt, finding: Finding::Absent })
    }

    /// A message is delivered. The intake reads, decides and swaps in one step, as the lease watch does. One that settles nothing is kept
    /// in the history: see [`remark`](Self::remark).
    pub(crate) fn deliver(&mut self, message: Message) -> Option<()> {
        let found = self.world.record?;
        if message.names == Names::Key {
            self.note(Event::MessageByKey);
        }
        let next = self.rules.settle(&found, &message.proof, message.names).ok()?;
        self.note(Event::MessageSettles);
        self.write(next, Writer::Settler(message.proof));
        Some(())
    }

    /// The operator says what they know and does not name the attempt. Whoever is refused may still name it.
    pub(crate) fn say_without_attempt(&mut self) -> Option<()> {
        let Settler::Settling { proof, .. } = self.world.operator else { return None };
        let found = self.world.record?;
        let next = self.rules.settle(&found, &proof, Names::Operation).ok()?;
        self.write(next, Writer::Settler(proof));
        self.world.operator = Settler::Idle;
        Some(())
    }

    /// Evidence that settles nothing is written into the history: whoever has read the record before finds another version.
    pub(crate) fn remark(&mut self) -> Option<()> {
        let next = self.rules.remark(&self.world.record?).ok()?;
        self.write(next, Writer::Remark);
        Some(())
    }
}
