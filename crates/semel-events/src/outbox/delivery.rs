//! Takes a batch to the sink: many aggregates at a time, one event of each after the other.

use super::queue::Pending;
use crate::message::Event;
use crate::sink::{Sink, Undelivered};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// So many events in a row that find the receiver unreachable are enough to give the rest of a batch up.
const ENOUGH: u64 = 16;

/// So many where the receiver could not be reached before. More than one: it might be the event that is the matter.
const ENOUGH_AHEAD: u64 = 2;

/// How a batch is taken to the sink.
pub(crate) struct Terms {
    /// How long one event may take.
    pub(crate) deadline: Duration,
    /// How many are under way at most.
    pub(crate) width: usize,
    /// Whether another one may be begun.
    pub(crate) may_begin: Arc<dyn Fn() -> bool + Send + Sync>,
    /// How often in a row the receiver could not be reached. If it could not, one event is sent ahead, and the others follow if it
    /// arrives: each time one of another aggregate, for it might be the event that is the matter.
    pub(crate) outages: u32,
}

/// What became of a batch.
#[derive(Default)]
pub(crate) struct Delivered {
    /// The receiver has confirmed these.
    pub(crate) published: Vec<Pending>,
    /// The receiver refused these; each is the first of its aggregate that was left.
    pub(crate) refused: Vec<(Pending, String)>,
    /// These come after one that was refused.
    pub(crate) behind: Vec<Pending>,
    /// These found the receiver unreachable.
    pub(crate) unreachable: Vec<(Pending, String)>,
}

impl Delivered {
    /// Whether the receiver said anything at all.
    pub(crate) fn heard_of_receiver(&self) -> bool {
        !self.published.is_empty() || !self.refused.is_empty()
    }
}

/// What the tasks of one batch know of each other.
#[derive(Default)]
struct Track {
    /// How many events in a row found the receiver unreachable.
    unreachable: AtomicU64,
    /// Whether the receiver said anything.
    heard: AtomicBool,
}

/// What became of one aggregate.
struct Carried {
    published: Vec<Pending>,
    /// The first that was not delivered, and why.
    failed: Option<(Pending, Undelivered)>,
    rest: Vec<Pending>,
}

pub(crate) async fn deliver<S: Sink>(sink: &Arc<S>, events: Vec<Pending>, terms: &Terms) -> Delivered {
    let (track, mut delivered, mut tasks) =
        (Arc::new(Track::default()), Delivered::default(), JoinSet::new());
    let mut groups = by_aggregate(events);
    let aside = usize::try_from(terms.outages).unwrap_or(0).checked_rem(groups.len()).unwrap_or(0);
    groups.rotate_left(aside);
    for group in groups {
        let ahead = terms.outages > 0 && !track.heard.load(Ordering::Relaxed);
        let width = if ahead { 1 } else { terms.width.max(1) };
        while tasks.len() >= width
            && let Some(carried) = tasks.join_next().await
        {
            take(carried, &mut delivered);
        }
        if !may_go_on(&track, terms) {
            break;
        }
        let carry = Carry { sink: Arc::clone(sink), track: Arc::clone(&track), deadline: terms.deadline };
        let may_begin = Arc::clone(&terms.may_begin);
        tasks.spawn(async move { carry.group(group, &*may_begin).await });
    }
    while let Some(carried) = tasks.join_next().await {
        take(carried, &mut delivered);
    }
    delivered
}

fn may_go_on(track: &Track, terms: &Terms) -> bool {
    let enough = if terms.outages > 0 { ENOUGH_AHEAD } else { ENOUGH };
    track.unreachable.load(Ordering::Relaxed) < enough && (terms.may_begin)()
}

fn take(carried: Result<Carried, tokio::task::JoinError>, delivered: &mut Delivered) {
    let carried = match carried {
        Ok(carried) => carried,
        Err(error) => {
            // Its events stay pending.
            tracing::error!(%error, "a sink panicked");
            return;
        }
    };
    delivered.published.extend(carried.published);
    match carried.failed {
        Some((event, Undelivered::Refused(error))) => {
            delivered.refused.push((event, error));
            delivered.behind.extend(carried.rest);
        }
        Some((event, Undelivered::Unreachable(error))) => delivered.unreachable.push((event, error)),
        None => {}
    }
}

/// The events of each aggregate, in their order.
fn by_aggregate(events: Vec<Pending>) -> Vec<Vec<Pending>> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Vec<Pending>> = Vec::new();
    for pending in events {
        match places.get(&pending.event.aggregate) {
            Some(place) => groups[*place].push(pending),
            None => {
                places.insert(pending.event.aggregate.clone(), groups.len());
                groups.push(vec![pending]);
            }
        }
    }
    for group in &mut groups {
        group.sort_by_key(|pending| pending.id);
    }
    groups
}

struct Carry<S> {
    sink: Arc<S>,
    track: Arc<Track>,
    deadline: Duration,
}

impl<S: Sink> Carry<S> {
    /// One after the other, up to the first that is not delivered.
    async fn group(&self, group: Vec<Pending>, may_begin: &(dyn Fn() -> bool + Send + Sync)) -> Carried {
        let mut carried = Carried { published: Vec::new(), failed: None, rest: Vec::new() };
        let mut group = group.into_iter();
        for pending in group.by_ref() {
            if !may_begin() {
                break;
            }
            match self.one(&pending.event).await {
                Ok(()) => carried.published.push(pending),
                Err(why) => {
                    carried.failed = Some((pending, why));
                    break;
                }
            }
        }
        carried.rest = group.collect();
        carried
    }

    async fn one(&self, event: &Event) -> Result<(), Undelivered> {
        let answer = tokio::time::timeout(self.deadline, self.sink.publish(event)).await;
        let answer = answer.unwrap_or_else(|_| Err(Undelivered::Unreachable("no answer in time".into())));
        if matches!(answer, Err(Undelivered::Unreachable(_))) {
            self.track.unreachable.fetch_add(1, Ordering::Relaxed);
        } else {
            // Whoever refuses an event is there, too.
            self.track.unreachable.store(0, Ordering::Relaxed);
            self.track.heard.store(true, Ordering::Relaxed);
        }
        answer
    }
}
