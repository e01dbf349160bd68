//! Whoever comes by on their own: the lease watch, the reconciler, the operator, the reaper.

use crate::evidence::Answerer;
use crate::kept::{Moment, Reply};
use crate::proof::Names;
use crate::reached::Event;
use crate::state::{Delayed, Settler, Writer};
use crate::turn::{Fate, Turn};
use semel::{DueKind, Expired, State};

/// Which of those who settle doubt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Who {
    /// By asking the provider.
    Reconciler,
    /// By looking into it.
    Operator,
}

impl Turn<'_> {
    fn settler(&mut self, who: Who) -> &mut Settler {
        match who {
            Who::Reconciler => &mut self.world.reconciler,
            Who::Operator => &mut self.world.operator,
        }
    }

    /// The lease watch reads, decides and swaps. (In one step: a swap that loses on the version does nothing, and one that wins
    /// was decided on what is there.)
    pub(crate) fn watch(&mut self) -> Option<()> {
        let next = self.rules.watch(&self.world.record?).ok()?;
        self.write(next, Writer::Watch);
        Some(())
    }

    /// The reaper likewise.
    pub(crate) fn reap(&mut self) -> Option<()> {
        let next = self.rules.reap(&self.world.record?).ok()?;
        self.write(next, Writer::Reaper);
        Some(())
    }

    /// The reconciler takes it upon itself to ask; if it never hears whether it has, it does not.
    pub(crate) fn claim(&mut self, fate: Fate) -> Option<()> {
        let next = self.rules.poll(&self.world.record?).ok()??;
        self.write(Some(next), Writer::Poll);
        if next.dead_letter {
            self.note(Event::DeadLetter);
        } else if fate == Fate::Answered {
            self.world.reconciler = Settler::Asking { op: next.op, attempt: next.attempt, fresh: true };
        }
        Some(())
    }

    /// The reconciler asks, hears this one's answer, and decides on the record that its claim left.
    pub(crate) fn question(&mut self, answerer: Answerer) {
        let Settler::Asking { op, attempt, fresh } = self.world.reconciler else { return };
        self.world.reconciler = Settler::Idle;
        let Some(proof) = self.answer(answerer, op, attempt) else { return };
        let refuses = |found| self.rules.settle(&found, &proof, Names::Attempt).is_err();
        let refused = fresh && self.world.record.is_some_and(refuses);
        if !refused {
            self.world.reconciler = Settler::Settling { proof, fresh };
        }
    }

    /// The operator looks into an unknown outcome.
    pub(crate) fn look(&mut self) -> Option<()> {
        let found = self.world.record.filter(|kept| kept.state == State::Unknown)?;
        let proof = self.look_into(found.op, found.attempt)?;
        self.world.operator = Settler::Settling { proof, fresh: true };
        Some(())
    }

    /// The swap of a settler who names the attempt meets its fate. It is sent again if its answer is lost.
    pub(crate) fn settle(&mut self, who: Who, fate: Fate) {
        let Settler::Settling { proof, fresh } = *self.settler(who) else { return };
        let decided =
            self.world.record.and_then(|found| self.rules.settle(&found, &proof, Names::Attempt).ok());
        match (decided, fresh, fate) {
            (Some(next), true, Fate::Late) => {
                self.world.delayed.push(Delayed::Write(next, Writer::Settler(proof)));
            }
            (Some(next), true, _) => {
                self.write(next, Writer::Settler(proof));
                // An operator may say the same again later on.
                if who == Who::Reconciler {
                    self.world.reconciler = Settler::Idle;
                }
            }
            // Somebody else has written: it is decided again on that.
            (Some(_), false, _) => *self.settler(who) = Settler::Settling { proof, fresh: true },
            (None, ..) => *self.settler(who) = Settler::Idle,
        }
    }

    /// The answer's time is over, before that of its window.
    pub(crate) fn answer_over(&mut self) -> Option<()> {
        let kept = self.world.record.as_mut().filter(|kept| kept.state.is_final())?;
        (kept.body == Moment::Ahead).then(|| kept.body = Moment::Come)
    }

    /// The store drops an answer that is over. It touches no record, so no swap loses to it.
    pub(crate) fn drop_answer(&mut self) -> Option<()> {
        let kept = self.world.record.as_mut()?;
        let end = if kept.body == Moment::Never { kept.window } else { kept.body };
        if end != Moment::Come || !matches!(kept.reply, Reply::Stored(_)) {
            return None;
        }
        kept.reply = Reply::Dropped;
        self.note(Event::AnswerDropped);
        Some(())
    }

    /// A moment comes. Which one, and when, is up to the checker.
    pub(crate) fn comes(&mut self, kind: DueKind) -> Option<()> {
        let kept = self.world.record.as_mut()?;
        let op = kept.op;
        let coming = |moment: &mut Moment| (*moment == Moment::Ahead).then(|| *moment = Moment::Come);
        match kept.state {
            State::InProgress | State::Unknown => {
                (kind == DueKind::Lease && !kept.lease_over).then(|| kept.lease_over = true)?;
            }
            _ => match kind {
                DueKind::Window if kept.body != Moment::Ahead => coming(&mut kept.window)?,
                DueKind::Purge if kept.window == Moment::Come => coming(&mut kept.purge)?,
                _ => return None,
            },
        }
        let forgets = match kind {
            DueKind::Window => self.config.policy.expired == Expired::New,
            DueKind::Purge => true,
            _ => false,
        };
        if kind == DueKind::Window && self.world.told.is_some_and(|(told, _)| told == op) {
            self.world.told = None;
        }
        self.world.books[usize::from(op)].over |= forgets;
        Some(())
    }
}
