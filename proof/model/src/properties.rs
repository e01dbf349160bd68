//! What has to hold always, and what has to happen sometimes.

use crate::config::{Config, Third};
use crate::kept::{Kept, Reply};
use crate::protocol::Protocol;
use crate::reached::Event;
use crate::rule::Rule;
use crate::state::{Task, World};
use semel::transition::Refusal;
use semel::{Expired, Stale, State};
use stateright::Property;

/// The properties of a configuration.
pub(crate) fn of(config: &Config) -> Vec<Property<Protocol>> {
    let mut properties = vec![
        Property::<Protocol>::always("P1 at most one effect", |model, world| {
            model.holds(0, world, one_effect)
        }),
        Property::<Protocol>::always("P1 no second start without proof", |model, world| {
            model.holds(1, world, |world| {
                world.broken != Some(Rule::SecondStart) && executions_not_fenced(world) <= 1
            })
        }),
        Property::<Protocol>::always("P2 one answer, for as long as its window lasts", |model, world| {
            model.holds(2, world, |world| {
                !matches!(world.broken, Some(Rule::TwoAnswers | Rule::AnswerLost)) && answer_is_kept(world)
            })
        }),
        Property::<Protocol>::always("P3 one key never stands for two requests", |model, world| {
            model.holds(3, world, |world| {
                !matches!(world.broken, Some(Rule::MismatchServed | Rule::IdentityChanged))
            })
        }),
        Property::<Protocol>::always("P4 doubt ends by evidence alone", |model, world| {
            model.holds(4, world, |world| world.broken != Some(Rule::DoubtWithoutEvidence))
        }),
        Property::<Protocol>::always("P4 what is recorded is true", |model, world| {
            model.holds(5, world, record_is_true)
        }),
        Property::<Protocol>::always("no write by a fenced owner", |model, world| {
            model.holds(6, world, |world| world.broken != Some(Rule::FencedWrite))
        }),
        Property::<Protocol>::always("a healthy provider settles it", |model, world| {
            model.settles(world) || !model.calm.reached.first(1 << 63)
        }),
    ];
    let sometimes = |(name, _, condition): Sometimes| Property::sometimes(name, condition);
    properties.extend(SOMETIMES.into_iter().filter(|(_, event, _)| applies(config, *event)).map(sometimes));
    properties
}

impl Protocol {
    /// Whether a condition holds, or is known not to: the checker keeps the first counterexample that way, which is the
    /// shortest.
    fn holds(&self, place: u8, world: &World, condition: fn(&World) -> bool) -> bool {
        condition(world) || !self.calm.reached.first(1 << place)
    }
}

fn one_effect(world: &World) -> bool {
    let once = world.books.iter().all(|book| book.effects <= 1 && book.local <= 1);
    once && world.books.iter().filter(|book| book.effects > 0 && !book.over).count() <= 1
}

fn executions_not_fenced(world: &World) -> usize {
    let Some(kept) = world.record else { return 0 };
    let owns = |(slot, task): (usize, &Task)| match task {
        Task::Own(holding) | Task::Acting(holding, _) => {
            (holding.op, holding.attempt, slot) == (kept.op, kept.attempt, usize::from(kept.owner))
        }
        _ => false,
    };
    world.tasks.iter().enumerate().filter(|task| owns(*task)).count()
}

fn answer_is_kept(world: &World) -> bool {
    let Some((op, body)) = world.told else { return true };
    let keeps = |kept: Kept| {
        kept.op == op
            && matches!(kept.state, State::Completed | State::FailedReplayable)
            && matches!(kept.reply, Reply::Stored(stored) if stored == body) | (kept.reply == Reply::Dropped)
    };
    world.record.is_some_and(keeps)
}

fn record_is_true(world: &World) -> bool {
    let Some(kept) = world.record else { return true };
    let effects = world.books[usize::from(kept.op)].effects;
    match kept.state {
        State::Completed => effects > 0,
        State::FailedReplayable | State::FailedRetryable => effects == 0,
        _ => true,
    }
}

/// A name, what it is about, and whether it was reached.
type Sometimes = (&'static str, About, fn(&Protocol, &World) -> bool);

/// What has to be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum About {
    State(State),
    Event(Event),
}

macro_rules! state {
    ($name:literal, $state:ident, $bit:literal) => {
        (concat!("state ", $name), About::State(State::$state), |model, world| {
            world.record.is_some_and(|kept| kept.state == State::$state)
                && model.rules.reached.first(1 << $bit)
        })
    };
}

macro_rules! event {
    ($name:literal, $event:expr) => {
        ($name, About::Event($event), |model, _| model.rules.reached.news($event))
    };
}

const SOMETIMES: [Sometimes; 39] = [
    state!("in_progress", InProgress, 50),
    state!("completed", Completed, 51),
    state!("failed_replayable", FailedReplayable, 52),
    state!("failed_retryable", FailedRetryable, 53),
    state!("unknown", Unknown, 54),
    event!("arrived: key reused", Event::Arrived(0)),
    event!("arrived: cannot tell", Event::Arrived(1)),
    event!("arrived: expired", Event::Arrived(2)),
    event!("arrived: in progress", Event::Arrived(3)),
    event!("arrived: replay", Event::Arrived(4)),
    event!("arrived: not stored", Event::Arrived(5)),
    event!("arrived: unknown", Event::Arrived(6)),
    event!("arrived: doubt", Event::Arrived(7)),
    event!("arrived: take", Event::Arrived(8)),
    event!("arrived: forgotten", Event::Arrived(9)),
    event!("refused: fenced", Event::refused(Refusal::Fenced)),
    event!("refused: finished", Event::refused(Refusal::Finished)),
    event!("refused: in doubt", Event::refused(Refusal::InDoubt)),
    event!("refused: took over doubt", Event::refused(Refusal::TookOverDoubt)),
    event!("refused: past recovery point", Event::refused(Refusal::PastRecoveryPoint)),
    event!("refused: not unknown", Event::refused(Refusal::NotUnknown)),
    event!("refused: lease running", Event::refused(Refusal::LeaseRunning)),
    event!("refused: other attempt", Event::refused(Refusal::OtherAttempt)),
    event!("refused: attempt not named", Event::refused(Refusal::AttemptNotNamed)),
    event!("refused: other operation", Event::refused(Refusal::OtherOperation)),
    event!("refused: already advanced", Event::refused(Refusal::AlreadyAdvanced)),
    event!("refused: not due", Event::refused(Refusal::NotDue)),
    event!("refused: left to retry", Event::refused(Refusal::LeftToRetry)),
    event!("a late owner completes what became unknown", Event::LateCompletion),
    event!("a lost answer is read back, and the write was ours", Event::ReadBackOurs),
    event!("a write is carried out after its sender gave up on it", Event::DelayedWrite),
    event!("a reservation that turned up late is given back", Event::GivenBack),
    event!("a dead letter", Event::DeadLetter),
    event!("an attempt goes on after a recovery point", Event::Resumed),
    event!("an answer comes twice", Event::Doubled),
    event!("a stored answer is dropped", Event::AnswerDropped),
    event!("a provider's message settles doubt", Event::MessageSettles),
    event!("a message that names a key alone settles nothing", Event::MessageByKey),
    event!("a poll is answered by a stranger", Event::StrangersAnswer),
];

/// Whether it can be reached at all in a configuration.
fn applies(config: &Config, about: About) -> bool {
    let stale = config.policy.stale;
    let refused = |refusal| About::Event(Event::refused(refusal));
    match about {
        About::Event(Event::Arrived(9) | Event::AnswerDropped) => config.expiry,
        About::Event(Event::Arrived(2)) => config.expiry && config.policy.expired == Expired::Refuse,
        About::State(State::FailedReplayable) => config.declines,
        About::Event(Event::Arrived(0)) => config.third != Third::Stranger,
        About::Event(Event::Arrived(1)) => config.third == Third::Stranger,
        About::Event(Event::Arrived(7)) => stale == Stale::Unknown,
        About::Event(Event::Resumed) => stale == Stale::Resume,
        About::Event(Event::Doubled) => config.bounds.doubles > 0,
        About::Event(Event::ReadBackOurs | Event::GivenBack) => config.bounds.losses > 0,
        _ if about == refused(Refusal::Finished) => config.bounds.losses > 0,
        _ if about == refused(Refusal::PastRecoveryPoint) => stale == Stale::Resume,
        _ if about == refused(Refusal::AlreadyAdvanced) => stale == Stale::Resume && config.bounds.losses > 0,
        _ if about == refused(Refusal::TookOverDoubt) || about == refused(Refusal::LeftToRetry) => {
            stale != Stale::Unknown
        }
        // What is given up by its owner has no owner left; elsewhere the lease watch leaves it to a retry.
        About::Event(Event::LateCompletion) => stale == Stale::Unknown,
        // An operator brings no answer along, and has nothing to say where the effect is in the completing transaction.
        About::Event(Event::Arrived(5)) => stale != Stale::Rerun,
        _ if about == refused(Refusal::LeaseRunning) || about == refused(Refusal::OtherAttempt) => {
            config.absence_is_proof
        }
        // Where the effect is in the completing transaction, a provider has nothing to tell of.
        About::Event(Event::MessageSettles | Event::MessageByKey) => config.tells && stale != Stale::Rerun,
        About::Event(Event::StrangersAnswer) => config.absence_is_proof,
        _ if about == refused(Refusal::AttemptNotNamed) => config.bounds.looks > 0,
        _ if about == refused(Refusal::OtherOperation) => config.expiry,
        _ => true,
    }
}

/// The names of everything that has to be reached in one configuration or another.
#[must_use]
pub fn everything() -> Vec<&'static str> {
    SOMETIMES.iter().map(|(name, ..)| *name).collect()
}
