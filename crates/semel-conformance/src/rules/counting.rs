//! How many keys of a tenant are live.

use crate::samples::{in_state, key, reserved};
use crate::{Bench, Checked, Client};
use semel::{KeyScope, LiveOperations, RecordKey, State, When};

async fn of_operations(client: &Client, newest: usize) -> LiveOperations {
    client.store.live_operations(newest).await.expect("the store counts")
}

pub async fn live_keys_are_counted_by_operation_and_scope(bench: Bench) -> Checked {
    let client = bench.client();
    assert_eq!(
        of_operations(&client, 100).await,
        LiveOperations { is_all: true, ..LiveOperations::default() }
    );
    let mut expected = LiveOperations { is_all: true, ..LiveOperations::default() };
    let mut number = 0;
    for operation in ["create_payment", "POST /payments/1", "* odd", ""] {
        for scope in KeyScope::ALL {
            for state in State::ALL {
                let key = RecordKey { operation: operation.into(), ..key(number) }.in_scope(scope);
                client.insert(in_state(state, key.clone())).await;
                number += 1;
                if state != State::Expired {
                    *expected.operations.entry((operation.to_owned(), scope)).or_default() += 1;
                }
                if state.is_final() {
                    // Its window is over, whatever is written.
                    let mut over = in_state(state, RecordKey { key: format!("over-{number}").into(), ..key });
                    over.times.expires = Some(When::NOW);
                    client.insert(over).await;
                }
            }
        }
    }
    assert_eq!(of_operations(&client, 1000).await, expected);
    Ok(())
}

pub async fn no_more_records_are_looked_at_than_asked_for_and_the_newest_first(bench: Bench) -> Checked {
    let client = bench.client();
    for number in 0..20 {
        let operation = if number < 15 { "old" } else { "new" };
        client.insert(reserved(RecordKey { operation: operation.into(), ..key(number) })).await;
    }
    let of = |operation: &str, count| ((operation.to_owned(), KeyScope::Operation), count);
    for (newest, operations, is_all) in [
        (0, vec![], false),
        (3, vec![of("new", 3)], false),
        (7, vec![of("new", 5), of("old", 2)], false),
        (19, vec![of("new", 5), of("old", 14)], false),
        (20, vec![of("new", 5), of("old", 15)], false),
        (21, vec![of("new", 5), of("old", 15)], true),
        (usize::MAX, vec![of("new", 5), of("old", 15)], true),
    ] {
        let live = of_operations(&client, newest).await;
        let operations = operations.into_iter().collect();
        assert_eq!(live.is_all, is_all, "the newest {newest}");
        assert_eq!(live.operations, operations, "the newest {newest}");
    }
    Ok(())
}

async fn live(client: &Client, tenant: &str, at_most: u64) -> u64 {
    client.store.count_live(tenant.into(), at_most).await.expect("the store counts")
}

pub async fn keys_are_counted_for_their_tenant_until_they_expire(bench: Bench) -> Checked {
    let client = bench.client();
    let tenant = key(0).tenant;
    assert_eq!(live(&client, &tenant, 100).await, 0);
    let mut expected = 0;
    for (number, state) in (0..).zip(State::ALL) {
        client.insert(in_state(state, key(number))).await;
        // Names that are nearly the same are others' all the same.
        for other in ["ACME", "acme ", "acme\0", "acm", ""] {
            client
                .insert(in_state(state, RecordKey::new(other, "create_payment", format!("key-{number:012}"))))
                .await;
        }
        expected += u64::from(state != State::Expired);
        assert_eq!(live(&client, &tenant, 100).await, expected, "{state:?}");
        if state.is_final() {
            // Its window is over, whatever is written.
            let mut over = in_state(state, key(100 + number));
            over.times.expires = Some(When::NOW);
            client.insert(over).await;
            assert_eq!(live(&client, &tenant, 100).await, expected, "{state:?}, window over");
        }
    }
    let record = client.record(&key(0)).await;
    client.remove(record.expected()).await;
    assert_eq!(live(&client, &tenant, 100).await, expected - u64::from(record.state != State::Expired));
    Ok(())
}

pub async fn a_count_goes_no_further_than_it_is_asked_for(bench: Bench) -> Checked {
    let client = bench.client();
    client
        .store
        .create((0..20).map(|number| reserved(key(number))).collect())
        .await
        .expect("the store creates");
    for (at_most, counted) in [(0, 0), (1, 1), (19, 19), (20, 20), (21, 20), (u64::MAX, 20)] {
        assert_eq!(live(&client, &key(0).tenant, at_most).await, counted, "at most {at_most}");
    }
    Ok(())
}

pub async fn another_instance_counts_the_same(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    for number in 0..5 {
        client.insert(reserved(key(number))).await;
        assert_eq!(live(&other, &key(0).tenant, 100).await, u64::from(number) + 1);
    }
    Ok(())
}
