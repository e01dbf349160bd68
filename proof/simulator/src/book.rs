//! What really happened: the provider's ledger, who started what, and who was told never to.

use crate::rules::Rule;
use semel::OperationId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The request of a client, as it reaches whoever works.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Order {
    /// Which operation of the plan.
    pub(crate) number: u32,
    pub(crate) tenant: u32,
    /// Which of the bodies that came under the key.
    pub(crate) altered: bool,
    pub(crate) id: OperationId,
    pub(crate) attempt: u32,
}

impl Order {
    /// Whether the provider declines it: always the same.
    pub(crate) fn is_declined(&self) -> bool {
        self.number.is_multiple_of(17)
    }
}

/// Money moved.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    pub(crate) order: Order,
}

/// An attempt began.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) at: u64,
    pub(crate) order: Order,
    /// Whether the store had this attempt at that moment.
    pub(crate) reserved: bool,
}

/// Somebody's proof that an attempt did nothing, and will not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof {
    pub(crate) at: u64,
    pub(crate) attempt: u32,
    /// It is about all attempts up to this one.
    pub(crate) up_to: bool,
}

impl Proof {
    pub(crate) fn is_about(self, attempt: u32) -> bool {
        self.attempt == attempt || (self.up_to && attempt <= self.attempt)
    }
}

#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) effects: Vec<Effect>,
    pub(crate) starts: Vec<Start>,
    pub(crate) proofs: BTreeMap<OperationId, Vec<Proof>>,
    /// Attempts up to this one are refused.
    seals: BTreeMap<OperationId, u32>,
    known: BTreeMap<OperationId, Known>,
    /// The attempts that a receipt was written for.
    pub(crate) receipts: BTreeMap<OperationId, Vec<Order>>,
    /// When another key began to seal.
    pub(crate) key_changes: Vec<u64>,
    /// What was ordered by each attempt that started.
    orders: BTreeMap<(OperationId, u32), Order>,
}

/// What the provider knows of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    Charged,
    Declined,
}

/// What the provider does with an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Charged {
    Done,
    Declined,
    /// Nobody may ask for this attempt any more.
    Sealed,
}

/// Survives every crash.
#[derive(Default)]
pub(crate) struct Book(Mutex<Pages>);

impl Book {
    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    pub(crate) fn is_sealed(&self, order: &Order) -> bool {
        self.seals.get(&order.id).is_some_and(|up_to| order.attempt <= *up_to)
    }

    pub(crate) fn known(&self, id: OperationId) -> Option<Known> {
        self.known.get(&id).copied()
    }

    pub(crate) fn begin(&mut self, start: Start) {
        self.orders.insert((start.order.id, start.order.attempt), start.order.clone());
        self.starts.push(start);
    }

    pub(crate) fn order(&self, id: OperationId, attempt: u32) -> Option<Order> {
        self.orders.get(&(id, attempt)).cloned()
    }

    /// Carries an order out.
    pub(crate) fn charge(&mut self, at: u64, order: &Order, rule: &Rule) -> Charged {
        match self.known(order.id) {
            Some(Known::Charged) if rule.deduplicates() => return Charged::Done,
            Some(Known::Declined) if rule.deduplicates() => return Charged::Declined,
            _ if self.is_sealed(order) => return Charged::Sealed,
            _ => {}
        }
        if order.is_declined() {
            self.known.entry(order.id).or_insert(Known::Declined);
            self.prove(at, order.id, order.attempt, false);
            return Charged::Declined;
        }
        self.effect(order);
        Charged::Done
    }

    pub(crate) fn effect(&mut self, order: &Order) {
        self.known.insert(order.id, Known::Charged);
        self.effects.push(Effect { order: order.clone() });
    }

    /// Writes a receipt, once if `deduplicates`; whether it is a new one.
    pub(crate) fn write_receipt(&mut self, order: &Order, deduplicates: bool) -> bool {
        let written = self.receipts.entry(order.id).or_default();
        let is_new = written.is_empty() || !deduplicates;
        written.extend(is_new.then(|| order.clone()));
        is_new
    }

    /// A crash took the transaction back that an effect was in.
    pub(crate) fn take_back(&mut self, id: OperationId) {
        self.known.remove(&id);
        self.effects.retain(|effect| effect.order.id != id);
    }

    /// What became of the attempts up to this one. What did nothing never will.
    pub(crate) fn ask(&mut self, at: u64, id: OperationId, attempt: u32) -> Option<Known> {
        let known = self.known(id);
        if known.is_none() {
            let seal = self.seals.entry(id).or_default();
            *seal = attempt.max(*seal);
            self.prove(at, id, attempt, true);
        }
        known
    }

    /// Whether somebody has said that this attempt did nothing and never will.
    pub(crate) fn is_proved(&self, id: OperationId, attempt: u32) -> bool {
        self.proofs.get(&id).is_some_and(|proofs| proofs.iter().any(|proof| proof.is_about(attempt)))
    }

    /// This attempt did nothing, and somebody says so.
    pub(crate) fn prove(&mut self, at: u64, id: OperationId, attempt: u32, up_to: bool) {
        self.proofs.entry(id).or_default().push(Proof { at, attempt, up_to });
    }
}
