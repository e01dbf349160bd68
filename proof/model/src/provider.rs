//! The provider: carries calls out, and counts.

use crate::proof::{Finding, Proof};
use crate::rule::Rule;
use crate::state::Task;
use crate::turn::Turn;
use crate::work::Stage;

/// The answers that evidence brings, unlike any owner's.
pub(crate) const SETTLED: u8 = 50;
pub(crate) const SETTLED_FAILURE: u8 = 150;

/// What becomes of a call to the provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Landing {
    /// It arrives.
    Arrives,
    /// It arrives and is declined for good.
    Declined,
    /// It never arrives.
    Vanishes,
}

impl Turn<'_> {
    /// A call comes to its end. If its caller still waits, it is answered; a lost answer is a caller that waits no more.
    pub(crate) fn land(&mut self, index: usize, landing: Landing) {
        let call = self.world.calls.remove(index);
        let book = &mut self.world.books[usize::from(call.op)];
        let other_body = book.altered != call.altered;
        let stage = match landing {
            Landing::Vanishes => return,
            _ if call.attempt <= book.refused => Stage::Refused,
            _ if self.config.deduplicates && book.effects > 0 => Stage::Done,
            _ if self.config.deduplicates && book.declined > 0 => Stage::Declined,
            Landing::Declined => {
                book.declined = call.attempt;
                Stage::Declined
            }
            Landing::Arrives => {
                book.effects += 1;
                if other_body {
                    self.break_rule(Rule::MismatchServed);
                }
                Stage::Done
            }
        };
        let Some(task) = self.world.tasks.get_mut(usize::from(call.caller)) else { return };
        if let Task::Own(holding) | Task::Acting(holding, _) = task
            && holding.stage == Stage::Calling
        {
            holding.stage = stage;
            if let Task::Own(holding) = *task {
                *task = holding.goes_on();
            }
        }
    }

    /// What the provider says when it is asked about an attempt; `None`: nothing that is evidence.
    pub(crate) fn ask(&mut self, op: u8, attempt: u8) -> Option<Proof> {
        let (deduplicates, absence_is_proof) = (self.config.deduplicates, self.config.absence_is_proof);
        let book = &mut self.world.books[usize::from(op)];
        let finding = if book.effects > 0 {
            Finding::Completed(Some(SETTLED))
        } else if book.declined == attempt || (deduplicates && book.declined > 0) {
            Finding::Failed(Some(SETTLED_FAILURE))
        } else if absence_is_proof {
            book.refused = book.refused.max(attempt);
            Finding::Absent
        } else {
            return None;
        };
        Some(Proof { op, attempt, finding })
    }

    /// What an operator finds out who looks into everything: "not executed" only where nobody is left who could still do it.
    pub(crate) fn look_into(&self, op: u8, attempt: u8) -> Option<Proof> {
        let book = &self.world.books[usize::from(op)];
        let quiet = self.effects_need_the_record()
            || (self.world.calls.iter().all(|call| call.op != op || call.attempt <= book.refused)
                && self.world.tasks.iter().all(|task| match task {
                    Task::Own(holding) | Task::Acting(holding, _) => {
                        holding.op != op || matches!(holding.stage, Stage::Declined | Stage::Refused)
                    }
                    _ => true,
                }));
        let finding = if book.effects > 0 {
            Finding::Completed(None)
        } else if book.declined == attempt {
            Finding::Failed(None)
        } else if quiet {
            Finding::NotExecuted
        } else {
            return None;
        };
        Some(Proof { op, attempt, finding })
    }

    /// Effects are in the completing transaction: whoever is fenced can do nothing any more.
    fn effects_need_the_record(&self) -> bool {
        self.config.policy.stale == semel::Stale::Rerun
    }
}
