//! The model: who may do what in which state of the world.

use crate::config::Config;
use crate::evidence::{Answerer, Message, answerers, messages};
use crate::healthy::Distances;
use crate::mutants::Mutant;
use crate::owner::{Deed, Stage};
use crate::properties;
use crate::provider::Landing;
use crate::rules::Rules;
use crate::settlers::Who;
use crate::state::{Delayed, Holding, Settler, THIRD, Task, World};
use crate::turn::{Fate, Turn};
use semel::{DueKind, Stale, State};
use stateright::{Model, Property};

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

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.config.bounds)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // What a broken rule leads to is of no interest.
        if world.broken.is_some() {
            return;
        }
        for slot in 0..world.tasks.len() {
            self.task_actions(world, slot, actions);
            if world.left.crashes > 0 && world.tasks[slot] != Task::Idle {
                actions.push(Action::Crash(slot));
            }
        }
        for (index, call) in world.calls.iter().enumerate() {
            actions.extend([Action::Land(index, Landing::Arrives), Action::Land(index, Landing::Vanishes)]);
            let open = world.books[usize::from(call.op)].effects == 0;
            if self.config.declines && open {
                actions.push(Action::Land(index, Landing::Declined));
            }
        }
        for (index, delayed) in world.delayed.iter().enumerate() {
            if world.record.is_none() || !matches!(delayed, Delayed::Create(..)) {
                actions.push(Action::Delayed(index));
            }
        }
        if world.stray.is_some() {
            actions.push(Action::Stray);
        }
        self.record_actions(world, actions);
        self.settler_actions(world, actions);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let next = self.turn(&self.rules, last.clone(), action)?.canonical();
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(&self.config)
    }
}

impl Protocol {
    fn task_actions(&self, world: &World, slot: usize, actions: &mut Vec<Action>) {
        let (left, lossy) = (world.left, world.left.losses > 0);
        let doubled = left.doubles > 0 && world.stray.is_none();
        let mut fates = |call: fn(usize, Fate) -> Action, writes: bool, owns: bool| {
            actions.push(call(slot, Fate::Answered));
            if writes && doubled && owns {
                actions.push(call(slot, Fate::Doubled));
            }
            if writes && lossy {
                actions.push(call(slot, Fate::AnswerLost));
            }
        };
        match world.tasks[slot] {
            Task::Idle => {
                let may = match slot {
                    THIRD => left.third_sends > 0,
                    // The two are alike: one of them is enough.
                    1 => left.sends > 0 && world.tasks[0] != Task::Idle,
                    _ => left.sends > 0,
                };
                if !may {
                    return;
                }
                // A reservation depends on nothing that was read, so it need not wait in the state to be sent.
                fates(Action::Send, world.record.is_none(), true);
                if lossy {
                    actions.push(Action::Send(slot, Fate::Late));
                }
                return;
            }
            Task::Creating => fates(Action::Request, world.record.is_none(), true),
            Task::Taking(next) => fates(Action::Request, next.is_some(), true),
            Task::Doubting(next) => fates(Action::Request, next.is_some(), false),
            Task::Forgetting { fresh } => fates(Action::Request, fresh, false),
            Task::ReadingBack => actions.push(Action::Request(slot, Fate::Answered)),
            Task::GivingBack => {
                actions.extend([Action::Request(slot, Fate::Answered), Action::GiveUp(slot)]);
                return;
            }
            Task::Own(holding) => return self.owner_actions(world, slot, holding, actions),
            Task::Acting(holding, deed) => {
                fates(Action::Act, holding.fresh, matches!(deed, Deed::Extend | Deed::Advance));
            }
        }
        if lossy {
            actions.push(match world.tasks[slot] {
                Task::Acting(holding, _) if !holding.fresh => return,
                Task::Acting(..) => Action::Act(slot, Fate::Late),
                _ => Action::Request(slot, Fate::Late),
            });
        }
    }

    fn owner_actions(&self, world: &World, slot: usize, holding: Holding, actions: &mut Vec<Action>) {
        let mut decide = |deed| actions.push(Action::Decide(slot, deed));
        match holding.stage {
            Stage::Begun | Stage::Pointed => {
                if self.config.gives_up {
                    decide(Deed::Release);
                    decide(Deed::Retryable);
                }
                match (self.config.policy.stale, holding.stage) {
                    (Stale::Rerun, _) => {
                        decide(Deed::Complete);
                        decide(Deed::Doubt);
                    }
                    (Stale::Resume, Stage::Begun) => decide(Deed::Advance),
                    _ => actions.push(Action::Call(slot)),
                }
            }
            Stage::Calling => decide(Deed::Doubt),
            // What there is to say is on its way at once.
            Stage::Done | Stage::Declined => return,
            Stage::Refused => {
                decide(Deed::Retryable);
                decide(Deed::Release);
            }
            Stage::NotToBe => decide(Deed::Release),
        }
        if world.left.beats > 0 {
            actions.push(Action::Decide(slot, Deed::Extend));
        }
    }

    fn record_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Some(kept) = world.record else { return };
        match kept.state {
            State::InProgress => {
                if !kept.lease_over {
                    actions.push(Action::Comes(DueKind::Lease));
                }
                actions.push(Action::Watch);
            }
            // The lease of what is unknown matters to absence alone.
            State::Unknown if self.config.absence_is_proof && !kept.lease_over => {
                actions.push(Action::Comes(DueKind::Lease));
            }
            State::Unknown => {}
            _ if !self.config.expiry => return,
            _ => {
                actions.extend([DueKind::Window, DueKind::Purge].map(Action::Comes));
                actions.extend([Action::AnswerOver, Action::DropAnswer]);
            }
        }
        if self.config.expiry {
            actions.push(Action::Reap);
        }
    }

    fn settler_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let (unknown, lossy) =
            (world.record.is_some_and(|kept| kept.state == State::Unknown), world.left.losses > 0);
        match world.reconciler {
            Settler::Idle if unknown => {
                actions.push(Action::Claim(Fate::Answered));
                if lossy {
                    actions.push(Action::Claim(Fate::AnswerLost));
                }
            }
            Settler::Idle => {}
            Settler::Asking { .. } => actions.extend(answerers(&self.config, world).map(Action::Question)),
            Settler::Settling { fresh, .. } => {
                actions.push(Action::Settle(Who::Reconciler, Fate::Answered));
                if fresh && lossy {
                    actions.push(Action::Settle(Who::Reconciler, Fate::Late));
                }
            }
        }
        match world.operator {
            Settler::Settling { .. } => {
                actions.extend([Action::Settle(Who::Operator, Fate::Answered), Action::SettleVaguely]);
            }
            _ if unknown && world.left.looks > 0 => actions.push(Action::Look),
            _ => {}
        }
        if self.config.tells {
            actions.extend(messages(world).map(Action::Deliver));
        }
        if world.left.remarks > 0 && world.record.is_some() {
            actions.push(Action::Remark);
        }
    }

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
