//! Records by filter, newest first, page by page.

use crate::samples::{doubt, in_state, key, next, request, reserved, response};
use crate::{Bench, Checked, Client};
use bytes::Bytes;
use semel::{
    Body, Cursor, Filter, OperationId, Record, RecordKey, Settling, State, StoreError, StoredResponse,
    Swapped, When,
};
use std::collections::HashSet;
use std::time::Duration;

fn ids(records: &[Record]) -> Vec<OperationId> {
    records.iter().map(|record| record.operation_id).collect()
}

async fn insert_one_by_one(client: &Client, count: u32) -> Vec<OperationId> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(client.insert(reserved(key(number))).await.operation_id);
    }
    ids
}

pub async fn an_empty_store_lists_nothing(bench: Bench) -> Checked {
    let page = bench.store().list(Filter::default(), None, 10).await.expect("the store lists");
    assert!(page.records.is_empty() && page.next.is_none());
    Ok(())
}

pub async fn the_newest_comes_first(bench: Bench) -> Checked {
    let client = bench.client();
    let mut inserted = insert_one_by_one(&client, 7).await;
    inserted.reverse();
    assert_eq!(ids(&client.list(&Filter::default(), 100).await), inserted);
    Ok(())
}

pub async fn a_change_does_not_move_a_record(bench: Bench) -> Checked {
    let client = bench.client();
    let mut inserted = insert_one_by_one(&client, 5).await;
    let record = client.record(&key(1)).await;
    client.swap(record.expected(), next(&record), None).await;
    inserted.reverse();
    assert_eq!(ids(&client.list(&Filter::default(), 2).await), inserted);
    Ok(())
}

pub async fn pages_are_bounded_and_together_complete(bench: Bench) -> Checked {
    let client = bench.client();
    let mut inserted = insert_one_by_one(&client, 10).await;
    inserted.reverse();
    for per_page in [1, 2, 3, 5, 9, 10, 11, 1_000] {
        assert_eq!(ids(&client.list(&Filter::default(), per_page).await), inserted, "{per_page} per page");
    }
    Ok(())
}

pub async fn records_made_in_one_batch_all_get_a_place(bench: Bench) -> Checked {
    let client = bench.client();
    // The same moment for all: a cursor that is no more than a time would leave some out.
    let drafts: Vec<_> = (0..40).map(|number| reserved(key(number))).collect();
    let expected: HashSet<OperationId> = drafts.iter().map(|draft| draft.operation_id).collect();
    client.store.create(drafts).await.expect("the store creates");
    let listed = ids(&client.list(&Filter::default(), 7).await);
    assert_eq!(listed.len(), 40);
    assert_eq!(listed.into_iter().collect::<HashSet<_>>(), expected);
    Ok(())
}

pub async fn a_cursor_that_the_store_did_not_make_is_refused(bench: Bench) -> Checked {
    let store = bench.store();
    let foreign = ["not-a-cursor", "", "zzzzzzzzzzzzzzzz", &"0".repeat(Cursor::LONGEST)];
    for text in foreign {
        let listed = store.list(Filter::default(), Some(Cursor::new(text)), 10).await;
        assert!(matches!(listed, Err(StoreError::InvalidCursor)), "{text:?}: {listed:?}");
    }
    Ok(())
}

pub async fn paging_misses_and_repeats_nothing_while_records_come_change_and_go(bench: Bench) -> Checked {
    let client = bench.client();
    let mut inserted = insert_one_by_one(&client, 20).await;
    inserted.reverse();
    let mut listed = Vec::new();
    let mut from = None;
    let mut round = 0;
    loop {
        let page = client.store.list(Filter::default(), from, 3).await.expect("the store lists");
        listed.extend(ids(&page.records));
        from = page.next;
        if from.is_none() {
            break;
        }
        // Between two pages: two new ones, a change to one that was listed and to one that was not, and one that goes.
        client.insert(reserved(key(100 + round))).await;
        client.insert(reserved(key(200 + round))).await;
        for number in [round, 19 - round] {
            let record = client.record(&key(number)).await;
            client.swap(record.expected(), next(&record), None).await;
        }
        if round == 2 {
            let listed_already = client.record(&key(18)).await;
            assert_eq!(client.remove(listed_already.expected()).await.1, Swapped::Done);
            let to_come = client.record(&key(0)).await;
            assert_eq!(client.remove(to_come.expected()).await.1, Swapped::Done);
            inserted.pop();
        }
        round += 1;
    }
    assert_eq!(listed, inserted);
    Ok(())
}

async fn a_mixed_store(client: &Client) -> Vec<Record> {
    let mut records = Vec::new();
    let mut number = 0;
    for tenant in ["acme", "ACME", "globex"] {
        for operation in ["create_payment", "create_refund"] {
            for state in State::ALL {
                for dead_letter in [false, true] {
                    if dead_letter && state != State::Unknown {
                        continue;
                    }
                    // Each client key occurs in several scopes.
                    let key = RecordKey::new(tenant, operation, format!("key-{}", number % 5));
                    let mut draft = in_state(state, key);
                    if client.read(&draft.key).await.is_some() {
                        draft.key.key = format!("key-{number}").into();
                    }
                    draft.dead_letter = dead_letter;
                    records.push(client.insert(draft).await);
                    number += 1;
                }
            }
        }
    }
    records
}

pub async fn every_filter_lets_through_what_it_says_and_nothing_else(bench: Bench) -> Checked {
    let client = bench.client();
    let records = a_mixed_store(&client).await;
    let some = |text: &str| Some(text.to_owned());
    let states = [None].into_iter().chain(State::ALL.map(Some));
    for state in states {
        for tenant in [None, some("acme"), some("ACME"), some("nobody")] {
            for operation in [None, some("create_refund")] {
                for key in [None, some("key-3"), some("key-%")] {
                    for dead_letter in [None, Some(true), Some(false)] {
                        let filter = Filter {
                            state,
                            tenant: tenant.clone(),
                            operation: operation.clone(),
                            key: key.clone(),
                            dead_letter,
                            ..Filter::default()
                        };
                        let expected: Vec<OperationId> = records
                            .iter()
                            .rev()
                            .filter(|record| {
                                state.is_none_or(|state| record.state == state)
                                    && tenant.as_ref().is_none_or(|tenant| *record.key.tenant == **tenant)
                                    && operation.as_ref().is_none_or(|name| *record.key.operation == **name)
                                    && key.as_ref().is_none_or(|key| *record.key.key == **key)
                                    && dead_letter.is_none_or(|dead| record.dead_letter == dead)
                            })
                            .map(|record| record.operation_id)
                            .collect();
                        assert_eq!(ids(&client.list(&filter, 4).await), expected, "{filter:?}");
                    }
                }
            }
        }
    }
    Ok(())
}

pub async fn a_listing_can_begin_with_the_oldest(bench: Bench) -> Checked {
    let client = bench.client();
    let inserted = insert_one_by_one(&client, 10).await;
    let oldest = Filter { oldest_first: true, ..Filter::default() };
    for per_page in [1, 3, 10, 1_000] {
        assert_eq!(ids(&client.list(&oldest, per_page).await), inserted, "{per_page} per page");
    }
    let unknown = Filter { state: Some(State::Unknown), ..oldest };
    let mut doubtful = Vec::new();
    for number in [2, 5, 7] {
        let record = client.record(&key(number)).await;
        let mut unknown = next(&record);
        unknown.state = State::Unknown;
        client.swap(record.expected(), unknown, None).await;
        doubtful.push(record.operation_id);
    }
    assert_eq!(ids(&client.list(&unknown, 2).await), doubtful);
    Ok(())
}

pub async fn a_listing_can_be_of_what_was_created_between_two_moments(bench: Bench) -> Checked {
    let client = bench.client();
    let mut records = Vec::new();
    for number in 0..12 {
        records.push(client.insert(reserved(key(number))).await);
        bench.pass(Duration::from_millis(2)).await;
    }
    let moments =
        [None, Some(2), Some(7), Some(11)].map(|at: Option<usize>| at.map(|at| records[at].times.created));
    for created_from in moments {
        for created_until in moments {
            for (oldest_first, state) in [(false, None), (true, None), (false, Some(State::InProgress))] {
                let filter = Filter { created_from, created_until, oldest_first, state, ..Filter::default() };
                let mut expected: Vec<_> = records
                    .iter()
                    .filter(|record| created_from.is_none_or(|from| record.times.created >= from))
                    .filter(|record| created_until.is_none_or(|until| record.times.created < until))
                    .map(|record| record.operation_id)
                    .collect();
                if !oldest_first {
                    expected.reverse();
                }
                assert_eq!(ids(&client.list(&filter, 5).await), expected, "{filter:?}");
            }
        }
    }
    Ok(())
}

pub async fn a_record_is_listed_under_the_state_that_it_has_now(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    let of = |state| Filter { state: Some(state), ..Filter::default() };
    assert_eq!(client.list(&of(State::InProgress), 10).await.len(), 1);
    client.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner doubts");
    assert!(client.list(&of(State::InProgress), 10).await.is_empty());
    assert_eq!(client.list(&of(State::Unknown), 10).await, [client.record(&ticket.key).await]);
    Ok(())
}

pub async fn a_record_whose_window_is_over_is_listed_as_expired(bench: Bench) -> Checked {
    let client = bench.client();
    let of = |state| Filter { state: Some(state), ..Filter::default() };
    let (mut live, mut expired) = (Vec::new(), vec![client.insert(in_state(State::Expired, key(0))).await]);
    let ended = [State::Completed, State::FailedReplayable, State::FailedRetryable];
    for (number, state) in (1..).zip(ended) {
        live.push(client.insert(in_state(state, key(number))).await);
        let mut over = in_state(state, key(number + 10));
        over.times.expires = Some(When::NOW);
        expired.push(client.insert(over).await);
    }
    expired.reverse();
    assert_eq!(ids(&client.list(&of(State::Expired), 2).await), ids(&expired));
    for (state, live) in ended.into_iter().zip(live) {
        assert_eq!(ids(&client.list(&of(state), 10).await), [live.operation_id], "{state:?}");
    }
    Ok(())
}

pub async fn a_listing_leaves_bodies_out_and_everything_else_in(bench: Bench) -> Checked {
    let client = bench.client();
    let bodies = [
        Body::Stored(Bytes::from_static(b"a body")),
        Body::Stored(Bytes::new()),
        Body::Sealed(Bytes::from_static(b"\0sealed\xff")),
        Body::NotStored,
        Body::Dropped,
    ];
    let mut expected = Vec::new();
    for (number, body) in (0..).zip(bodies) {
        let mut draft = in_state(State::Completed, key(number));
        draft.response = Some(StoredResponse { body: body.clone(), ..response("") });
        let mut record = client.insert(draft).await;
        // Only stored bodies are omitted: a body that was never stored is listed as such.
        let kept = record.response.as_mut().expect("it has an answer");
        kept.headers.clear();
        if body.is_kept() {
            kept.body = Body::Omitted;
        }
        expected.insert(0, record);
    }
    assert_eq!(client.list(&Filter::default(), 10).await, expected);
    Ok(())
}

pub async fn another_instance_lists_the_same(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    let mut inserted = Vec::new();
    for number in 0..8 {
        let through = if number % 2 == 0 { &client } else { &other };
        inserted.insert(0, through.insert(reserved(key(number))).await.operation_id);
    }
    assert_eq!(ids(&client.list(&Filter::default(), 3).await), inserted);
    assert_eq!(ids(&other.list(&Filter::default(), 3).await), inserted);
    Ok(())
}
