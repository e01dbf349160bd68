//! The history is written in the commit of the change, and is removed with its record.

use crate::samples::{complete, doubt, key, next, request, reserved, retryable};
use crate::{Bench, Checked};
use semel::{Actor, Happening, HistoryEntry, HistoryLine, OperationId, Settling, Swap, Swapped};

fn entry(happening: Happening, note: &str) -> HistoryEntry {
    HistoryEntry { happening, actor: Actor::Request, attempt: 1, note: Some(note.into()) }
}

pub async fn a_line_bears_the_time_and_the_version_of_its_change(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let line = entry(Happening::Doubted, "timed_out");
    let (now, _) = client.swap(record.expected(), next(&record), Some(line.clone())).await;
    let expected = HistoryLine { at: now, version: 2, entry: line };
    assert_eq!(client.history(record.operation_id).await, [expected]);
    Ok(())
}

pub async fn history_is_told_oldest_first(bench: Bench) -> Checked {
    let client = bench.client();
    let mut record = client.insert(reserved(key(1))).await;
    for number in 0..30 {
        let draft = next(&record);
        let line = entry(Happening::Remarked, &format!("remark {number}"));
        let (now, _) = client.swap(record.expected(), draft.clone(), Some(line)).await;
        record = draft.at(now);
    }
    let lines = client.history(record.operation_id).await;
    let versions: Vec<u64> = lines.iter().map(|line| line.version).collect();
    assert_eq!(versions, (2..32).collect::<Vec<u64>>());
    let notes: Vec<String> = lines.into_iter().filter_map(|line| line.entry.note).collect();
    assert_eq!(notes, (0..30).map(|number| format!("remark {number}")).collect::<Vec<_>>());
    Ok(())
}

pub async fn a_swap_without_a_line_adds_none(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let (now, _) = client.swap(record.expected(), next(&record), Some(entry(Happening::Doubted, "a"))).await;
    let record = next(&record).at(now);
    client.swap(record.expected(), next(&record), None).await;
    assert_eq!(client.history(record.operation_id).await.len(), 1);
    Ok(())
}

pub async fn the_plain_happy_path_has_no_history(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, complete("done")).await.expect("the owner completes");
    assert_eq!(client.history(ticket.claim.operation_id).await, []);
    Ok(())
}

pub async fn every_happening_and_every_actor_comes_back(bench: Bench) -> Checked {
    let client = bench.client();
    let mut record = client.insert(reserved(key(1))).await;
    let actors = [
        Actor::Owner,
        Actor::Request,
        Actor::LeaseWatch,
        Actor::Reconciler,
        Actor::Webhook("provider".into()),
        Actor::Webhook(String::new()),
        Actor::Operator("ada".into()),
        Actor::Operator("webhook:a:b".into()),
        Actor::Operator("\u{1f512} ' \0 \n".into()),
    ];
    let notes = [None, Some(""), Some("a reason"), Some("\u{1f512} 'quoted' \0 \n"), Some("owner")];
    let mut expected = Vec::new();
    let count = Happening::ALL.len() * actors.len();
    for at in 0..count {
        let entry = HistoryEntry {
            happening: Happening::ALL[at % Happening::ALL.len()],
            actor: actors[at % actors.len()].clone(),
            attempt: if at == 0 { u32::MAX } else { u32::try_from(at).expect("small") },
            note: notes[at % notes.len()].map(str::to_owned),
        };
        let draft = next(&record);
        let (now, _) = client.swap(record.expected(), draft.clone(), Some(entry.clone())).await;
        record = draft.at(now);
        expected.push(HistoryLine { at: now, version: record.version, entry });
    }
    assert_eq!(client.history(record.operation_id).await, expected);
    Ok(())
}

pub async fn history_goes_with_its_record(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.insert(reserved(key(1))).await;
    let (now, _) = client.swap(first.expected(), next(&first), Some(entry(Happening::Doubted, "a"))).await;
    let record = next(&first).at(now);
    assert_eq!(client.remove(record.expected()).await.1, Swapped::Done);
    assert_eq!(client.history(first.operation_id).await, []);
    // A new operation under the same key begins a history of its own.
    let second = client.insert(reserved(key(1))).await;
    assert_eq!(client.history(second.operation_id).await, []);
    // Even one under the same id: nothing is left that could come back.
    client.remove(second.expected()).await;
    let mut again = reserved(key(1));
    again.operation_id = first.operation_id;
    client.insert(again).await;
    assert_eq!(client.history(first.operation_id).await, []);
    Ok(())
}

pub async fn a_removal_that_loses_leaves_the_history(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    client.swap(record.expected(), next(&record), Some(entry(Happening::Doubted, "a"))).await;
    assert!(matches!(client.remove(record.expected()).await.1, Swapped::Changed(_)));
    assert_eq!(client.history(record.operation_id).await.len(), 1);
    Ok(())
}

pub async fn only_the_swap_that_was_done_tells_its_story(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let swaps: Vec<Swap> = ["first", "second"]
        .into_iter()
        .map(|note| Swap {
            expected: record.expected(),
            next: Box::new(semel::Draft { last_error: Some(note.into()), ..next(&record) }),
            history: Some(entry(Happening::Doubted, note)),
        })
        .collect();
    client.store.swap(swaps).await.expect("the store swaps");
    let winner = client.record(&key(1)).await;
    let lines = client.history(record.operation_id).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].entry.note, winner.last_error);
    Ok(())
}

pub async fn histories_do_not_mix(bench: Bench) -> Checked {
    let client = bench.client();
    let tickets = [client.arrive(&request(1)).await.executes(), client.arrive(&request(2)).await.executes()];
    client.act(&tickets[0], doubt(Settling::Webhook)).await.expect("the owner doubts");
    client.act(&tickets[1], retryable()).await.expect("nothing happened");
    for (ticket, expected) in tickets.iter().zip([Happening::Doubted, Happening::FailedRetryable]) {
        let lines = client.history(ticket.claim.operation_id).await;
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].entry.happening, expected);
    }
    assert_eq!(client.history(OperationId::random()).await, [], "an unknown operation has no history");
    Ok(())
}

pub async fn another_instance_tells_the_same_history(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner doubts");
    let id = ticket.claim.operation_id;
    assert_eq!(other.history(id).await, client.history(id).await);
    assert_eq!(other.history(id).await.len(), 1);
    Ok(())
}
