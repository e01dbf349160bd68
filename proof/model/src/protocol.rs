//! The protocol, what can happen in it, and one step of it.

use crate::config::Config;
use crate::distances::Distances;
use crate::evidence::{Answerer, Message};
use crate::mutants::Mutant;
use crate::provider::Landing;
use crate::rules::Rules;
use crate::settlers::Who;
use crate::state::{THIRD, World};
use crate::turn::{Fate, Turn};
use crate::work::Deed;
use semel::DueKind;

/// The protocol in one configuration, right or with one mistake.
#[derive(Debug)]
pub struct Protocol {
    /// What is checked.
    pub config: Config,
    /// The state machine.
    pub rules: Rules,
    /// The same, for the healthy schedule: what is decided there was not reached.
    pub(crate) calm: Rules,
    pub(crate) distances: Distances,
}

impl Protocol {
    /// The protocol as it is.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with(config, None)
    }

    /// The protocol with a mistake in it.
    #[must_use]
    pub fn with(config: Config, mutant: Option<Mutant>) -> Self {
        let rules = Rules::new(&config, mutant);
        let calm = Rules::new(&config, mutant);
        Self { config, rules, calm, distances: Distances::default() }
    }
}

/// Something that happens. Clients are named by place; the first two are alike and may change places.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// A client sends its request, and this becomes of the reservation.
    Send(usize, Fate),
    /// The store call of a request that owns nothing yet.
    Request(usize, Fate),
    /// The store call of an owner.
    Act(usize, Fate),
    /// An owner calls the provider.
    Call(usize),
    /// An owner decides what to write.
    Decide(usize, Deed),
    /// A task that watches for what may turn up stops watching.
    GiveUp(usize),
    /// A process crashes.
    Crash(usize),
    /// A call to the provider comes to its end.
    Land(usize, Landing),
    /// A write that its sender has given up on is carried out.
    Delayed(usize),
    /// An answer comes a second time.
    Stray,
    /// A moment comes.
    Comes(DueKind),
    /// The answer's time is over before its window's.
    AnswerOver,
    /// The store drops an answer that is over.
    DropAnswer,
    /// The lease watch comes by.
    Watch,
    /// The reaper comes by.
    Reap,
    /// The reconciler takes it upon itself to ask.
    Claim(Fate),
    /// The reconciler asks, and this one answers.
    Question(Answerer),
    /// The operator looks into it.
    Look,
    /// The store call of a settler.
    Settle(Who, Fate),
    /// The operator says what they know without saying of which attempt.
    SettleVaguely,
    /// A message of the provider's is delivered, once more or for the first time.
    Deliver(Message),
    /// Evidence that settles nothing is written into the history.
    Remark,
}

impl Action {
    /// What becomes of the store call in it.
    const fn fate(self) -> Fate {
        match self {
            Self::Send(_, fate)
            | Self::Request(_, fate)
            | Self::Act(_, fate)
            | Self::Claim(fate)
            | Self::Settle(_, fate) => fate,
            _ => Fate::Answered,
        }
    }
}

impl Protocol {
    /// One step by these rules.
    pub(crate) fn turn(&self, rules: &Rules, world: World, action: Action) -> Option<World> {
        let mut turn = Turn { config: &self.config, rules, world };
        let left = &mut turn.world.left;
        match action {
            Action::Send(THIRD, _) => left.third_sends = left.third_sends.saturating_sub(1),
            Action::Send(..) => left.sends = left.sends.saturating_sub(1),
            Action::Crash(_) => left.crashes = left.crashes.saturating_sub(1),
            Action::Look => left.looks = left.looks.saturating_sub(1),
            Action::Remark => left.remarks = left.remarks.saturating_sub(1),
            Action::Decide(_, Deed::Extend) => left.beats = left.beats.saturating_sub(1),
            _ => {}
        }
        match action.fate() {
            Fate::Answered => {}
            Fate::Doubled => left.doubles = left.doubles.saturating_sub(1),
            Fate::AnswerLost | Fate::Late => left.losses = left.losses.saturating_sub(1),
        }
        match action {
            Action::Send(slot, fate) => turn.send(slot, fate),
            Action::Request(slot, fate) => turn.request(slot, fate),
            Action::Act(slot, fate) => turn.act(slot, fate),
            Action::Call(slot) => turn.call(slot),
            Action::Decide(slot, deed) => turn.decide(slot, deed),
            Action::GiveUp(slot) => turn.world.end(slot),
            Action::Crash(slot) => turn.crash(slot),
            Action::Land(index, landing) => turn.land(index, landing),
            Action::Delayed(index) => turn.delayed(index),
            Action::Stray => turn.stray(),
            Action::Comes(kind) => turn.comes(kind)?,
            Action::AnswerOver => turn.answer_over()?,
            Action::DropAnswer => turn.drop_answer()?,
            Action::Watch => turn.watch()?,
            Action::Reap => turn.reap()?,
            Action::Claim(fate) => turn.claim(fate)?,
            Action::Question(answerer) => turn.question(answerer),
            Action::Look => turn.look()?,
            Action::Settle(who, fate) => turn.settle(who, fate),
            Action::SettleVaguely => turn.say_without_attempt()?,
            Action::Deliver(message) => turn.deliver(message)?,
            Action::Remark => turn.remark()?,
        }
        Some(turn.world)
    }
}
