//! What goes because its time is over: answers, records, and parts that nothing names.

use crate::apart::Apart;
use crate::api::{Api, CONDITION, Failure};
use crate::index::{Entries, Order};
use crate::item::{WITHOUT_ANSWER, elsewhere};
use crate::listing::waits;
use crate::mark::no_hold;
use crate::names::{
    ANSWER_APART, BODY, CHECKPOINT_APART, DUE, ENDS, FOLDED, HEADERS, NAME, PARTS, RECORD, WRITE,
    due_partition, moment, part, sort_key, sortable,
};
use crate::parts::SWEPT_AFTER;
use crate::requests::object;
use crate::together::each;
use crate::value::{Attributes, Item, bytes, text};
use semel::{Answer, DueKind, Purged, Record, StoreError, Timestamp};
use serde_json::{Value, json};

/// How many records one transaction removes: each takes two of its hundred actions, and one looks at the clock.
const PURGED_AT_ONCE: usize = 40;

/// How many answers are dropped at the same time.
const DROPPED_AT_ONCE: usize = 50;

/// How many parts are looked at in one sweep.
const SWEPT_AT_ONCE: usize = 20;

/// Why a transaction as a whole was not done.
const CANCELLED: &str = "TransactionCanceledException";

impl Api {
    /// Drops answers that are over, those that ended first, and says when each of them ended.
    pub(crate) async fn drop_answers(&self, at_most: usize) -> Result<Answer<Timestamp>, StoreError> {
        let now = self.moment_now().await?.told;
        let mut dropped = Vec::new();
        if now.is_held() {
            return Ok(Answer::at(now, dropped));
        }
        let high = sort_key(now.earliest.as_millis(), &[0xff; 16]);
        let mut entries =
            Entries::new(self, ENDS, |shard| format!("e{shard}"), (vec![0], high), Order::Ascending);
        while dropped.len() < at_most {
            let found = entries.next((at_most - dropped.len()).min(DROPPED_AT_ONCE)).await?;
            if found.is_empty() {
                break;
            }
            let ends: Vec<_> = found.iter().map(|(sort, _)| moment(sort)).collect();
            let tasks = found.into_iter().map(|(sort, name)| {
                let api = self.clone();
                async move { api.drop_answer(&name, &sort).await.map_err(Failure::of_write) }
            });
            let mut failed = None;
            for (end, result) in ends.into_iter().zip(each(tasks).await) {
                match result {
                    Ok(true) => dropped.extend(end.map(Timestamp::from_millis)),
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                // What was dropped is told; the rest comes at the next call.
                Some(_) if !dropped.is_empty() => break,
                Some(error) => return Err(error),
                None => {}
            }
        }
        Ok(Answer::at(now, dropped))
    }

    /// Drops one answer, if it is still the one that the index says; whether it was.
    async fn drop_answer(&self, name: &str, sort: &[u8]) -> Result<bool, Failure> {
        let request = json!({
            "TableName": self.table(),
            "Key": { NAME: text(name) },
            "UpdateExpression": "REMOVE #ah, #ab, #ap, #ep, #es",
            "ConditionExpression": "#es = :es",
            "ExpressionAttributeNames": {
                "#ah": HEADERS, "#ab": BODY, "#ap": ANSWER_APART, "#ep": ENDS.partition, "#es": ENDS.sort
            },
            "ExpressionAttributeValues": { ":es": bytes(sort) },
            "ReturnValues": "UPDATED_OLD",
        });
        match self.call("UpdateItem", &request).await {
            Ok(mut answer) => {
                let old = object(answer.get_mut("Attributes")).unwrap_or_default();
                let apart = elsewhere(&old).unwrap_or_default()[0];
                let names: Vec<String> = apart.into_iter().flat_map(Apart::names).collect();
                // What stays is swept.
                let _swept_later = self.delete_all(&names).await;
                Ok(true)
            }
            Err(failure) if failure.code() == Some(CONDITION) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Removes records whose time is over, those first whose moment came first.
    pub(crate) async fn purge(&self, at_most: usize) -> Result<Answer<Purged>, StoreError> {
        let now = self.moment_now().await?.told;
        let mut purged = Vec::new();
        if now.is_held() {
            return Ok(Answer::at(now, purged));
        }
        let high = sort_key(now.earliest.as_millis(), &[0xff; 16]);
        let partition = |shard| due_partition(DueKind::Purge, shard);
        let mut entries = Entries::new(self, DUE, partition, (vec![0], high), Order::Ascending);
        while purged.len() < at_most {
            let found = entries.next((at_most - purged.len()).min(PURGED_AT_ONCE)).await?;
            if found.is_empty() {
                break;
            }
            let names: Vec<String> = found.iter().map(|(_, name)| name.clone()).collect();
            let only: Vec<&str> = WITHOUT_ANSWER.iter().copied().chain([ANSWER_APART, FOLDED]).collect();
            let mut items = self.items(&names, &only).await?;
            let mut over = Vec::new();
            for (sort, name) in found {
                let Some(item) = items.remove(&name) else { continue };
                // A record that cannot be read stays: nobody knows whether it may go.
                let Ok(Some(record)) = self.without_answer(item.clone()).await else { continue };
                if waits(&record, DueKind::Purge, &sort)
                    && record.times.purge.is_some_and(|at| at.has_come(now.earliest))
                {
                    over.push((item, record));
                }
            }
            match self.purge_these(over).await {
                Ok(Some(gone)) => purged.extend(gone),
                // A clock hold is open.
                Ok(None) => break,
                Err(error) if purged.is_empty() => return Err(error),
                Err(error) => return Err(StoreError::Lost(error.to_string())),
            }
        }
        Ok(Answer::at(now, purged))
    }

    /// Removes these in one transaction, which looks at the clock; `None`: a clock hold is open. What was written since it was read stays.
    async fn purge_these(&self, mut over: Vec<(Item, Record)>) -> Result<Option<Vec<Purged>>, StoreError> {
        while !over.is_empty() {
            let mut actions = vec![no_hold(self.table())];
            for (item, record) in &over {
                let write = item.get(WRITE).cloned().unwrap_or_default();
                actions.push(json!({ "Delete": {
                    "TableName": self.table(),
                    "Key": { NAME: item.get(NAME) },
                    "ConditionExpression": "#w = :w",
                    "ExpressionAttributeNames": { "#w": WRITE },
                    "ExpressionAttributeValues": { ":w": write },
                } }));
                actions.push(json!({ "Delete": {
                    "TableName": self.table(),
                    "Key": { NAME: text(&crate::names::pointer(record.operation_id)) },
                } }));
            }
            let failure = match self.call("TransactWriteItems", &json!({ "TransactItems": actions })).await {
                Ok(_) => {
                    let (items, records): (Vec<Item>, Vec<Record>) = over.into_iter().unzip();
                    self.clean_up(&items, false).await;
                    let purged = |record: Record| {
                        let since = record.times.purge.unwrap_or(record.times.created);
                        Purged { operation: record.key.operation, since }
                    };
                    return Ok(Some(records.into_iter().map(purged).collect()));
                }
                Err(Failure::Refused(refusal)) if refusal.code == CANCELLED => refusal,
                Err(failure) => return Err(failure.of_write()),
            };
            let reasons = failure.document.get("CancellationReasons").and_then(Value::as_array);
            let why = |place: usize| {
                reasons.and_then(|reasons| reasons.get(place)?.get("Code")?.as_str()).unwrap_or("None")
            };
            if why(0) == "ConditionalCheckFailed" {
                return Ok(None);
            }
            // Each transaction that fails names somebody who was in the way, and the next one goes without it.
            let before = over.len();
            let mut place = 0;
            over.retain(|_| {
                place += 2;
                why(place - 1) == "None" && why(place) == "None"
            });
            if over.len() == before {
                return Err(StoreError::Unavailable(format!("{}: {}", failure.code, failure.message)));
            }
        }
        Ok(Some(Vec::new()))
    }

    /// Removes parts that no record names: of writes that lost, and of answers that were written again.
    pub(crate) async fn sweep(&self) -> Result<usize, StoreError> {
        let now = self.moment().await?.told;
        if now.is_held() {
            return Ok(0);
        }
        let high = [sortable(now.earliest.as_millis()).as_slice(), &[0xff; 16]].concat();
        let mut entries =
            Entries::new(self, ENDS, |shard| format!("s{shard}"), (vec![0], high), Order::Ascending);
        let mut swept = 0;
        for (_, name) in entries.next(SWEPT_AT_ONCE).await? {
            let Some(item) = self.item(&name).await? else { continue };
            let of = Attributes(&item);
            let record = of.text(RECORD).map_err(StoreError::Damaged)?.unwrap_or_default();
            let write = name.split('#').nth(1).unwrap_or_default();
            let names_it = match self.item(record).await? {
                Some(record) => [ANSWER_APART, CHECKPOINT_APART, FOLDED].into_iter().any(|attribute| {
                    record.get(attribute).is_some_and(|value| value.to_string().contains(write))
                }),
                None => false,
            };
            if names_it {
                let at = now.earliest.as_millis().saturating_add(SWEPT_AFTER);
                let id = crate::names::WriteId::parse(write).map_or([0; 16], |id| id.0);
                let later = json!({
                    "TableName": self.table(),
                    "Key": { NAME: text(&name) },
                    "UpdateExpression": "SET #es = :es",
                    "ConditionExpression": "attribute_exists(#p)",
                    "ExpressionAttributeNames": { "#es": ENDS.sort, "#p": NAME },
                    "ExpressionAttributeValues": { ":es": bytes(&sort_key(at, &id)) },
                });
                let _at_the_next_look = self.call("UpdateItem", &later).await;
            } else {
                let parts: usize = of.number(PARTS).map_err(StoreError::Damaged)?.unwrap_or(1);
                let names: Vec<String> = crate::names::WriteId::parse(write)
                    .into_iter()
                    .flat_map(|id| (0..parts).map(move |number| part(id, number)))
                    .collect();
                self.delete_all(&names).await.map_err(Failure::of_write)?;
                swept += 1;
            }
        }
        Ok(swept)
    }
}
