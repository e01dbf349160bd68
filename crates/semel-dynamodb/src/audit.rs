//! The audit: entries beside the records, each in the transaction of its change.
//!
//! Entries are in the index of listings, in partitions of their own, in the order in which they were written.

use crate::api::{Api, CONDITION, Failure};
use crate::index::{Entries, Order, before};
use crate::item::{changing, line};
use crate::names::{self, CONTENTS, LIST, NAME, SHARDS, WriteId, sortable};
use crate::time::Moment;
use crate::value::{Attributes, Item, bytes, number, text};
use crate::write::{is_expected, is_ours};
use semel::audit::{
    AuditAction, AuditCursor, AuditDetails, AuditEntry, AuditFilter, AuditId, AuditLine, AuditPage,
    AuditResult,
};
use semel::{DamageLog, HistoryLine, StoreError, Swap, Swapped, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// How long the place of an entry is: its moment, a number that tells apart what is of one moment, and its id.
const PLACE: usize = 8 + 8 + 16;

/// The most that is read, or removed, at once.
const AT_ONCE: usize = 100;

/// Why a transaction as a whole was not done.
const CANCELLED: &str = "TransactionCanceledException";

fn partition(shard: u8) -> String {
    format!("x{shard}")
}

fn place(at: Timestamp, nth: u64, id: AuditId) -> Vec<u8> {
    [sortable(at.as_millis()).as_slice(), &nth.to_be_bytes(), id.as_bytes()].concat()
}

impl Api {
    /// Appends an entry, and makes the change that it is about in the same transaction.
    pub(crate) async fn audit(
        &self,
        entry: &AuditEntry,
        change: Option<Swap>,
        moment: Moment,
        nth: u64,
    ) -> Result<Swapped, StoreError> {
        let at = moment.told.earliest;
        let put = json!({ "TableName": self.table(), "Item": item_of(entry, at, nth) });
        let Some(Swap { expected, next, history }) = change else {
            // Sent twice it would be the same; whether it was done at all is not known without an answer.
            let put = self.call("PutItem", &put).await;
            return put.map(|_| Swapped::Done).map_err(Failure::of_write);
        };
        let (write, record) = (WriteId::random(), next.at(moment.stamp()));
        let (version, name) = (record.version, names::record(&record.key));
        let history = history.map(|entry| line(&HistoryLine { at, version, entry }));
        let large = self.put_apart(&record, &name, write, at.as_millis()).await;
        let attributes = changing(&record, &large.map_err(Failure::of_read)?, write);
        let mut update = self.update(&name, &expected, &attributes, history.as_deref(), None);
        for is_folded in [false, true] {
            let request = json!({ "TransactItems": [{ "Update": update }, { "Put": put }] });
            let refusal = match self.call("TransactWriteItems", &request).await {
                Ok(_) => return Ok(Swapped::Done),
                Err(Failure::Refused(refusal)) if refusal.code == CANCELLED => refusal,
                Err(Failure::Unknown(why)) => {
                    // Done whole or not at all: what the record says holds for the entry.
                    let there = self.item(&name).await.ok().flatten();
                    return match there {
                        Some(there) if is_ours(&there, write, &record) => Ok(Swapped::Done),
                        _ => Err(StoreError::Lost(why)),
                    };
                }
                Err(failure) => return Err(failure.of_write()),
            };
            let code = refusal.document.pointer("/CancellationReasons/0/Code").and_then(Value::as_str);
            if code != Some("ConditionalCheckFailed") {
                return Err(StoreError::Unavailable(format!("{CANCELLED}: {}", refusal.message)));
            }
            let Some(found) = self.item(&name).await? else { return Ok(Swapped::Missing) };
            match &history {
                // It is what was expected, and its history is too long for one more line.
                Some(history) if !is_folded && is_expected(&found, &expected) => {
                    let folded = self.fold(&found, &name, moment).await?;
                    update = self.update(&name, &expected, &attributes, Some(history), Some(folded));
                }
                _ => return self.changed(found).await,
            }
        }
        Err(StoreError::Unavailable(format!("{CONDITION}: the record was written again and again")))
    }

    /// A page of the audit, newest first.
    pub(crate) async fn audited(
        &self,
        filter: &AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
        damage: &DamageLog,
    ) -> Result<AuditPage, StoreError> {
        let mut page = AuditPage { lines: Vec::new(), damaged: 0, next: None };
        let high = match from {
            None => Some(vec![0xff; PLACE]),
            Some(cursor) => {
                let (at, number) = cursor.place().ok_or(StoreError::InvalidCursor)?;
                let first = [0; 16];
                let number = number.cast_unsigned().to_be_bytes();
                before(&[sortable(at.as_millis()).as_slice(), &number, &first].concat())
            }
        };
        let Some(high) = high else { return Ok(page) };
        let low = filter.from.map_or(vec![0], |from| sortable(from.as_millis()).to_vec());
        let mut entries = Entries::new(self, LIST, partition, (low, high), Order::Descending);
        let mut last = None;
        loop {
            let found = entries.next(AT_ONCE.min(limit.saturating_add(1))).await?;
            if found.is_empty() {
                return Ok(page);
            }
            let names: Vec<String> = found.iter().map(|(_, name)| name.clone()).collect();
            let mut items = self.items(&names, &[]).await?;
            for (sort, name) in found {
                let Some(item) = items.remove(&name) else { continue };
                let line = line_of(&item);
                if line.as_ref().is_ok_and(|line| !filter.passes(line)) {
                    continue;
                }
                if page.lines.len() + page.damaged >= limit {
                    page.next = last;
                    return Ok(page);
                }
                match line {
                    Ok(line) => page.lines.push(line),
                    Err(error) => {
                        damage.pass(error)?;
                        page.damaged += 1;
                    }
                }
                last = cursor_at(&sort);
            }
        }
    }

    /// Removes entries that are older than this, the oldest first; how many.
    pub(crate) async fn purge_audit(&self, older_than: Duration, at_most: usize) -> Result<u64, StoreError> {
        let now = self.moment_now().await?.told;
        let age = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
        let before = now.earliest.as_millis().saturating_sub(age);
        if now.is_held() || before <= 0 {
            return Ok(0);
        }
        let high = [sortable(before - 1).as_slice(), &[0xff; PLACE - 8]].concat();
        let mut entries = Entries::new(self, LIST, partition, (vec![0], high), Order::Ascending);
        let mut purged = 0;
        while purged < at_most {
            let found = entries.next((at_most - purged).min(AT_ONCE)).await?;
            if found.is_empty() {
                break;
            }
            let names: Vec<String> = found.into_iter().map(|(_, name)| name).collect();
            self.delete_all(&names).await.map_err(Failure::of_write)?;
            purged += names.len();
        }
        Ok(purged as u64)
    }
}

fn item_of(entry: &AuditEntry, at: Timestamp, nth: u64) -> Item {
    let AuditEntry { id, actor, action, result, target, tenant, operation, details } = entry;
    let contents =
        json!([actor, action.as_str(), result.as_str(), target, tenant, operation, details.to_json()]);
    [
        (NAME, text(&format!("u#{id}"))),
        (LIST.partition, text(&partition(id.as_bytes()[15] % SHARDS))),
        (LIST.sort, bytes(&place(at, nth, *id))),
        ("at", number(at.as_millis())),
        (CONTENTS, text(&contents.to_string())),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

type Contents = (String, String, String, Option<String>, Option<String>, Option<String>, String);

fn line_of(item: &Item) -> Result<AuditLine, StoreError> {
    let read = || -> Option<AuditLine> {
        let of = Attributes(item);
        let at = Timestamp::from_millis(of.number("at").ok()??);
        let id: [u8; 16] = of.bytes(LIST.sort).ok()??.get(16..)?.try_into().ok()?;
        let contents = of.text(CONTENTS).ok()??;
        let (actor, action, result, target, tenant, operation, details): Contents =
            serde_json::from_str(contents).ok()?;
        let entry = AuditEntry {
            id: AuditId::from_bytes(id),
            actor,
            action: AuditAction::from_name(&action)?,
            result: AuditResult::from_name(&result)?,
            target,
            tenant,
            operation,
            details: AuditDetails::from_json(&details).ok()?,
        };
        Some(AuditLine { at, entry })
    };
    let name = || Attributes(item).text(NAME).ok().flatten().unwrap_or_default().to_owned();
    read().ok_or_else(|| StoreError::Damaged(format!("the entry {} of the audit", name())))
}

fn cursor_at(sort: &[u8]) -> Option<AuditCursor> {
    let number: [u8; 8] = sort.get(8..16)?.try_into().ok()?;
    let at = Timestamp::from_millis(names::moment(sort)?);
    Some(AuditCursor::at(at, u64::from_be_bytes(number).cast_signed()))
}
