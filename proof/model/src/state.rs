//! The whole world at one moment.

use crate::config::Bounds;
use crate::kept::{Kept, NOBODY, Token};
use crate::proof::Proof;
use crate::rule::Rule;
use crate::work::{Deed, Stage};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The place of the client that is different from the others.
pub const THIRD: usize = 2;

/// The task of one client's request, in a process of its own. What it remembers is gone when the process crashes.
///
/// `fresh` tells whether the record is still the one that the task's pending write was decided on: it stands for the version.
/// (What a task would own is kept under [`NOBODY`]'s token until it is written, so that like tasks look alike.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Task {
    /// No request.
    Idle,
    /// `create` is on its way to the store.
    Creating,
    /// A swap is on its way that would make it the owner of this; `None`: the record was written since it was decided.
    Taking(Option<Kept>),
    /// A swap is on its way that says that the outcome is unknown; `None`: the record was written since.
    Doubting(Option<Kept>),
    /// The removal of an expired record is on its way.
    Forgetting {
        /// Whether the record is still as it was.
        fresh: bool,
    },
    /// The answer to a write that would have made it the owner was lost: it reads back.
    ReadingBack,
    /// It did not find its token, has answered 503, and watches for what may still turn up, to give it back.
    GivingBack,
    /// It owns the operation, or thinks so.
    Own(Holding),
    /// A write of the owner's is on its way.
    Acting(Holding, Deed),
}

/// What an owner remembers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Holding {
    /// The operation.
    pub op: u8,
    /// The attempt.
    pub attempt: u8,
    /// Whether the record is still the one last seen.
    pub fresh: bool,
    /// How far the work is.
    pub stage: Stage,
}

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Writer {
    /// A request that reserves, takes, doubts or forgets.
    Request(Token),
    /// An owner, and what it does.
    Owner(u8, u8, Token, Deed),
    /// The lease watch.
    Watch,
    /// The reconciler, to ask.
    Poll,
    /// Whoever brings evidence.
    Settler(Proof),
    /// Whoever brings evidence that settles nothing, to the history.
    Remark,
    /// The reaper.
    Reaper,
}

/// A write that its sender has given up on, and that the store may still carry out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Delayed {
    /// A reservation, and whether it is for the altered body.
    Create(Token, bool),
    /// A swap, or a removal. One whose record was written since can do nothing any more, and is left out.
    Write(Option<Kept>, Writer),
}

/// A call on its way to the provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Call {
    /// For which operation.
    pub op: u8,
    /// At which attempt.
    pub attempt: u8,
    /// With which body.
    pub altered: bool,
    /// Who waits for its answer.
    pub caller: Token,
}

/// What the provider, and whoever counts effects, knows of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Book {
    /// Which body it was reserved for.
    pub altered: bool,
    /// How often it was carried out.
    pub effects: u8,
    /// How often its local phase was committed.
    pub local: u8,
    /// Attempts up to this one are refused.
    pub refused: u8,
    /// The attempt that was declined for good; 0: none.
    pub declined: u8,
    /// Whether the promise about it has ended with its window.
    pub over: bool,
}

/// Somebody who settles doubt: the reconciler or the operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Settler {
    /// Nothing to do.
    Idle,
    /// Has taken it upon itself to ask.
    Asking {
        /// About this operation,
        op: u8,
        /// this attempt.
        attempt: u8,
        /// Whether the record is still the one last seen.
        fresh: bool,
    },
    /// A swap with evidence is on its way.
    Settling {
        /// The evidence.
        proof: Proof,
        /// Whether the record is still as it was.
        fresh: bool,
    },
}

/// Everything there is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    /// What the store keeps under the one key.
    pub record: Option<Kept>,
    /// One task per client.
    pub tasks: [Task; 3],
    /// Writes that may still be carried out.
    pub delayed: Vec<Delayed>,
    /// The task to whose finished call a second answer is on its way.
    pub stray: Option<Token>,
    /// Calls on their way to the provider.
    pub calls: Vec<Call>,
    /// The ledger, by operation.
    pub books: Vec<Book>,
    /// Polls the provider.
    pub reconciler: Settler,
    /// Looks for itself.
    pub operator: Settler,
    /// How much may still happen.
    pub left: Bounds,
    /// The operation that an answer was given for, and the answer, while its window lasts.
    pub told: Option<(u8, u8)>,
    /// The first rule that was broken.
    pub broken: Option<Rule>,
}

impl World {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            record: None,
            tasks: [Task::Idle; 3],
            delayed: Vec::new(),
            stray: None,
            calls: Vec::new(),
            books: Vec::new(),
            reconciler: Settler::Idle,
            operator: Settler::Idle,
            left: bounds,
            told: None,
            broken: None,
        }
    }

    /// Passes every token through `rename`.
    fn rename(&mut self, rename: impl Fn(Token) -> Token) {
        let kept = |kept: &mut Kept| kept.owner = rename(kept.owner);
        self.record.iter_mut().for_each(kept);
        for task in &mut self.tasks {
            if let Task::Doubting(next) = task {
                next.iter_mut().for_each(kept);
            }
        }
        for delayed in &mut self.delayed {
            match delayed {
                Delayed::Create(token, _) => *token = rename(*token),
                Delayed::Write(next, writer) => {
                    next.iter_mut().for_each(kept);
                    if let Writer::Request(token) | Writer::Owner(_, _, token, _) = writer {
                        *token = rename(*token);
                    }
                }
            }
        }
        self.calls.iter_mut().for_each(|call| call.caller = rename(call.caller));
        self.stray = self.stray.map(rename);
    }

    /// The task is over: nobody can claim its token any more.
    pub(crate) fn end(&mut self, slot: usize) {
        self.tasks[slot] = Task::Idle;
        if self.stray == Some(slot as Token) {
            self.stray = None;
        }
        self.rename(|token| if usize::from(token) == slot { NOBODY } else { token });
    }

    /// The record was written: whoever decided on the old one will find that out.
    pub(crate) fn outdate(&mut self) {
        for task in &mut self.tasks {
            match task {
                Task::Taking(next) | Task::Doubting(next) => *next = None,
                Task::Forgetting { fresh } => *fresh = false,
                Task::Own(holding) | Task::Acting(holding, _) => holding.fresh = false,
                _ => {}
            }
        }
        for settler in [&mut self.reconciler, &mut self.operator] {
            if let Settler::Asking { fresh, .. } | Settler::Settling { fresh, .. } = settler {
                *fresh = false;
            }
        }
        self.delayed.retain(|delayed| matches!(delayed, Delayed::Create(..)));
    }

    /// The same world with its like clients in one order, and without what can never matter again.
    #[must_use]
    pub(crate) fn canonical(mut self) -> Self {
        let hash = |task: &Task| {
            let mut hasher = DefaultHasher::new();
            task.hash(&mut hasher);
            hasher.finish()
        };
        if hash(&self.tasks[0]) > hash(&self.tasks[1]) {
            self.tasks.swap(0, 1);
            self.rename(|token| if token < 2 { 1 - token } else { token });
        }
        self.calls.sort_unstable();
        while let Some(book) = self.books.last() {
            let op = (self.books.len() - 1) as u8;
            if book.effects > 0 || book.local > 0 || self.refers_to(op) {
                break;
            }
            self.books.pop();
        }
        self
    }

    fn refers_to(&self, op: u8) -> bool {
        self.record.is_some_and(|kept| kept.op == op)
            || self.told.is_some_and(|(told, _)| told == op)
            || self.calls.iter().any(|call| call.op == op)
            || self
                .tasks
                .iter()
                .any(|task| matches!(task, Task::Own(holding) | Task::Acting(holding, _) if holding.op == op))
            || [self.reconciler, self.operator].iter().any(|settler| match settler {
                Settler::Idle => false,
                Settler::Asking { op: asked, .. } => *asked == op,
                Settler::Settling { proof, .. } => proof.op == op,
            })
    }
}
