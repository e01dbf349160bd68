//! Items of one batch are independent, and are answered in their order.

use super::races::at_once;
use crate::samples::{key, next, reserved};
use crate::{Bench, Checked, Client};
use semel::{Created, Draft, OperationId, Owner, Record, RecordKey, Swap, Swapped};
use std::time::Duration;

fn swap_of(record: &Record) -> Swap {
    Swap { expected: record.expected(), next: Box::new(next(record)), history: None }
}

async fn inserted(client: &Client, numbers: std::ops::Range<u32>) -> Vec<Record> {
    let drafts: Vec<Draft> = numbers.map(|number| reserved(key(number))).collect();
    let answer = client.store.create(drafts.clone()).await.expect("the store creates");
    assert!(answer.items.iter().all(|created| *created == Created::Inserted));
    drafts.into_iter().map(|draft| draft.at(answer.now)).collect()
}

pub async fn an_empty_batch_is_answered_with_the_time(bench: Bench) -> Checked {
    let store = bench.store();
    assert!(store.create(vec![]).await.expect("the store creates").items.is_empty());
    assert!(store.swap(vec![]).await.expect("the store swaps").items.is_empty());
    assert!(store.remove(vec![]).await.expect("the store removes").items.is_empty());
    assert!(store.read(vec![]).await.expect("the store reads").items.is_empty());
    assert!(store.find(vec![]).await.expect("the store finds").items.is_empty());
    Ok(())
}

pub async fn a_large_batch_is_answered_item_by_item_in_order(bench: Bench) -> Checked {
    let client = bench.client();
    let records = inserted(&client, 0..600).await;
    // Every third one is stale, every fifth one is not there.
    let swaps: Vec<Swap> = (0..600)
        .zip(&records)
        .map(|(at, record)| {
            let mut swap = swap_of(record);
            if at % 5 == 0 {
                swap.expected.key = key(100_000 + at);
                swap.next.key = swap.expected.key.clone();
            } else if at % 3 == 0 {
                (swap.expected.version, swap.next.version) = (7, 8);
            }
            swap
        })
        .rev()
        .collect();
    let answer = client.store.swap(swaps).await.expect("the store swaps");
    assert_eq!(answer.items.len(), records.len());
    for (at, (record, swapped)) in (0..).zip(records.iter().zip(answer.items.iter().rev())) {
        match swapped {
            Swapped::Missing => assert_eq!(at % 5, 0),
            Swapped::Changed(found) => assert_eq!((at % 3, &**found), (0, record)),
            Swapped::Done => assert!(at % 3 != 0 && at % 5 != 0),
            other => panic!("no transaction holds it, and it is not damaged: {other:?}"),
        }
    }
    let keys: Vec<RecordKey> = records.iter().map(|record| record.key.clone()).rev().collect();
    let ids: Vec<OperationId> = records.iter().map(|record| record.operation_id).rev().collect();
    let read = client.store.read(keys).await.expect("the store reads").items;
    let found = client.store.find(ids).await.expect("the store finds").items;
    assert_eq!(read, found);
    for (at, (before, after)) in (0..).zip(records.iter().zip(read.iter().rev())) {
        let after = after.as_ref().expect("it is there");
        let done = at % 3 != 0 && at % 5 != 0;
        assert_eq!((after.operation_id, after.version), (before.operation_id, if done { 2 } else { 1 }));
    }
    Ok(())
}

pub async fn a_create_that_loses_leaves_the_others_done(bench: Bench) -> Checked {
    let client = bench.client();
    let there = client.insert(reserved(key(2))).await;
    let drafts: Vec<Draft> = (1..=3).map(|number| reserved(key(number))).collect();
    let answer = client.store.create(drafts.clone()).await.expect("the store creates");
    assert_eq!(answer.items, [Created::Inserted, Created::Exists(Box::new(there)), Created::Inserted]);
    for at in [0, 2] {
        assert_eq!(client.record(&drafts[at].key).await, drafts[at].clone().at(answer.now));
    }
    Ok(())
}

pub async fn a_swap_that_loses_leaves_the_others_done(bench: Bench) -> Checked {
    let client = bench.client();
    let records = inserted(&client, 0..4).await;
    let mut swaps: Vec<Swap> = records.iter().map(swap_of).collect();
    (swaps[1].expected.version, swaps[1].next.version) = (9, 10);
    client.remove(records[2].expected()).await;
    let answer = client.store.swap(swaps).await.expect("the store swaps");
    let changed = Swapped::Changed(Box::new(records[1].clone()));
    assert_eq!(answer.items, [Swapped::Done, changed, Swapped::Missing, Swapped::Done]);
    assert_eq!(client.record(&key(0)).await.version, 2);
    assert_eq!(client.record(&key(1)).await, records[1]);
    assert_eq!(client.read(&key(2)).await, None);
    assert_eq!(client.record(&key(3)).await.version, 2);
    Ok(())
}

pub async fn a_removal_that_loses_leaves_the_others_done(bench: Bench) -> Checked {
    let client = bench.client();
    let records = inserted(&client, 0..3).await;
    let mut batch: Vec<_> = records.iter().map(Record::expected).collect();
    batch[1].version = 9;
    let answer = client.store.remove(batch).await.expect("the store removes");
    let changed = Swapped::Changed(Box::new(records[1].clone()));
    assert_eq!(answer.items, [Swapped::Done, changed, Swapped::Done]);
    assert_eq!(client.read(&key(0)).await, None);
    assert_eq!(client.record(&key(1)).await, records[1]);
    Ok(())
}

pub async fn of_two_creates_of_one_key_in_one_batch_one_wins(bench: Bench) -> Checked {
    let client = bench.client();
    for round in 0..4 {
        let drafts = vec![reserved(key(round)), reserved(key(round)), reserved(key(round))];
        let answer = client.store.create(drafts.clone()).await.expect("the store creates");
        let winners: Vec<usize> = (0..3).filter(|at| answer.items[*at] == Created::Inserted).collect();
        assert_eq!(winners.len(), 1, "{:?}", answer.items);
        let record = drafts[winners[0]].clone().at(answer.now);
        assert_eq!(client.record(&key(round)).await, record);
        for (at, created) in answer.items.iter().enumerate().filter(|(at, _)| *at != winners[0]) {
            assert_eq!(
                *created,
                Created::Exists(Box::new(record.clone())),
                "the other is told what is there"
            );
            assert_eq!(client.find(drafts[at].operation_id).await, None);
        }
    }
    Ok(())
}

pub async fn of_two_swaps_of_one_record_in_one_batch_one_is_done(bench: Bench) -> Checked {
    let client = bench.client();
    for round in 0..4 {
        let before = client.insert(reserved(key(round))).await;
        let swaps: Vec<Swap> = (0..3)
            .map(|_| {
                let mut swap = swap_of(&before);
                swap.next.owner = Owner::random();
                swap
            })
            .collect();
        let answer = client.store.swap(swaps.clone()).await.expect("the store swaps");
        let done: Vec<usize> = (0..3).filter(|at| answer.items[*at] == Swapped::Done).collect();
        assert_eq!(done.len(), 1, "{:?}", answer.items);
        let record = swaps[done[0]].next.clone().at(answer.now);
        assert_eq!(client.record(&key(round)).await, record);
        for swapped in answer.items.iter().filter(|swapped| **swapped != Swapped::Done) {
            assert_eq!(
                *swapped,
                Swapped::Changed(Box::new(record.clone())),
                "the other is told what is there"
            );
        }
    }
    Ok(())
}

pub async fn of_two_removals_of_one_record_in_one_batch_one_is_done(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let batch = vec![record.expected(), record.expected()];
    let mut items = client.store.remove(batch).await.expect("the store removes").items;
    items.sort_by_key(|swapped| *swapped != Swapped::Done);
    assert_eq!(items, [Swapped::Done, Swapped::Missing]);
    assert_eq!(client.read(&key(1)).await, None);
    Ok(())
}

pub async fn one_read_may_name_a_key_twice(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let keys = vec![key(1), key(2), key(1)];
    let read = client.store.read(keys).await.expect("the store reads").items;
    assert_eq!(read, [Some(record.clone()), None, Some(record.clone())]);
    let ids = vec![record.operation_id, OperationId::random(), record.operation_id];
    let found = client.store.find(ids).await.expect("the store finds").items;
    assert_eq!(found, [Some(record.clone()), None, Some(record)]);
    Ok(())
}

/// Two clients send the same keys in opposite orders, over and over: a store that locks in the order of arrival deadlocks.
async fn opposite_orders(clients: [Client; 2]) {
    const KEYS: u32 = 12;
    for round in 0..6 {
        let first = round * KEYS;
        let drafts: [Vec<Draft>; 2] = [
            (first..first + KEYS).map(|number| reserved(key(number))).collect(),
            (first..first + KEYS).rev().map(|number| reserved(key(number))).collect(),
        ];
        let race = at_once(2, |number| {
            let (client, mut drafts) = (clients[number].clone(), drafts[number].clone());
            async move {
                let mut won = Vec::new();
                while !drafts.is_empty() {
                    let answer = client.store.create(drafts.clone()).await.expect("the store creates");
                    let mut locked = Vec::new();
                    for (draft, created) in drafts.into_iter().zip(answer.items) {
                        match created {
                            Created::Inserted => won.push(draft.operation_id),
                            Created::Exists(_) => {}
                            Created::Locked => locked.push(draft),
                            other => panic!("the store cannot create: {other:?}"),
                        }
                    }
                    drafts = locked;
                }
                won
            }
        });
        let outcomes = tokio::time::timeout(Duration::from_secs(20), race)
            .await
            .expect("batches do not wait for each other");
        let won: Vec<OperationId> = outcomes.into_iter().flatten().collect();
        assert_eq!(won.len(), KEYS as usize, "each key has one winner");
        for number in first..first + KEYS {
            assert!(won.contains(&clients[0].record(&key(number)).await.operation_id));
        }
    }
}

pub async fn batches_in_opposite_orders_end_and_each_key_has_one_winner(bench: Bench) -> Checked {
    opposite_orders([bench.client(), bench.client()]).await;
    Ok(())
}

pub async fn batches_in_opposite_orders_over_two_instances_end_and_each_key_has_one_winner(
    bench: Bench,
) -> Checked {
    opposite_orders([bench.client(), bench.another().await?]).await;
    Ok(())
}

pub async fn a_store_works_on_one_batch_at_least(bench: Bench) -> Checked {
    assert!(bench.store().max_concurrent_batches() >= 1);
    Ok(())
}
