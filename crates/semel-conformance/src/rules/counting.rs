//! How many keys of a tenant are live.

use crate::samples::{in_state, key, reserved};
use crate::{Bench, Checked, Client};
use semel::{RecordKey, State, When};

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
