//! The audit: in the commit of its change, complete, and older than the records that it is about.

use crate::samples::{LONG, SHORT, key, next, reserved};
use crate::{Bench, Checked, Client};
use semel::audit::{
    AuditAction, AuditCursor, AuditDetails, AuditEntry, AuditFilter, AuditLine, AuditPage, AuditResult,
};
use semel::{Record, Swap, Swapped, Timestamp};
use std::time::Duration;

fn entry(number: u32) -> AuditEntry {
    AuditEntry {
        target: Some(format!("target {number}")),
        ..AuditEntry::new("token:ada", AuditAction::Settle)
    }
}

fn change(record: &Record) -> Swap {
    Swap { expected: record.expected(), next: Box::new(next(record)), history: None }
}

async fn append(client: &Client, entry: &AuditEntry, change: Option<Swap>) -> (Timestamp, Swapped) {
    let answer = client.store.audit(entry.clone(), change).await.expect("the store writes");
    assert_eq!(answer.items.len(), 1, "one item is returned");
    (answer.now, answer.items.into_iter().next().expect("one item"))
}

async fn page(client: &Client, filter: AuditFilter, from: Option<AuditCursor>, limit: usize) -> AuditPage {
    client.store.audited(filter, from, limit).await.expect("the store lists")
}

async fn all(client: &Client) -> Vec<AuditLine> {
    let page = page(client, AuditFilter::default(), None, 1_000).await;
    assert_eq!((page.damaged, page.next), (0, None));
    page.lines
}

fn entries(lines: &[AuditLine]) -> Vec<&AuditEntry> {
    lines.iter().map(|line| &line.entry).collect()
}

pub async fn an_entry_and_its_change_are_one_commit(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    let first = entry(1);
    let (now, swapped) = append(&client, &first, Some(change(&record))).await;
    assert_eq!(swapped, Swapped::Done);
    assert_eq!(client.record(&record.key).await.version, record.version + 1);
    assert_eq!(all(&client).await, [AuditLine { at: now, entry: first }]);
    // The same again: the record is at another version by now, and neither is done.
    let (_, swapped) = append(&client, &entry(2), Some(change(&record))).await;
    let Swapped::Changed(there) = swapped else { panic!("something else is there, not {swapped:?}") };
    assert_eq!(*there, client.record(&record.key).await);
    let gone = client.insert(reserved(key(2))).await;
    client.remove(gone.expected()).await;
    let (_, swapped) = append(&client, &entry(3), Some(change(&gone))).await;
    assert_eq!(swapped, Swapped::Missing);
    assert_eq!(all(&client).await.len(), 1, "what was not done is not in the audit");
    Ok(())
}

pub async fn every_field_of_an_entry_comes_back(bench: Bench) -> Checked {
    let client = bench.client();
    let text = || Some("\u{1f512} 'quoted' \0 \u{1} =1+1 \n".to_owned());
    let details = AuditDetails {
        kind: text(),
        role: text(),
        peer: text(),
        forwarded_for: text(),
        session: text(),
        request_id: text(),
        via: text(),
        instance: text(),
        attempt: Some(u32::MAX),
        version_before: Some(0),
        version_after: Some(u64::MAX),
        state_before: text(),
        state_after: text(),
        outcome: text(),
        reason: text(),
        ticket: text(),
        response_sha256: text(),
        response_bytes: Some(u64::MAX),
        refusal: text(),
        note: text(),
    };
    let mut written = Vec::new();
    for (number, action) in AuditAction::ALL.into_iter().enumerate() {
        let mut entry = AuditEntry::new(text().unwrap_or_default(), action);
        entry.result = AuditResult::ALL[number % AuditResult::ALL.len()];
        if number % 2 == 0 {
            (entry.target, entry.tenant, entry.operation) = (text(), text(), text());
            entry.details = details.clone();
        }
        append(&client, &entry, None).await;
        written.push(entry);
    }
    written.reverse();
    assert_eq!(entries(&all(&client).await), written.iter().collect::<Vec<_>>());
    Ok(())
}

pub async fn the_newest_entry_comes_first_and_pages_are_together_complete(bench: Bench) -> Checked {
    let client = bench.client();
    let mut written = Vec::new();
    for number in 0..10 {
        let entry = entry(number);
        append(&client, &entry, None).await;
        written.insert(0, entry);
    }
    for per_page in [1, 2, 3, 9, 10, 11] {
        let (mut found, mut from) = (Vec::new(), None);
        loop {
            let page = page(&client, AuditFilter::default(), from, per_page).await;
            assert!(page.lines.len() <= per_page);
            found.extend(page.lines.into_iter().map(|line| line.entry));
            let Some(next) = page.next else { break };
            assert!(next.place().is_some(), "{next:?}");
            from = Some(next);
        }
        assert_eq!(found, written, "{per_page} per page");
    }
    Ok(())
}

pub async fn every_filter_of_the_audit_lets_through_what_it_says_and_nothing_else(bench: Bench) -> Checked {
    let client = bench.client();
    let name = |kind: &str, number: usize| Some(format!("{kind} {}", number % 2));
    for number in 0..32 {
        let mut entry = AuditEntry::new(format!("token:{}", number % 2), AuditAction::ALL[number / 16]);
        entry.result = AuditResult::ALL[number / 8 % 2];
        entry.target = name("target", number / 4);
        entry.tenant = name("tenant", number / 2).filter(|_| number % 3 > 0);
        entry.operation = name("operation", number / 8);
        append(&client, &entry, None).await;
        bench.pass(Duration::from_millis(1)).await;
    }
    let all = all(&client).await;
    let (early, late) = (all[24].at, all[8].at);
    let none = AuditFilter::default();
    let filters = [
        AuditFilter { actor: Some("token:1".into()), ..none.clone() },
        AuditFilter { action: Some(AuditAction::ALL[1]), ..none.clone() },
        AuditFilter { target: name("target", 1), ..none.clone() },
        AuditFilter { tenant: name("tenant", 1), ..none.clone() },
        AuditFilter { operation: name("operation", 1), ..none.clone() },
        AuditFilter { result: Some(AuditResult::ALL[1]), ..none.clone() },
        AuditFilter { from: Some(early), ..none.clone() },
        AuditFilter { until: Some(late), ..none.clone() },
        AuditFilter { from: Some(early), until: Some(late), actor: Some("token:0".into()), ..none.clone() },
        AuditFilter { tenant: name("tenant", 0), target: name("target", 0), ..none.clone() },
        AuditFilter { tenant: Some("tenant".into()), ..none },
    ];
    for filter in filters {
        let expected: Vec<_> = all.iter().filter(|line| filter.passes(line)).cloned().collect();
        let found = page(&client, filter.clone(), None, 1_000).await;
        assert_eq!(found.lines, expected, "{filter:?}");
        let first = page(&client, filter.clone(), None, 2).await;
        if let Some(from) = first.next {
            let rest = page(&client, filter.clone(), Some(from), 1_000).await;
            assert_eq!([first.lines, rest.lines].concat(), expected, "{filter:?}, page by page");
        }
    }
    Ok(())
}

pub async fn entries_outlive_the_record_that_they_are_about(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    append(&client, &entry(1), Some(change(&record))).await;
    client.remove(client.record(&record.key).await.expected()).await;
    assert_eq!((client.read(&record.key).await, all(&client).await.len()), (None, 1));
    Ok(())
}

pub async fn only_old_entries_are_purged_and_the_oldest_first(bench: Bench) -> Checked {
    let client = bench.client();
    for number in 0..5 {
        append(&client, &entry(number), None).await;
    }
    let last = all(&client).await[0].at;
    bench.reach(last.plus(Duration::from_millis(1))).await;
    let purge = async |older_than, at_most| {
        client.store.purge_audit(older_than, at_most).await.expect("the store purges")
    };
    assert_eq!(purge(Duration::MAX, 10).await, 0, "nothing is ever as old as that");
    assert_eq!(purge(LONG, 10).await, 0, "nor as old as this");
    assert_eq!(purge(Duration::ZERO, 3).await, 3, "no more than asked for");
    let left = all(&client).await;
    let targets: Vec<_> = left.iter().filter_map(|line| line.entry.target.as_deref()).collect();
    assert_eq!(targets, ["target 4", "target 3"]);
    assert_eq!(purge(Duration::ZERO, 3).await, 2);
    assert_eq!((purge(Duration::ZERO, 3).await, all(&client).await), (0, vec![]));
    Ok(())
}

pub async fn during_a_hold_no_entry_is_purged(bench: Bench) -> Checked {
    let client = bench.client();
    append(&client, &entry(1), None).await;
    bench.jump(Duration::from_secs(7 * 24 * 60 * 60))?;
    bench.pass(SHORT).await;
    let purged = client.store.purge_audit(Duration::ZERO, 10).await.expect("the store answers");
    assert_eq!((purged, all(&client).await.len()), (0, 1));
    Ok(())
}

pub async fn another_instance_reads_the_same_audit(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    let record = client.insert(reserved(key(1))).await;
    append(&client, &entry(1), Some(change(&record))).await;
    append(&other, &entry(2), None).await;
    let lines = all(&client).await;
    assert_eq!((lines.len(), all(&other).await), (2, lines));
    Ok(())
}

pub async fn what_was_acknowledged_of_the_audit_is_there_after_a_restart(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    append(&client, &entry(1), Some(change(&record))).await;
    append(&client, &entry(2), None).await;
    let (before, version) = (all(&client).await, client.record(&record.key).await.version);
    drop(client);
    let bench = bench.reopened().await?;
    let client = bench.client();
    assert_eq!((all(&client).await, client.record(&record.key).await.version), (before, version));
    Ok(())
}

pub async fn a_cursor_from_elsewhere_is_refused(bench: Bench) -> Checked {
    let from = Some(AuditCursor("of no page".into()));
    let page = bench.store().audited(AuditFilter::default(), from, 10).await;
    assert!(page.is_err(), "{page:?}");
    Ok(())
}
