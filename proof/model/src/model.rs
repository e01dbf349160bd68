//! The model: who may do what in which state of the world.

use crate::evidence::{answerers, messages};
use crate::properties;
use crate::protocol::{Action, Protocol};
use crate::provider::Landing;
use crate::settlers::Who;
use crate::state::{Delayed, Holding, Settler, THIRD, Task, World};
use crate::turn::Fate;
use crate::work::{Deed, Stage};
use semel::{DueKind, Stale, State};
use stateright::{Model, Property};

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
}
