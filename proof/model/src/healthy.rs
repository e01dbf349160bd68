//! The healthy schedule: nothing more goes wrong, everybody does their part in turn. From every state it has to settle.

use crate::evidence::Answerer;
use crate::protocol::{Action, Protocol};
use crate::provider::Landing;
use crate::settlers::Who;
use crate::state::{Settler, THIRD, Task, World};
use crate::turn::Fate;
use crate::work::{Deed, Stage};
use semel::{DueKind, Stale, State};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Steps that the schedule may take, from anywhere.
pub const STEPS: u8 = 60;

fn place(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Whether clients can be told how it came out, or may try again.
pub(crate) fn settled(world: &World) -> bool {
    world.record.is_none_or(|kept| !matches!(kept.state, State::InProgress | State::Unknown))
}

impl Protocol {
    /// Whether the healthy schedule settles the operation within [`STEPS`].
    pub(crate) fn settles(&self, world: &World) -> bool {
        let mut at = world.clone();
        let mut way = Vec::new();
        let mut distance = loop {
            if settled(&at) {
                break 0;
            }
            let place = place(&at);
            if let Some(known) = self.distances.shard(place).get(&place) {
                break *known;
            }
            way.push(place);
            if way.len() > usize::from(STEPS) {
                return false;
            }
            let Some(next) = self.healthy_step(&at) else { return false };
            at = next;
        };
        for place in way.into_iter().rev() {
            distance = distance.saturating_add(1);
            self.distances.shard(place).insert(place, distance);
        }
        distance <= STEPS
    }

    /// The longest way that the healthy schedule had to go.
    #[must_use]
    pub fn longest_way(&self) -> u8 {
        self.distances.longest()
    }

    fn healthy_step(&self, world: &World) -> Option<World> {
        let action = self.healthy_action(world)?;
        self.turn(&self.calm, world.clone(), action).map(World::canonical)
    }

    fn healthy_action(&self, world: &World) -> Option<Action> {
        let record = world.record?;
        // Calls arrive and are answered, then every task does its part.
        if !world.calls.is_empty() {
            return Some(Action::Land(0, Landing::Arrives));
        }
        for (slot, task) in world.tasks.iter().enumerate() {
            match task {
                Task::Idle => {}
                Task::Own(holding) => return Some(self.healthy_owner(slot, holding.stage)),
                Task::Acting(..) => return Some(Action::Act(slot, Fate::Answered)),
                _ => return Some(Action::Request(slot, Fate::Answered)),
            }
        }
        // Nobody is at work any more.
        if !record.lease_over {
            return Some(Action::Comes(DueKind::Lease));
        }
        match (record.state, self.config.policy.stale) {
            (State::InProgress, Stale::Unknown) => Some(Action::Watch),
            // Only a request brings along what has to be executed.
            (State::InProgress, _) => {
                Some(Action::Send(if record.altered { THIRD } else { 0 }, Fate::Answered))
            }
            _ => Some(match (world.reconciler, world.operator) {
                (Settler::Asking { .. }, _) => Action::Question(Answerer::Provider),
                (Settler::Settling { .. }, _) => Action::Settle(Who::Reconciler, Fate::Answered),
                (_, Settler::Settling { .. }) => Action::Settle(Who::Operator, Fate::Answered),
                _ if record.dead_letter => Action::Look,
                _ => Action::Claim(Fate::Answered),
            }),
        }
    }

    fn healthy_owner(&self, slot: usize, stage: Stage) -> Action {
        let deed = match (stage, self.config.policy.stale) {
            (Stage::Begun, Stale::Resume) => Deed::Advance,
            (Stage::Begun | Stage::Pointed, Stale::Rerun) => Deed::Complete,
            (Stage::Begun | Stage::Pointed, _) => return Action::Call(slot),
            // Its call is not on the way any more, and no answer came.
            (Stage::Calling, _) => Deed::Doubt,
            (Stage::Done, _) => Deed::Complete,
            (Stage::Declined, _) => Deed::Fail,
            (Stage::Refused, _) => Deed::Retryable,
            (Stage::NotToBe, _) => Deed::Release,
        };
        Action::Decide(slot, deed)
    }
}
