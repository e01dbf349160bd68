//! One crash, and what came of it.

use crate::answer::Answer;
use crate::request::Subject;
use std::time::Instant;

/// The moment at which the API died.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// Before the answer. Whether the effect had happened is not known: effects are not counted, or not by reference.
    Unanswered,
    /// Before the effect.
    Before,
    /// After the effect, and before the answer.
    Effect,
    /// After the answer.
    Answered,
}

/// How it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// A retry was answered.
    Answered,
    /// A retry was told that the outcome is unknown.
    Doubt,
    /// Neither, for as long as we waited. The last reply.
    Stuck(String),
}

/// One crash.
pub(crate) struct Trial {
    pub(crate) subject: Subject,
    pub(crate) moment: Moment,
    pub(crate) first: Option<Answer>,
    pub(crate) retried: Option<Answer>,
    pub(crate) end: End,
    pub(crate) effects: u64,
    /// Whether first answer and retry name two things that were made.
    pub(crate) names_two_things: bool,
    pub(crate) restarted: Instant,
    /// Whether the request was slowed down: so are its retries.
    pub(crate) slowed: bool,
}

impl Trial {
    /// Whether two effects were seen.
    pub(crate) fn executed_twice(&self) -> bool {
        self.effects > 1 || self.names_two_things
    }
}

/// All crashes of a run.
pub(crate) struct Trials {
    pub(crate) trials: Vec<Trial>,
}

impl Trials {
    pub(crate) fn at(&self, moment: Moment) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.moment == moment)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter()
    }

    /// Whether keys whose request was answered are gone after a restart: they are kept in memory.
    pub(crate) fn forgets(&self) -> bool {
        self.at(Moment::Answered).any(Trial::executed_twice)
    }
}
