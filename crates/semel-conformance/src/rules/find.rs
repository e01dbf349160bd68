//! Records by operation id.

use crate::samples::{in_state, key, next, reserved};
use crate::{Bench, Checked};
use semel::{OperationId, State};

pub async fn a_record_is_found_by_its_operation_id_with_its_body(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(in_state(State::Completed, key(1))).await;
    client.insert(in_state(State::Completed, key(2))).await;
    assert_eq!(client.find(record.operation_id).await, Some(record));
    Ok(())
}

pub async fn an_id_that_nobody_has_finds_nothing(bench: Bench) -> Checked {
    let client = bench.client();
    client.insert(reserved(key(1))).await;
    assert_eq!(client.find(OperationId::random()).await, None);
    Ok(())
}

pub async fn what_is_found_is_the_record_as_it_is_now(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    client.swap(record.expected(), next(&record), None).await;
    assert_eq!(client.find(record.operation_id).await, client.read(&key(1)).await);
    client.remove(client.record(&key(1)).await.expected()).await;
    assert_eq!(client.find(record.operation_id).await, None);
    Ok(())
}

pub async fn another_instance_reads_and_finds_what_was_just_written(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    // There and back, so that neither can live on a snapshot of its own.
    let mut record = client.insert(reserved(key(1))).await;
    for round in 0..10 {
        let (writer, reader) = if round % 2 == 0 { (&other, &client) } else { (&client, &other) };
        let draft = next(&record);
        let (now, _) = writer.swap(record.expected(), draft.clone(), None).await;
        record = draft.at(now);
        assert_eq!(reader.read(&key(1)).await.as_ref(), Some(&record));
        assert_eq!(reader.find(record.operation_id).await.as_ref(), Some(&record));
    }
    Ok(())
}
