//! One step of somebody's: the world before it is taken over and changed.

use crate::config::Config;
use crate::kept::{Kept, Moment, Token};
use crate::reached::Event;
use crate::rule::Rule;
use crate::rules::Rules;
use crate::state::{Book, Delayed, World, Writer};
use crate::work::Deed;
use semel::Stale;

/// What becomes of a store call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// It is carried out and answered. (An answer that comes late is a sender that acts late, which it may anyhow.)
    Answered,
    /// It is carried out and answered, and the answer comes again later.
    Doubled,
    /// It is carried out, and the answer is lost.
    AnswerLost,
    /// It is not carried out in time; later, or never.
    Late,
}

/// One step.
pub(crate) struct Turn<'a> {
    pub(crate) config: &'a Config,
    pub(crate) rules: &'a Rules,
    pub(crate) world: World,
}

impl Turn<'_> {
    pub(crate) fn note(&self, event: Event) {
        self.rules.reached.note(event);
    }

    pub(crate) fn break_rule(&mut self, rule: Rule) {
        self.world.broken.get_or_insert(rule);
    }

    /// The store inserts a reservation, if there is nothing.
    pub(crate) fn insert(&mut self, token: Token, altered: bool) -> bool {
        if self.world.record.is_some() {
            return false;
        }
        let op = self.world.books.len() as u8;
        self.world.books.push(Book { altered, effects: 0, local: 0, refused: 0, declined: 0, over: false });
        let kept = self.rules.reserve(op, altered, token);
        self.write(Some(kept), Writer::Request(token));
        true
    }

    /// The store writes. Everything that was decided on the old record is out of date from here on.
    pub(crate) fn write(&mut self, next: Option<Kept>, writer: Writer) {
        if let Some(rule) = crate::audit::broken(self.config, self.world.record, next, writer) {
            self.break_rule(rule);
        }
        if let Writer::Owner(op, _, _, deed) = writer {
            let book = &mut self.world.books[usize::from(op)];
            match deed {
                // The effect is in the completing transaction: both happen, or neither.
                Deed::Complete if self.config.policy.stale == Stale::Rerun => book.effects += 1,
                Deed::Advance => book.local += 1,
                _ => {}
            }
        }
        self.world.record = next;
        self.world.outdate();
    }

    /// A client is given the answer of an operation.
    pub(crate) fn tell(&mut self, op: u8, body: u8) {
        match (self.world.record, self.world.told) {
            (_, Some((told, said))) if told == op && said != body => self.break_rule(Rule::TwoAnswers),
            (Some(kept), _) if kept.op == op => {
                // After the window nothing is promised about it.
                if kept.window != Moment::Come {
                    self.world.told = Some((op, body));
                }
            }
            _ if self.world.books[usize::from(op)].over => {}
            _ => self.break_rule(Rule::AnswerLost),
        }
    }

    /// A write that its sender has given up on is carried out after all.
    pub(crate) fn delayed(&mut self, index: usize) {
        match self.world.delayed.remove(index) {
            Delayed::Create(token, altered) => {
                self.insert(token, altered);
            }
            Delayed::Write(next, writer) => self.write(next, writer),
        }
        self.note(Event::DelayedWrite);
    }
}
