//! Stored answers that were damaged: which client's they are. Pure.

use crate::plan::{Operation, Variant};
use crate::starts::Event;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

/// When an answer was damaged in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Damaged {
    /// Not before this.
    pub(crate) begun: Duration,
    /// At this time it was done.
    pub(crate) done: Duration,
}

/// The damaged answers by account and key. The store knows the operation by its id alone where keys are sealed; what was asked for under this id is in the
/// log of starts, since nothing has an answer that never started.
pub(crate) fn by_key<O: Borrow<Operation>>(
    plan: &[O],
    events: &[Event],
    damaged: &BTreeMap<String, Damaged>,
) -> BTreeMap<(u32, String), Damaged> {
    let mut by_reference = BTreeMap::new();
    for operation in plan.iter().map(Borrow::borrow) {
        for variant in Variant::EXECUTABLE {
            by_reference.insert(operation.reference(variant), (operation.tenant_of(variant), &operation.key));
        }
    }
    let of_start = |event: &Event| {
        let Event::Start(start) = event else { return None };
        let damaged = damaged.get(&start.operation_id)?;
        let (account, key) = by_reference.get(&start.reference)?;
        Some(((*account, (*key).clone()), *damaged))
    };
    events.iter().filter_map(of_start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::operations;
    use crate::starts::Start;

    #[test]
    fn damage_is_found_by_what_was_started_under_the_operation() {
        let plan = operations(1, 2, 2);
        let start = |operation_id: &str, reference: String| {
            let (operation_id, at) = (operation_id.to_owned(), Duration::ZERO);
            Event::Start(Start { operation_id, attempt: 1, reference, at, reserved: None })
        };
        let events = [
            start("0a", plan[0].reference(Variant::Plain)),
            Event::Nothing { operation_id: "0b".into(), attempt: 1 },
            start("0c", plan[1].reference(Variant::Neighbour)),
        ];
        let done = |seconds| Damaged { begun: Duration::ZERO, done: Duration::from_secs(seconds) };
        let damaged = [("0b".to_owned(), done(2)), ("0c".to_owned(), done(3))].into();
        let key = (plan[1].tenant_of(Variant::Neighbour), plan[1].key.clone());
        assert_eq!(by_key(&plan, &events, &damaged), [(key, done(3))].into());
    }
}
