//! The ledger in memory, and every decision about it. It performs nothing: whoever holds it under the lock writes down what it
//! adds, in the same order, before anybody is told.

use crate::entry::{self, Entry, Fact, Object, Outcome, Transaction};
use crate::order::Order;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// All entries, and what they add up to. It has the size of the ledger: the ledger of a test fits into memory.
#[derive(Default)]
pub(crate) struct Book {
    entries: Vec<Arc<Entry>>,
    subjects: HashMap<(Object, String), Subject>,
    /// Charges that were made, by id.
    charges: HashMap<String, u64>,
    /// Entries whose webhooks nobody has taken yet.
    owed: BTreeSet<u64>,
    summary: Summary,
}

/// What is known of one identity of one kind of object.
#[derive(Default)]
struct Subject {
    entries: Vec<u64>,
    /// The first charge or refund, made or declined: what a request that comes again is compared with.
    first: Option<u64>,
    made: u64,
    declined: u64,
    /// Attempts up to this one have no effect any more.
    sealed: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub(crate) struct Summary {
    entries: u64,
    charges: u64,
    refunds: u64,
    declined: u64,
    sealed: u64,
    identities_charged_twice: u64,
    identities_refunded_twice: u64,
    webhooks_owed: u64,
}

/// The rules that an order is decided by.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) deduplicates: bool,
    pub(crate) declines: bool,
    pub(crate) notifies: bool,
}

/// What became of an order.
pub(crate) enum Placed {
    /// This order made it.
    Now(Arc<Entry>),
    /// It was there before.
    Before(Arc<Entry>),
    Refused(Refusal),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Sealed { up_to: u32 },
    OtherTerms,
    NoSuchCharge,
    MoreThanTheCharge,
}

/// What an identity has done.
#[derive(Serialize)]
pub(crate) struct Deeds {
    /// Charges and refunds that were made.
    pub(crate) effects: u64,
    charges: u64,
    refunds: u64,
    declined: u64,
    #[serde(serialize_with = "entry::shared")]
    entries: Vec<Arc<Entry>>,
}

/// Why a line does not belong where it is.
#[derive(Debug, thiserror::Error)]
#[error("it is entry {found}, and should be entry {wanted}: lines are missing or were changed")]
pub(crate) struct OutOfOrder {
    found: u64,
    wanted: u64,
}

impl Book {
    /// The sequence number of the last entry; 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(crate) fn entry(&self, sequence: u64) -> Option<&Arc<Entry>> {
        self.entries.get(usize::try_from(sequence).ok()?.checked_sub(1)?)
    }

    /// The entries after this sequence number.
    pub(crate) fn after(&self, sequence: u64) -> &[Arc<Entry>] {
        let from = usize::try_from(sequence).unwrap_or(usize::MAX).min(self.entries.len());
        &self.entries[from..]
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary { entries: self.last(), webhooks_owed: self.owed.len() as u64, ..self.summary }
    }

    /// The entries after `sequence` and up to `last` whose webhooks are to be delivered.
    pub(crate) fn owed(&self, sequence: u64, last: u64) -> Vec<u64> {
        if sequence >= last { Vec::new() } else { self.owed.range(sequence + 1..=last).copied().collect() }
    }

    /// Takes in an entry that was read from the file.
    pub(crate) fn read(&mut self, entry: Entry) -> Result<(), OutOfOrder> {
        let wanted = self.last() + 1;
        if entry.sequence != wanted {
            return Err(OutOfOrder { found: entry.sequence, wanted });
        }
        self.keep(entry);
        Ok(())
    }

    /// Charges or refunds, or says why not.
    pub(crate) fn place(&mut self, order: Order, rules: Rules, now: u64) -> Placed {
        if let Some(subject) = self.subject(order.object, &order.identity) {
            // Before anything else: who was told that there is nothing relies on it that this attempt came too late.
            if order.attempt <= subject.sealed {
                return Placed::Refused(Refusal::Sealed { up_to: subject.sealed });
            }
            if let Some(first) =
                subject.first.filter(|_| rules.deduplicates).and_then(|first| self.entry(first))
            {
                let same =
                    first.transaction().is_some_and(|(transaction, _)| transaction.terms == order.terms);
                return match same {
                    true => Placed::Before(Arc::clone(first)),
                    false => Placed::Refused(Refusal::OtherTerms),
                };
            }
        }
        if let Some(refusal) = self.not_to_be_refunded(&order) {
            return Placed::Refused(refusal);
        }
        let Order { id, object, identity, attempt, terms, operation_id, when_succeeded, when_declined } =
            order;
        let webhook_response = if rules.declines { when_declined } else { when_succeeded };
        let notify = rules.notifies;
        let transaction =
            Transaction { id, identity, attempt, terms, operation_id, notify, webhook_response };
        let fact = match (rules.declines, object) {
            (true, _) => Fact::Declined(transaction),
            (false, Object::Charge) => Fact::Charge(transaction),
            (false, Object::Refund) => Fact::Refund(transaction),
        };
        Placed::Now(self.append(fact, now))
    }

    /// Each refund is held against its charge alone, and never against the refunds before it: a second refund that should not
    /// be is to be seen in the ledger, and not to be hidden by a rule of ours.
    fn not_to_be_refunded(&self, order: &Order) -> Option<Refusal> {
        let charge_id = order.terms.charge_id.as_ref()?;
        let charge = self.charges.get(charge_id).and_then(|sequence| self.entry(*sequence));
        let Some((charge, _)) = charge.and_then(|charge| charge.transaction()) else {
            return Some(Refusal::NoSuchCharge);
        };
        let within =
            charge.terms.currency == order.terms.currency && order.terms.amount <= charge.terms.amount;
        (!within).then_some(Refusal::MoreThanTheCharge)
    }

    /// What became of this identity. If nothing did, attempts up to this one are sealed: absence is a promise.
    pub(crate) fn ask(
        &mut self,
        object: Object,
        identity: &str,
        attempt: u32,
        now: u64,
    ) -> Option<Arc<Entry>> {
        let subject = self.subject(object, identity);
        if let Some(first) = subject.and_then(|subject| subject.first).and_then(|first| self.entry(first)) {
            return Some(Arc::clone(first));
        }
        if subject.is_none_or(|subject| subject.sealed < attempt) {
            self.append(Fact::Sealed { object, identity: identity.to_owned(), attempt }, now);
        }
        None
    }

    /// Notes that somebody took the webhook of this entry.
    pub(crate) fn delivered(&mut self, entry: u64, now: u64) {
        if self.owed.contains(&entry) {
            self.append(Fact::Delivered { entry }, now);
        }
    }

    /// What this identity has done; of its entries the first `limit`.
    pub(crate) fn deeds(&self, identity: &str, limit: usize) -> Deeds {
        let of = |object| self.subject(object, identity);
        let (charges, refunds) = (of(Object::Charge), of(Object::Refund));
        let sum = |count: fn(&Subject) -> u64| [charges, refunds].into_iter().flatten().map(count).sum();
        let sequences = [charges, refunds].into_iter().flatten().flat_map(|subject| &subject.entries);
        let mut sequences: Vec<u64> = sequences.copied().collect();
        sequences.sort_unstable();
        Deeds {
            effects: sum(|subject| subject.made),
            charges: charges.map_or(0, |subject| subject.made),
            refunds: refunds.map_or(0, |subject| subject.made),
            declined: sum(|subject| subject.declined),
            entries: sequences
                .iter()
                .take(limit)
                .filter_map(|sequence| self.entry(*sequence).cloned())
                .collect(),
        }
    }

    fn subject(&self, object: Object, identity: &str) -> Option<&Subject> {
        self.subjects.get(&(object, identity.to_owned()))
    }

    fn append(&mut self, fact: Fact, now: u64) -> Arc<Entry> {
        self.keep(Entry { sequence: self.last() + 1, at: now, fact })
    }

    fn keep(&mut self, entry: Entry) -> Arc<Entry> {
        let sequence = entry.sequence;
        match &entry.fact {
            Fact::Sealed { object, identity, attempt } => {
                let subject = self.subjects.entry((*object, identity.clone())).or_default();
                subject.sealed = subject.sealed.max(*attempt);
                subject.entries.push(sequence);
                self.summary.sealed += 1;
            }
            Fact::Delivered { entry } => {
                self.owed.remove(entry);
            }
            Fact::Charge(_) | Fact::Refund(_) | Fact::Declined(_) => {}
        }
        if let Some((transaction, outcome)) = entry.transaction() {
            self.count(sequence, transaction, outcome);
        }
        let entry = Arc::new(entry);
        self.entries.push(Arc::clone(&entry));
        entry
    }

    fn count(&mut self, sequence: u64, transaction: &Transaction, outcome: Outcome) {
        let object = transaction.object();
        let subject = self.subjects.entry((object, transaction.identity.clone())).or_default();
        subject.entries.push(sequence);
        subject.first.get_or_insert(sequence);
        if transaction.notify {
            self.owed.insert(sequence);
        }
        let summary = &mut self.summary;
        if outcome == Outcome::Declined {
            subject.declined += 1;
            summary.declined += 1;
            return;
        }
        subject.made += 1;
        let (made, twice) = match object {
            Object::Charge => {
                self.charges.insert(transaction.id.clone(), sequence);
                (&mut summary.charges, &mut summary.identities_charged_twice)
            }
            Object::Refund => (&mut summary.refunds, &mut summary.identities_refunded_twice),
        };
        *made += 1;
        // The second one makes it twice; a third one does not make it more so.
        *twice += u64::from(subject.made == 2);
    }
}

#[cfg(test)]
mod tests;
