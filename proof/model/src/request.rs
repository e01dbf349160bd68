//! A client's request, until it is answered or owns the operation. This is the engine's way, step by step.

use crate::kept::{Kept, NOBODY, Token};
use crate::mutants::Mutant;
use crate::reached::Event;
use crate::rule::Rule;
use crate::rules::Verdict;
use crate::state::{Delayed, Holding, Task, Writer};
use crate::turn::{Fate, Turn};
use crate::work::{Deed, Stage};
use semel::transition::{Match, Standing, standing};
use semel::{Expired, State};

impl Turn<'_> {
    /// The client in this place sends a request: it is reserved first, then decided.
    pub(crate) fn send(&mut self, slot: usize, fate: Fate) {
        self.world.tasks[slot] = Task::Creating;
        self.request(slot, fate);
    }

    /// The pending store call of a request meets its fate.
    pub(crate) fn request(&mut self, slot: usize, fate: Fate) {
        let token = slot as Token;
        match self.world.tasks[slot] {
            Task::Creating => self.create(slot, token, fate),
            Task::Taking(next) => self.take(slot, token, next, fate),
            Task::Doubting(next) => self.conditional(slot, next.map(Some), fate),
            Task::Forgetting { fresh } => self.conditional(slot, fresh.then_some(None), fate),
            Task::ReadingBack => self.read_back(slot, token),
            Task::GivingBack => self.give_back(slot, token),
            Task::Idle | Task::Own(_) | Task::Acting(..) => {}
        }
    }

    fn create(&mut self, slot: usize, token: Token, fate: Fate) {
        let altered = self.rules.alters(slot);
        if fate == Fate::Late {
            self.world.delayed.push(Delayed::Create(token, altered));
            return self.lost(slot);
        }
        let found = self.world.record;
        let inserted = self.insert(token, altered);
        match (fate, found) {
            (Fate::AnswerLost, _) => self.lost(slot),
            (_, Some(kept)) => self.find(slot, &kept),
            (_, None) => {
                debug_assert!(inserted, "nothing was there");
                self.own(slot, fate);
            }
        }
    }

    fn take(&mut self, slot: usize, token: Token, next: Option<Kept>, fate: Fate) {
        let next = next.map(|next| Kept { owner: token, ..next });
        match (fate, next) {
            (Fate::Late, next) => {
                if let Some(next) = next {
                    self.world.delayed.push(Delayed::Write(Some(next), Writer::Request(token)));
                }
                self.lost(slot);
            }
            (fate, Some(next)) => {
                self.write(Some(next), Writer::Request(token));
                if fate == Fate::AnswerLost { self.lost(slot) } else { self.own(slot, fate) }
            }
            (Fate::AnswerLost, None) => self.lost(slot),
            (_, None) => self.changed(slot),
        }
    }

    /// A swap or a removal that makes nobody an owner: it fails closed if its answer is lost.
    fn conditional(&mut self, slot: usize, next: Option<Option<Kept>>, fate: Fate) {
        let writer = Writer::Request(NOBODY);
        match (fate, next) {
            (Fate::Late, next) => {
                self.world.delayed.extend(next.map(|next| Delayed::Write(next, writer)));
                self.world.end(slot);
            }
            (fate, Some(next)) => {
                self.write(next, writer);
                if fate == Fate::AnswerLost { self.world.end(slot) } else { self.changed(slot) }
            }
            (Fate::AnswerLost, None) => self.world.end(slot),
            (_, None) => self.changed(slot),
        }
    }

    /// What the store has is not what was decided on, or not any more: it is decided again.
    fn changed(&mut self, slot: usize) {
        match self.world.record {
            Some(kept) => self.find(slot, &kept),
            None => self.world.tasks[slot] = Task::Creating,
        }
    }

    /// The answer to a write that would have made it the owner was lost.
    fn lost(&mut self, slot: usize) {
        self.world.tasks[slot] = Task::ReadingBack;
        if self.rules.is(Mutant::LossGuessed) {
            let op = self.world.books.len().saturating_sub(1) as u8;
            let attempt = self.world.record.map_or(1, |kept| kept.attempt);
            if self.world.books.is_empty() {
                self.insert(NOBODY, self.rules.alters(slot));
            }
            self.world.tasks[slot] = Task::Own(Holding { op, attempt, fresh: false, stage: Stage::Begun });
        }
    }

    fn read_back(&mut self, slot: usize, token: Token) {
        match self.world.record {
            // Not if it is in doubt by now: somebody may be about to settle it as never executed.
            Some(kept)
                if kept.owner == token
                    && (kept.state == State::InProgress || self.rules.is(Mutant::DoubtBegun)) =>
            {
                self.note(Event::ReadBackOurs);
                self.own(slot, Fate::Answered);
            }
            Some(kept) if kept.state == State::InProgress && self.rules.is(Mutant::ReadBackBlind) => {
                self.own(slot, Fate::Answered);
            }
            _ => self.world.tasks[slot] = Task::GivingBack,
        }
    }

    /// It has answered 503 and executes nothing; if the reservation turns up after all, it is given back.
    fn give_back(&mut self, slot: usize, token: Token) {
        match self.world.record {
            Some(kept) if kept.owner == token => {
                self.note(Event::GivenBack);
                let holding =
                    Holding { op: kept.op, attempt: kept.attempt, fresh: true, stage: Stage::NotToBe };
                self.world.tasks[slot] = Task::Acting(holding, Deed::Release);
            }
            _ => self.world.end(slot),
        }
    }

    /// A record is there: the rules decide.
    pub(crate) fn find(&mut self, slot: usize, found: &Kept) {
        let verdict = self.rules.arrive(found, slot);
        self.judge_mismatch(slot, found, verdict);
        match verdict {
            Verdict::Replay(body) => {
                self.tell(found.op, body);
                self.world.end(slot);
            }
            Verdict::Take(next) => self.world.tasks[slot] = Task::Taking(Some(next)),
            Verdict::Doubt(next) => self.world.tasks[slot] = Task::Doubting(Some(next)),
            Verdict::Forgotten => self.world.tasks[slot] = Task::Forgetting { fresh: true },
            Verdict::KeyReused | Verdict::CannotTell | Verdict::Refused => self.world.end(slot),
        }
    }

    /// A different request is told so in every state, unless the record is as good as gone.
    fn judge_mismatch(&mut self, slot: usize, found: &Kept, verdict: Verdict) {
        let gone = match standing(&found.whole(), crate::kept::NOW) {
            Standing::Gone => true,
            Standing::Tombstone => {
                self.config.policy.expired == Expired::New
                    && self.rules.matches(found, slot) != Match::OtherOperation
            }
            Standing::Alive | Standing::BodyOver => false,
        };
        let expected = match self.rules.matches(found, slot) {
            Match::Same => return,
            Match::Different | Match::OtherOperation => Verdict::KeyReused,
            Match::CannotTell => Verdict::CannotTell,
        };
        if !gone && verdict != expected {
            self.break_rule(Rule::MismatchServed);
        }
    }

    /// It is the owner now, as far as it can tell.
    fn own(&mut self, slot: usize, fate: Fate) {
        let Some(kept) = self.world.record else { return self.world.end(slot) };
        if matches!(self.rules.matches(&kept, slot), Match::Different | Match::OtherOperation) {
            self.break_rule(Rule::MismatchServed);
        }
        if kept.point {
            self.note(Event::Resumed);
        }
        let stage = if kept.point { Stage::Pointed } else { Stage::Begun };
        self.world.tasks[slot] =
            Task::Own(Holding { op: kept.op, attempt: kept.attempt, fresh: true, stage });
        if fate == Fate::Doubled {
            self.world.stray = Some(slot as Token);
        }
    }

    /// The second answer to a call that was answered before. Calls are told apart, so nothing comes of it.
    pub(crate) fn stray(&mut self) {
        let Some(token) = self.world.stray.take() else { return };
        self.note(Event::Doubled);
        let slot = usize::from(token);
        if let (true, Task::Acting(holding, deed)) =
            (self.rules.is(Mutant::DoubleBelieved), self.world.tasks[slot])
        {
            self.acted(slot, holding, deed);
        }
    }
}
