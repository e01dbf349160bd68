//! A receiver that keeps a list, and does as it is told.

use semel_events::message::Event;
use semel_events::sink::{Sink, Undelivered};
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::subject::PATIENCE;

/// What the receiver does with an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Does {
    Confirms,
    Refuses,
    IsUnreachable,
    /// Says nothing until it is released, and confirms then.
    Waits,
}

type Rule = Box<dyn Fn(&Event) -> Does + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Receiver(Arc<Inner>);

struct Inner {
    rule: Mutex<Rule>,
    /// What was confirmed, in this order, repetitions and all.
    confirmed: watch::Sender<Vec<Event>>,
    tries: watch::Sender<usize>,
    released: Notify,
    waiting: watch::Sender<usize>,
}

/// One publisher's way to the receiver: it must never have two events of one aggregate under way.
pub(crate) struct Way {
    receiver: Receiver,
    under_way: Mutex<HashSet<String>>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self::that(|_| Does::Confirms)
    }

    pub(crate) fn that(rule: impl Fn(&Event) -> Does + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            rule: Mutex::new(Box::new(rule)),
            confirmed: watch::Sender::default(),
            tries: watch::Sender::default(),
            released: Notify::new(),
            waiting: watch::Sender::default(),
        }))
    }

    /// From now on.
    pub(crate) fn now(&self, rule: impl Fn(&Event) -> Does + Send + Sync + 'static) {
        *self.0.rule.lock().unwrap() = Box::new(rule);
    }

    pub(crate) fn release(&self) {
        self.now(|_| Does::Confirms);
        self.0.released.notify_waiters();
    }

    pub(crate) fn sink(&self) -> Way {
        Way { receiver: self.clone(), under_way: Mutex::default() }
    }

    pub(crate) fn confirmed(&self) -> Vec<Event> {
        self.0.confirmed.borrow().clone()
    }

    /// What was confirmed of an aggregate for the first time, by the number that is its payload.
    pub(crate) fn first_times(&self, aggregate: &str) -> Vec<u32> {
        let mut seen = BTreeSet::new();
        let events = self.confirmed();
        let of_aggregate =
            events.iter().filter(|event| event.aggregate == aggregate && seen.insert(event.id));
        of_aggregate.map(number).collect()
    }

    pub(crate) fn ids(&self) -> BTreeSet<Uuid> {
        self.0.confirmed.borrow().iter().map(|event| event.id).collect()
    }

    /// Waits until so many different events were confirmed.
    pub(crate) async fn until_confirmed(&self, count: usize) {
        let enough = |events: &Vec<Event>| {
            events.len() >= count
                && events.iter().map(|event| event.id).collect::<HashSet<_>>().len() >= count
        };
        wait(self.0.confirmed.subscribe(), enough).await;
    }

    pub(crate) async fn until_tried(&self, times: usize) {
        wait(self.0.tries.subscribe(), |tries| *tries >= times).await;
    }

    pub(crate) fn tries(&self) -> usize {
        *self.0.tries.borrow()
    }

    pub(crate) async fn until_waiting(&self, count: usize) {
        wait(self.0.waiting.subscribe(), |waiting| *waiting >= count).await;
    }
}

async fn wait<T>(mut receiver: watch::Receiver<T>, enough: impl FnMut(&T) -> bool) {
    drop(tokio::time::timeout(PATIENCE, receiver.wait_for(enough)).await.expect("it happens").unwrap());
}

pub(crate) fn number(event: &Event) -> u32 {
    std::str::from_utf8(&event.payload).unwrap().parse().unwrap()
}

impl Sink for Way {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        let inner = &*self.receiver.0;
        assert!(
            self.under_way.lock().unwrap().insert(event.aggregate.clone()),
            "two of one aggregate at a time"
        );
        let _gone = OnItsWay(self, &event.aggregate);
        inner.tries.send_modify(|tries| *tries += 1);
        let does = (inner.rule.lock().unwrap())(event);
        match does {
            Does::Confirms => {}
            Does::Refuses => return Err(Undelivered::Refused("not of this kind".into())),
            Does::IsUnreachable => return Err(Undelivered::Unreachable("connection refused".into())),
            Does::Waits => {
                let released = inner.released.notified();
                inner.waiting.send_modify(|waiting| *waiting += 1);
                released.await;
            }
        }
        inner.confirmed.send_modify(|events| events.push(event.clone()));
        Ok(())
    }
}

struct OnItsWay<'a>(&'a Way, &'a str);

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.lock().unwrap().remove(self.1);
    }
}
