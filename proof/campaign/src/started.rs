//! The judgement of starts: that work begins once unless it is proved that nothing was done, and never without a reservation. By what services noted
//! before they acted and before they gave their word; Semel's history is asked only who took over from whom. Pure.

use crate::fencing::{Kept, Line};
use crate::off::StoreTime;
use crate::plan::{BRIEF, Operation, Variant, Window};
use crate::profile::Profile;
use crate::starts::{Event, Start};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// What starts are held against.
pub(crate) struct Books<'a> {
    pub(crate) profile: Profile,
    pub(crate) kept: &'a [Kept],
    pub(crate) history: &'a [Line],
    /// Under which attempts the provider made charges, by operation id.
    pub(crate) charged: &'a BTreeMap<String, Vec<i64>>,
    /// How far the store's time may have been from the true one.
    pub(crate) time: StoreTime,
}

/// A start and its place in the log.
type Placed<'a> = (usize, &'a Start);

/// One key of one account.
type Key = (u32, bool);

/// What started, and should not have.
pub(crate) fn objections<O: Borrow<Operation>>(
    plan: &[O],
    events: &[Event],
    books: &Books<'_>,
) -> Vec<String> {
    let mut by_reference = BTreeMap::new();
    for operation in plan {
        let operation = operation.borrow();
        for variant in Variant::EXECUTABLE {
            let key: Key = (operation.number, variant == Variant::Neighbour);
            by_reference.insert(operation.reference(variant), (key, operation.window));
        }
    }
    let mut case = Case::new(books, events);
    let mut by_key: BTreeMap<Key, (Window, Vec<Placed<'_>>)> = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        let Event::Start(start) = event else { continue };
        case.started.insert((start.operation_id.as_str(), start.attempt));
        let Some((key, window)) = by_reference.get(&start.reference) else {
            case.objections.push(format!("I11 {}: started, though nobody may ask for it", start.reference));
            continue;
        };
        by_key.entry(*key).or_insert((*window, Vec::new())).1.push((place, start));
    }
    for (window, starts) in by_key.values() {
        let renews = books.profile.renews() && *window == Window::Brief;
        for (number, later) in starts.iter().enumerate() {
            case.is_reserved(later.1, renews);
            for earlier in &starts[..number] {
                case.pair(*earlier, *later, renews);
            }
        }
    }
    for (operation_id, attempts) in books.charged {
        for attempt in attempts {
            if !case.started.contains(&(operation_id.as_str(), *attempt)) {
                case.objections
                    .push(format!("I11 {operation_id}: charged by attempt {attempt}, which never started"));
            }
        }
    }
    case.objections
}

struct Case<'a> {
    books: &'a Books<'a>,
    /// Where services said that an attempt did nothing.
    nothing: BTreeMap<(&'a str, i64), usize>,
    /// Where it was said that attempts up to this one have no effect any more.
    sealed: BTreeMap<&'a str, Vec<(usize, i64)>>,
    started: BTreeSet<(&'a str, i64)>,
    /// What happened to each attempt, by Semel's history.
    happened: BTreeSet<(&'a str, i64, &'a str)>,
    known: BTreeSet<&'a str>,
    objections: Vec<String>,
}

impl<'a> Case<'a> {
    fn new(books: &'a Books<'a>, events: &'a [Event]) -> Self {
        let nothing = events.iter().enumerate().filter_map(|(place, event)| match event {
            Event::Nothing { operation_id, attempt } => Some(((operation_id.as_str(), *attempt), place)),
            Event::Start(_) | Event::Sealed { .. } => None,
        });
        let mut sealed: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, event) in events.iter().enumerate() {
            if let Event::Sealed { operation_id, attempt } = event {
                sealed.entry(operation_id.as_str()).or_default().push((place, *attempt));
            }
        }
        let lines = books.history.iter();
        let known = books.kept.iter().map(|kept| kept.operation_id.as_str());
        Self {
            books,
            // The first word of each: later ones come in its wake.
            nothing: nothing.rev().collect(),
            sealed,
            started: BTreeSet::new(),
            happened: lines
                .clone()
                .map(|line| (line.operation_id.as_str(), line.attempt, line.happening.as_str()))
                .collect(),
            known: known.chain(lines.map(|line| line.operation_id.as_str())).collect(),
            objections: Vec::new(),
        }
    }

    /// P5: whatever started had its reservation in the store.
    fn is_reserved(&mut self, start: &Start, renews: bool) {
        let Start { operation_id, attempt, reserved, .. } = start;
        let there = match reserved {
            Some(there) => *there,
            // What did nothing is forgotten again, where it was the first attempt.
            None => {
                self.known.contains(operation_id.as_str())
                    || self.nothing.contains_key(&(operation_id.as_str(), *attempt))
            }
        };
        // A key that is used again takes the place of the operation before, which may start late.
        if !there && !renews {
            self.objections
                .push(format!("I12 {operation_id}: attempt {attempt} started without a reservation"));
        }
    }

    /// Two starts under one key: the earlier one has to be proved to have done nothing.
    fn pair(&mut self, earlier: Placed<'_>, later: Placed<'_>, renews: bool) {
        if earlier.1.operation_id == later.1.operation_id {
            self.same_operation(earlier, later);
        } else {
            self.two_operations(earlier, later, renews);
        }
    }

    fn same_operation(&mut self, one: Placed<'_>, other: Placed<'_>) {
        let id = one.1.operation_id.as_str();
        if one.1.attempt == other.1.attempt {
            self.objections.push(format!("I11 {id}: attempt {} started twice", one.1.attempt));
            return;
        }
        // A request that was long on its way may arrive after its successor: what counts is the order of attempts.
        let (first, next) = if one.1.attempt < other.1.attempt { (one, other) } else { (other, one) };
        let attempt = first.1.attempt;
        let proved = self.did_nothing_before(first.1, next.0);
        let taken_over =
            self.books.profile.takes_over() && self.happened.contains(&(id, attempt + 1, "taken_over"));
        if !proved && !taken_over {
            let next = next.1.attempt;
            self.objections.push(format!(
                "I11 {id}: attempt {next} started, and nothing proves that {attempt} did nothing"
            ));
        }
    }

    fn two_operations(&mut self, earlier: Placed<'_>, later: Placed<'_>, renews: bool) {
        if self.did_nothing_before(earlier.1, later.0) {
            return;
        }
        let (first, second) = (&earlier.1.operation_id, &later.1.operation_id);
        if !renews {
            self.objections.push(format!(
                "I11 {second}: started under the key of {first}, which is not proved to have done nothing"
            ));
            return;
        }
        let between = later.1.at.saturating_sub(earlier.1.at);
        if between < self.books.time.sure(BRIEF) {
            self.objections
                .push(format!("I11 {second}: started {between:?} after {first}, within the window"));
        }
    }

    fn did_nothing_before(&self, start: &Start, place: usize) -> bool {
        let id = start.operation_id.as_str();
        let said = self.nothing.get(&(id, start.attempt)).is_some_and(|said| *said < place);
        let sealed = self.sealed.get(id).map_or(&[][..], Vec::as_slice);
        said || sealed.iter().any(|(sealed, attempt)| *sealed < place && *attempt >= start.attempt)
    }
}

#[cfg(test)]
mod tests;
