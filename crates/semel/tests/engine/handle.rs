//! One call for many requests, and none that waits for company.

use semel::transition::{Reservation, reserve};
use semel::{
    Created, Draft, Fingerprint, KeyFormat, KeyFormatSet, MemoryStore, OperationId, Owner, Policy, RecipeId,
    RecordKey, Respell, StoreError, StoreHandle,
};
use semel_testing::store::{Call, Fault, FaultyStore, Gate};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;

const TIMEOUT: Duration = Duration::from_secs(2);

async fn create(handle: &StoreHandle, number: usize) -> Result<(semel::Now, Created), StoreError> {
    handle.create(&draft(number)).await
}

fn store() -> (FaultyStore, StoreHandle) {
    let store = FaultyStore::over(MemoryStore::new());
    (store.clone(), StoreHandle::new(Arc::new(store), TIMEOUT))
}

fn key(number: usize) -> RecordKey {
    RecordKey::new("acme", "create_payment", format!("key-{number}"))
}

fn draft(number: usize) -> Draft {
    let reservation = Reservation {
        key: key(number),
        operation_id: OperationId::random(),
        fingerprint: Fingerprint([7; 32]),
        recipe: RecipeId([9; 16]),
        owner: Owner::random(),
    };
    reserve(reservation, &Policy::default())
}

#[tokio::test(start_paused = true)]
async fn a_lone_request_is_sent_at_once() {
    let (store, handle) = store();
    let begun = tokio::time::Instant::now();
    for number in 0..3 {
        assert_eq!(handle.create(&draft(number)).await.unwrap().1, Created::Inserted);
    }
    assert_eq!(store.batches(Call::Create), [1, 1, 1]);
    assert_eq!(begun.elapsed(), Duration::ZERO, "nothing was waited for");
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_a_call_is_under_way_makes_up_the_next_batch() {
    let (store, handle) = store();
    let gate = Gate::new();
    store.next(Call::Create, [Fault::Held(gate.clone())]);
    let mut requests = JoinSet::new();
    let create = |number| {
        let handle = handle.clone();
        async move { handle.create(&draft(number)).await }
    };
    requests.spawn(create(0));
    gate.reached().await;
    for number in 1..100 {
        requests.spawn(create(number));
    }
    // On this one thread, they all run as far as they can before this goes on.
    tokio::task::yield_now().await;
    gate.open();
    while let Some(created) = requests.join_next().await {
        assert_eq!(created.unwrap().unwrap().1, Created::Inserted);
    }
    assert_eq!(store.batches(Call::Create), [1, 99]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_bounded() {
    let (store, handle) = store();
    let gate = Gate::new();
    store.next(Call::Read, [Fault::Held(gate.clone())]);
    let mut requests = JoinSet::new();
    for number in 0..1300 {
        let handle = handle.clone();
        requests.spawn(async move { handle.read(&key(number)).await });
    }
    gate.reached().await;
    tokio::task::yield_now().await;
    gate.open();
    while let Some(read) = requests.join_next().await {
        assert_eq!(read.unwrap().unwrap().1, None);
    }
    let batches = store.batches(Call::Read);
    assert_eq!(batches.iter().sum::<usize>(), 1300);
    assert!(batches.iter().all(|size| *size <= 512), "{batches:?}");
}

#[tokio::test(start_paused = true)]
async fn each_of_a_batch_gets_its_own_answer() {
    let (store, handle) = store();
    handle.create(&draft(1)).await.unwrap();
    let (free, taken, other) = tokio::join!(create(&handle, 0), create(&handle, 1), create(&handle, 2));
    assert_eq!(free.unwrap().1, Created::Inserted);
    assert!(matches!(taken.unwrap().1, Created::Exists(record) if record.key == key(1)));
    assert_eq!(other.unwrap().1, Created::Inserted);
    assert_eq!(store.batches(Call::Create), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn what_a_hanging_store_began_with_is_lost_in_time() {
    let (store, handle) = store();
    store.always(Call::Create, Fault::Hang);
    let begun = tokio::time::Instant::now();
    assert!(matches!(handle.create(&draft(0)).await, Err(StoreError::Lost(_))));
    assert!(begun.elapsed() <= TIMEOUT + Duration::from_millis(10));
    store.heal();
    assert_eq!(handle.create(&draft(0)).await.unwrap().1, Created::Inserted, "the lane is free again");
}

#[tokio::test(start_paused = true)]
async fn what_a_hanging_store_did_not_begin_with_is_withdrawn_and_never_sent() {
    let (store, handle) = store();
    store.always(Call::Create, Fault::Hang);
    let mut requests = JoinSet::new();
    let create = |number| {
        let handle = handle.clone();
        async move { handle.create(&draft(number)).await }
    };
    requests.spawn(create(0));
    tokio::time::sleep(Duration::from_millis(10)).await;
    // More than one batch takes: once the first call is given up, some of them are sent, and the others are still waiting when
    // their own time is over.
    for number in 1..=600 {
        requests.spawn(create(number));
    }
    let (mut lost, mut withdrawn) = (0, 0);
    while let Some(outcome) = requests.join_next().await {
        match outcome.unwrap() {
            Err(StoreError::Lost(_)) => lost += 1,
            Err(StoreError::Unavailable(_)) => withdrawn += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((lost, withdrawn), (1 + 512, 88));
    tokio::time::sleep(TIMEOUT).await;
    store.heal();
    assert_eq!(handle.create(&draft(700)).await.unwrap().1, Created::Inserted);
    assert_eq!(store.batches(Call::Create), [1, 512, 1], "what was withdrawn is never sent");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_loses_its_batch_and_none_after_it() {
    let (store, handle) = store();
    let gate = Gate::new();
    store.next(Call::Remove, [Fault::None]);
    store.next(Call::Create, [Fault::Held(gate.clone()), Fault::Panic]);
    let create = |number| {
        let handle = handle.clone();
        tokio::spawn(async move { handle.create(&draft(number)).await })
    };
    let first = create(0);
    gate.reached().await;
    let panicking = create(1);
    tokio::task::yield_now().await;
    gate.open();
    assert_eq!(first.await.unwrap().unwrap().1, Created::Inserted);
    assert!(matches!(panicking.await.unwrap(), Err(StoreError::Lost(_))), "it may have been written");
    assert_eq!(create(2).await.unwrap().unwrap().1, Created::Inserted);
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_call_that_panics_is_sent_without_another_request_coming_by() {
    let (store, handle) = store();
    let gate = Gate::new();
    store.next(Call::Create, [Fault::PanicAt(gate.clone())]);
    let create = |number| {
        let handle = handle.clone();
        tokio::spawn(async move { handle.create(&draft(number)).await })
    };
    let panicking = create(0);
    gate.reached().await;
    let behind = create(1);
    tokio::task::yield_now().await;
    gate.open();
    assert!(matches!(panicking.await.unwrap(), Err(StoreError::Lost(_))));
    assert_eq!(behind.await.unwrap().unwrap().1, Created::Inserted);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_told_to_whoever_asked_for_it_and_to_nobody_else_of_the_batch() {
    let (store, handle) = store();
    store.damage(&key(1));
    let (first, damaged, third) = tokio::join!(create(&handle, 0), create(&handle, 1), create(&handle, 2));
    assert_eq!(first.unwrap().1, Created::Inserted);
    assert!(matches!(damaged, Err(StoreError::Damaged(_))));
    assert_eq!(third.unwrap().1, Created::Inserted);
    assert_eq!(store.batches(Call::Create), [3, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_apart_is_sent_one_at_a_time() {
    let (store, handle) = store();
    store.damage(&key(1));
    let gate = Gate::new();
    store.next(Call::Create, [Fault::Held(gate.clone())]);
    let handle = &handle;
    let all = async { tokio::join!(create(handle, 0), create(handle, 1), create(handle, 2)) };
    let look = async {
        gate.reached().await;
        // Time passes only while nobody can go on.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let meanwhile = store.batches(Call::Create);
        gate.open();
        meanwhile
    };
    let ((first, damaged, third), meanwhile) = tokio::join!(all, look);
    // The batch, the one that is held, and maybe before it the damaged one, which nothing holds up.
    assert!(meanwhile.len() <= 3, "the others wait for their turn: {meanwhile:?}");
    assert!(first.is_ok() && third.is_ok() && matches!(damaged, Err(StoreError::Damaged(_))));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_store_is_told_to_the_whole_batch() {
    let (store, handle) = store();
    store.next(Call::Create, [Fault::Unavailable]);
    let (first, second) = tokio::join!(create(&handle, 0), create(&handle, 1));
    for refused in [first, second] {
        assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    }
    assert_eq!(store.batches(Call::Create), [2]);
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_cancels_nothing_for_the_others_of_the_batch() {
    let (store, handle) = store();
    let gate = Gate::new();
    store.next(Call::Create, [Fault::Held(gate.clone())]);
    let create = |number| {
        let handle = handle.clone();
        tokio::spawn(async move { handle.create(&draft(number)).await })
    };
    let starter = create(0);
    gate.reached().await;
    let other = create(1);
    tokio::task::yield_now().await;
    starter.abort();
    assert!(starter.await.unwrap_err().is_cancelled());
    gate.open();
    assert_eq!(other.await.unwrap().unwrap().1, Created::Inserted);
    assert!(handle.read(&key(0)).await.unwrap().1.is_some(), "its own call was under way, and is done");
}

#[test]
fn a_runtime_that_ends_in_the_middle_of_a_call_leaves_the_lane_to_others() {
    let (store, handle) = store();
    store.next(Call::Create, [Fault::Hang]);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let first = runtime();
    first.block_on(async {
        let handle = handle.clone();
        tokio::spawn(async move { handle.create(&draft(0)).await });
        while store.batches(Call::Create).is_empty() {
            tokio::task::yield_now().await;
        }
    });
    drop(first);
    let created = runtime().block_on(handle.create(&draft(1))).unwrap().1;
    assert_eq!(created, Created::Inserted);
}

#[test]
fn a_runtime_that_ends_before_a_call_has_begun_leaves_the_lane_to_others() {
    let (_, handle) = store();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let first = runtime();
    first.block_on(async {
        let draft = draft(0);
        let mut asking = pin!(handle.create(&draft));
        // Asked once: the task that sends it is there, and has not had its turn.
        poll_fn(|context| Poll::Ready(asking.as_mut().poll(context).is_pending())).await
    });
    drop(first);
    let created = runtime().block_on(handle.create(&draft(1))).unwrap().1;
    assert_eq!(created, Created::Inserted);
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_lost_and_a_read_is_unavailable() {
    let (store, handle) = store();
    for fault in [Fault::Hang, Fault::Panic] {
        for call in [Call::Remember, Call::Recall, Call::SetKeyFormat, Call::Count, Call::Read, Call::Swap] {
            store.next(call, [fault.clone()]);
        }
        let lost = |error| assert!(matches!(error, StoreError::Lost(_)), "{error}");
        let unavailable = |error| assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
        lost(handle.remember("name".into(), "value".into()).await.unwrap_err());
        lost(handle.set_key_format(KeyFormat::Plain, None).await.unwrap_err());
        unavailable(handle.recall("name".into()).await.unwrap_err());
        unavailable(handle.count_live("acme".into(), 1, TIMEOUT).await.unwrap_err());
        unavailable(handle.read(&key(0)).await.unwrap_err());
        lost(handle.swap_all(Vec::new()).await.unwrap_err());
    }
    assert_eq!(handle.recall("name".into()).await.unwrap(), None, "nothing is left of it");
}

#[tokio::test(start_paused = true)]
async fn a_conversion_of_all_keys_takes_as_long_as_it_takes() {
    let (store, handle) = store();
    let gate = Gate::new();
    store.next(Call::SetKeyFormat, [Fault::Held(gate.clone())]);
    let respell: Respell = Arc::new(|record| Err(StoreError::Damaged(record.operation_id.to_string())));
    let converting =
        tokio::spawn(async move { handle.set_key_format(KeyFormat::Plain, Some(respell)).await });
    gate.reached().await;
    tokio::time::sleep(TIMEOUT * 100).await;
    assert!(!converting.is_finished());
    gate.open();
    assert_eq!(converting.await.unwrap().unwrap(), KeyFormatSet::InForce(KeyFormat::Plain));
}
