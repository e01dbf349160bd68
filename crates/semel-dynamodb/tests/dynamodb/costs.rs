//! What operations cost, in the capacity units that the emulator reports. docs/guides/dynamodb.md turns them into money.

use crate::fixture::{Fixture, create, remove, swap};
use semel::{Created, DueKind, DueQuery, State, Store, Swap, Swapped, When};
use semel_conformance::samples::{in_state, key, next, reserved, response};

/// The units of all requests since they were forgotten.
fn units(fixture: &Fixture) -> f64 {
    let units = fixture.table.proxy.units();
    fixture.table.proxy.forget();
    units
}

/// What an operation costs at most, as the guide has it.
const LIMITS: [(&str, u32); 8] = [
    ("new", 5),
    ("completed", 8),
    ("replay", 1),
    ("conflict", 1),
    ("dropped", 10),
    ("purged", 26),
    ("idle", 6),
    ("removed", 7),
];

#[tokio::test]
async fn operations_cost_no_more_than_the_guide_says() {
    let fixture = Fixture::new().await;
    fixture.store.read(vec![]).await.unwrap();
    fixture.table.proxy.count_units();
    fixture.table.proxy.forget();

    assert_eq!(create(&fixture.store, reserved(key(1))).await.unwrap(), Created::Inserted);
    let new = units(&fixture);
    let record = fixture.record(&key(1)).await;
    units(&fixture);

    let mut done = next(&record);
    done.state = State::Completed;
    done.response = Some(response("{\"id\": \"pay_1\"}"));
    done.times.completed = Some(When::NOW);
    (done.times.expires, done.times.purge) = (Some(When::NOW), Some(When::NOW));
    let completion = Swap { expected: record.expected(), next: Box::new(done), history: None };
    assert_eq!(fixture.store.swap(vec![completion]).await.unwrap().items, [Swapped::Done]);
    let completed = units(&fixture);

    assert!(matches!(create(&fixture.store, reserved(key(1))).await.unwrap(), Created::Exists(_)));
    let replay = units(&fixture);

    assert!(matches!(swap(&fixture.store, &record).await.unwrap(), Swapped::Changed(_)));
    let conflict = units(&fixture);

    assert_eq!(fixture.store.drop_answers(1).await.unwrap().items.len(), 1);
    let dropped = units(&fixture);
    assert_eq!(fixture.store.purge(1).await.unwrap().items.len(), 1);
    let purged = units(&fixture);

    fixture.store.due(DueQuery { kind: DueKind::Lease, after: None, limit: 100 }).await.unwrap();
    let idle = units(&fixture);

    let other = fixture.insert(in_state(State::Completed, key(2))).await;
    units(&fixture);
    assert_eq!(remove(&fixture.store, &other).await.unwrap(), Swapped::Done);
    let removed = units(&fixture);

    let found = [
        ("new", new),
        ("completed", completed),
        ("replay", replay),
        ("conflict", conflict),
        ("dropped", dropped),
        ("purged", purged),
        ("idle", idle),
        ("removed", removed),
    ];
    for ((what, units), (named, limit)) in found.into_iter().zip(LIMITS) {
        assert_eq!(what, named);
        let limit = f64::from(limit);
        assert!(
            units <= limit,
            "{what}: {units} units in place of {limit}, as docs/guides/dynamodb.md has it ({found:?})"
        );
    }
}
