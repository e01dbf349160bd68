//! The owner of an attempt: works, and says how it ended, until that is stored or it is fenced.

use crate::kept::{Kept, NOBODY, Token};
use crate::reached::Event;
use crate::rules::Verdict;
use crate::state::{Call, Delayed, Holding, Task, Writer};
use crate::turn::{Fate, Turn};
use crate::work::{Deed, Stage};
use semel::State;
use semel::transition::Refusal;

impl Holding {
    /// The owner goes on. Once there is one thing left to say, it is on its way.
    pub(crate) const fn goes_on(self) -> Task {
        match self.stage {
            Stage::Done => Task::Acting(self, Deed::Complete),
            Stage::Declined => Task::Acting(self, Deed::Fail),
            _ => Task::Own(self),
        }
    }
}

impl Turn<'_> {
    /// The owner calls the provider.
    pub(crate) fn call(&mut self, slot: usize) {
        if let Task::Own(holding) = &mut self.world.tasks[slot] {
            holding.stage = Stage::Calling;
            let (op, attempt) = (holding.op, holding.attempt);
            let altered = self.rules.alters(slot);
            self.world.calls.push(Call { op, attempt, altered, caller: slot as Token });
        }
    }

    /// The owner sends a write on its way.
    pub(crate) fn decide(&mut self, slot: usize, deed: Deed) {
        if let Task::Own(holding) = self.world.tasks[slot] {
            self.world.tasks[slot] = Task::Acting(holding, deed);
        }
    }

    /// The pending write of an owner meets its fate. One whose answer is lost is sent again, on the record as last seen.
    pub(crate) fn act(&mut self, slot: usize, fate: Fate) {
        let Task::Acting(holding, deed) = self.world.tasks[slot] else { return };
        let claim = (holding.op, holding.attempt, slot as Token);
        let writer = Writer::Owner(claim.0, claim.1, claim.2, deed);
        let Some(found) = self.world.record else {
            return if fate == Fate::Answered {
                self.refused(slot, holding, deed, Refusal::Fenced)
            };
        };
        match (self.rules.act(&found, claim, deed), fate) {
            (Ok(next), Fate::Late) => {
                if holding.fresh {
                    self.world.delayed.push(Delayed::Write(next, writer));
                }
            }
            (Ok(_), _) if !holding.fresh => {
                // The store says what is there instead; it is decided again on that.
                self.world.tasks[slot] = Task::Acting(Holding { fresh: true, ..holding }, deed);
            }
            (Ok(next), fate) => {
                self.write(next, writer);
                if found.state == State::Unknown && deed == Deed::Complete {
                    self.note(Event::LateCompletion);
                }
                match fate {
                    Fate::AnswerLost => {}
                    _ => self.acted(slot, holding, deed),
                }
                if fate == Fate::Doubled && self.world.tasks[slot] != Task::Idle {
                    self.world.stray = Some(slot as Token);
                }
            }
            (Err(_), Fate::Late) => {}
            (Err(refusal), _) => {
                self.world.tasks[slot] = Task::Acting(Holding { fresh: true, ..holding }, deed);
                self.refused(slot, holding, deed, refusal);
            }
        }
    }

    /// The store has answered that the write is done.
    pub(crate) fn acted(&mut self, slot: usize, holding: Holding, deed: Deed) {
        let goes_on = |stage| Holding { fresh: true, stage, ..holding }.goes_on();
        match deed {
            Deed::Extend => self.world.tasks[slot] = goes_on(holding.stage),
            Deed::Advance => self.world.tasks[slot] = goes_on(Stage::Pointed),
            Deed::Complete | Deed::Fail => {
                self.tell(holding.op, deed.body(holding.attempt));
                self.world.end(slot);
            }
            Deed::Retryable | Deed::Release | Deed::Doubt => self.world.end(slot),
        }
    }

    fn refused(&mut self, slot: usize, holding: Holding, deed: Deed, refusal: Refusal) {
        let fresh = Holding { fresh: true, ..holding };
        match (refusal, deed) {
            // The lease cannot be extended; the work goes on, and its end is told if it still may be.
            (Refusal::InDoubt | Refusal::Fenced, Deed::Extend) => {
                self.world.tasks[slot] = fresh.goes_on();
            }
            // Its own word is there: the answer was lost, and the word was not.
            (Refusal::Finished, Deed::Complete | Deed::Fail) | (Refusal::AlreadyAdvanced, Deed::Advance) => {
                self.note(Event::ReadBackOurs);
                self.acted(slot, holding, deed);
            }
            (Refusal::PastRecoveryPoint, _) => self.world.tasks[slot] = Task::Acting(fresh, Deed::Retryable),
            (Refusal::TookOverDoubt, _) => self.world.tasks[slot] = Task::Acting(fresh, Deed::Doubt),
            // Somebody else settled it: the client gets what is there, if it is an answer.
            (Refusal::Fenced, Deed::Complete | Deed::Fail) => {
                if let Some(found) = self.world.record
                    && let Verdict::Replay(body) = self.rules.arrive(&found, slot)
                {
                    self.tell(found.op, body);
                }
                self.world.end(slot);
            }
            _ => self.world.end(slot),
        }
    }

    /// A process crashes and forgets. What it had sent may still be carried out.
    pub(crate) fn crash(&mut self, slot: usize) {
        let token = slot as Token;
        let delayed = match self.world.tasks[slot] {
            Task::Creating => Some(Delayed::Create(token, self.rules.alters(slot))),
            Task::Taking(next) => {
                next.map(|next| Delayed::Write(Some(Kept { owner: token, ..next }), Writer::Request(token)))
            }
            Task::Doubting(next) => next.map(|next| Delayed::Write(Some(next), Writer::Request(NOBODY))),
            Task::Forgetting { fresh } => fresh.then_some(Delayed::Write(None, Writer::Request(NOBODY))),
            Task::Acting(holding, deed) if holding.fresh => self.world.record.and_then(|found| {
                let claim = (holding.op, holding.attempt, token);
                let next = self.rules.act(&found, claim, deed).ok()?;
                Some(Delayed::Write(next, Writer::Owner(claim.0, claim.1, claim.2, deed)))
            }),
            _ => None,
        };
        self.world.delayed.extend(delayed);
        self.world.end(slot);
    }
}
