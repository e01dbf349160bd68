//! Listings, counts, and what is due.

use crate::api::Api;
use crate::index::{Entries, Order, after, before};
use crate::item::{WITHOUT_ANSWER, parse_line, tenant_partition};
use crate::names::{self, DUE, LIST, LIVE_UNTIL, NAME, RECORD, SHARDS, TENANT, due_partition, sort_key};
use crate::value::{Attributes, Item, number, text};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use semel::transition::state_at;
use semel::{
    Answer, Cursor, DamageLog, DueKind, DueQuery, Filter, HistoryLine, KeyScope, LiveOperations, Now,
    OperationId, Page, Record, RecordKey, State, StoreError, Timestamp,
};
use serde_json::json;

/// How long the place of a record in a listing is: its moment, a number that grows within a process, and its operation id.
const PLACE: usize = 8 + 8 + 16;

/// The most that is read at once on the way to what is looked for.
const AT_ONCE: usize = 100;

/// The most records whose operations are counted: a few seconds' work, and as many units.
const COUNTED: usize = 20_000;

/// The place in listings of a record that is made now, as the `nth` of this process.
pub(crate) fn place(now: Now, nth: u64, id: OperationId) -> Vec<u8> {
    let moment = names::sortable(now.earliest.as_millis());
    [moment.as_slice(), &nth.to_be_bytes(), id.as_bytes()].concat()
}

impl Api {
    /// One page of the records that `filter` lets through, in the order of their creation.
    pub(crate) async fn list(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        limit: usize,
        damage: &DamageLog,
    ) -> Result<Page, StoreError> {
        let now = self.moment_now().await?.told.earliest;
        let order = if filter.oldest_first { Order::Ascending } else { Order::Descending };
        let mut page = Page { records: Vec::new(), damaged: 0, next: None };
        let Some(range) = range_of(filter, from.as_ref(), order)? else { return Ok(page) };
        if let Some(key) = whole_key(filter) {
            return self.list_of_key(&key, filter, now, &range, (limit, damage)).await;
        }
        let mut entries = match &filter.tenant {
            Some(tenant) => {
                let partition = |shard| tenant_partition(tenant, shard);
                Entries::new(self, TENANT, partition, range, order)
            }
            None => Entries::new(self, LIST, |shard| format!("l{shard}"), range, order),
        };
        let mut last: Option<Vec<u8>> = None;
        loop {
            let room = limit.saturating_sub(page.records.len() + page.damaged);
            let found = entries.next(room.saturating_add(1).min(AT_ONCE)).await?;
            if found.is_empty() {
                return Ok(page);
            }
            let mut items = self.listed(found.iter().map(|(_, name)| name)).await?;
            for (place, name) in found {
                let Some(item) = items.remove(&name) else { continue };
                let record = match self.without_answer(item).await {
                    Ok(Some(record)) if passes(filter, &record, now) => Ok(record),
                    Ok(_) => continue,
                    Err(error) => Err(error),
                };
                if page.records.len() + page.damaged >= limit {
                    page.next = last.map(|place| Cursor::new(BASE64_URL_SAFE_NO_PAD.encode(place)));
                    return Ok(page);
                }
                match record {
                    Ok(record) => page.records.push(record),
                    Err(error) => {
                        damage.pass(error)?;
                        page.damaged += 1;
                    }
                }
                last = Some(place);
            }
        }
    }

    /// The page of a filter that only two records can pass, one of each scope of keys: no index is needed for it.
    async fn list_of_key(
        &self,
        key: &RecordKey,
        filter: &Filter,
        now: Timestamp,
        (low, high): &(Vec<u8>, Vec<u8>),
        (limit, damage): (usize, &DamageLog),
    ) -> Result<Page, StoreError> {
        let names = KeyScope::ALL.map(|scope| names::record(&key.clone().in_scope(scope)));
        let mut found = Vec::new();
        for (_, item) in self.items(&names, &WITHOUT_ANSWER).await? {
            let place = Attributes(&item).bytes(LIST.sort).ok().flatten().unwrap_or_default();
            if (low..=high).contains(&&place) {
                found.push((place, item));
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        if !filter.oldest_first {
            found.reverse();
        }
        let mut page = Page { records: Vec::new(), damaged: 0, next: None };
        let mut last: Option<Vec<u8>> = None;
        for (place, item) in found {
            let record = match self.without_answer(item).await {
                Ok(record) => record.filter(|record| passes(filter, record, now)).map(Ok),
                Err(error) => Some(Err(error)),
            };
            let Some(record) = record else { continue };
            if page.records.len() + page.damaged >= limit {
                page.next = last.map(|place| Cursor::new(BASE64_URL_SAFE_NO_PAD.encode(place)));
                break;
            }
            match record {
                Ok(record) => page.records.push(record),
                Err(error) => {
                    damage.pass(error)?;
                    page.damaged += 1;
                }
            }
            last = Some(place);
        }
        Ok(page)
    }

    /// How many keys are live of each operation, among the records that were created last.
    pub(crate) async fn live_operations(&self, newest: usize) -> Result<LiveOperations, StoreError> {
        let now = self.moment_now().await?.told.earliest;
        let range = (vec![0; PLACE], vec![0xff; PLACE]);
        let mut entries = Entries::new(self, LIST, |shard| format!("l{shard}"), range, Order::Descending);
        let (mut live, mut looked_at) = (LiveOperations::default(), 0);
        let most = newest.min(COUNTED);
        while looked_at < most && !live.is_all {
            let found = entries.next((most - looked_at).min(AT_ONCE)).await?;
            live.is_all = found.is_empty();
            looked_at += found.len();
            for (_, item) in self.listed(found.iter().map(|(_, name)| name)).await? {
                // What cannot be read is of no operation that anybody could name.
                let Ok(Some(record)) = self.without_answer(item).await else { continue };
                if state_at(&record, now) != State::Expired {
                    let RecordKey { operation, scope, .. } = &record.key;
                    *live.operations.entry((operation.to_string(), *scope)).or_default() += 1;
                }
            }
        }
        Ok(live)
    }

    /// Items without answers and histories, as they are now.
    async fn listed(
        &self,
        names: impl Iterator<Item = &String>,
    ) -> Result<std::collections::HashMap<String, Item>, StoreError> {
        let names: Vec<String> = names.cloned().collect();
        self.items(&names, &WITHOUT_ANSWER).await
    }

    /// How many records of a tenant are live, counted by its index.
    pub(crate) async fn count_live(&self, tenant: &str, at_most: u64) -> Result<u64, StoreError> {
        let latest = self.moment_now().await?.told.latest.as_millis();
        let mut count = 0;
        for shard in 0..SHARDS {
            let mut from = None;
            while count < at_most {
                let mut request = json!({
                    "TableName": self.table(),
                    "IndexName": TENANT.name,
                    "Select": "COUNT",
                    "KeyConditionExpression": "#p = :p",
                    "FilterExpression": "#u > :now",
                    "ExpressionAttributeNames": { "#p": TENANT.partition, "#u": LIVE_UNTIL },
                    "ExpressionAttributeValues": {
                        ":p": text(&tenant_partition(tenant, shard)), ":now": number(latest)
                    },
                });
                if let Some(from) = from.take() {
                    request["ExclusiveStartKey"] = from;
                }
                let mut answer = self.read("Query", &request).await?;
                count += answer.get("Count").and_then(serde_json::Value::as_u64).unwrap_or(0);
                from = answer
                    .get_mut("LastEvaluatedKey")
                    .map(serde_json::Value::take)
                    .filter(|key| !key.is_null());
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(count.min(at_most))
    }

    /// What waits for something that is due, earliest first.
    pub(crate) async fn due(
        &self,
        query: &DueQuery,
        damage: &DamageLog,
    ) -> Result<Answer<Record>, StoreError> {
        let moment = self.moment_now().await?.told;
        let mut records = Vec::new();
        if moment.is_held() && matches!(query.kind, DueKind::Window | DueKind::Purge) {
            return Ok(Answer::at(moment, records));
        }
        let low = query.after.map_or(vec![0], |(at, id)| after(sort_key(at.as_millis(), id.as_bytes())));
        let high = sort_key(moment.earliest.as_millis(), &[0xff; 16]);
        let partition = |shard| due_partition(query.kind, shard);
        let mut entries = Entries::new(self, DUE, partition, (low, high), Order::Ascending);
        while records.len() < query.limit {
            let found = entries.next((query.limit - records.len()).min(AT_ONCE)).await?;
            if found.is_empty() {
                break;
            }
            let mut items = self.listed(found.iter().map(|(_, name)| name)).await?;
            for (sort, name) in found {
                let Some(item) = items.remove(&name) else { continue };
                match self.without_answer(item).await {
                    // The index may be late: what counts is what the record itself says.
                    Ok(Some(record)) => {
                        records.extend(Some(record).filter(|record| waits(record, query.kind, &sort)))
                    }
                    Ok(None) => {}
                    Err(error) => damage.pass(error)?,
                }
            }
        }
        if query.kind == DueKind::Lease {
            let concerned: Vec<&Record> = records.iter().collect();
            if let Err(error) = self.ensure_pointers(&concerned).await {
                tracing::debug!(%error, "pointers may be missing, and are looked for at the next look");
            }
        }
        Ok(Answer::at(moment, records))
    }

    /// The items of the records of these operation ids, in this order.
    pub(crate) async fn found(
        &self,
        ids: &[OperationId],
        only: &[&str],
    ) -> Result<Vec<Option<Item>>, StoreError> {
        let pointers: Vec<String> = ids.iter().map(|id| names::pointer(*id)).collect();
        let pointing = self.items(&pointers, &[]).await?;
        let records: Vec<Option<String>> = pointers
            .iter()
            .map(|pointer| {
                let item = pointing.get(pointer)?;
                Attributes(item).text(RECORD).ok().flatten().map(str::to_owned)
            })
            .collect();
        let names: Vec<String> = records.iter().flatten().cloned().collect();
        let items = self.items(&names, only).await?;
        let is_of = |item: &&Item, id: OperationId| Attributes(item).array(names::ID) == Ok(*id.as_bytes());
        let of = |(record, id): (&Option<String>, &OperationId)| {
            items.get(record.as_ref()?).filter(|item| is_of(item, *id)).cloned()
        };
        Ok(records.iter().zip(ids).map(of).collect())
    }

    /// The history of an operation, oldest first.
    pub(crate) async fn history(&self, id: OperationId) -> Result<Vec<HistoryLine>, StoreError> {
        let only = [NAME, names::ID, names::HISTORY, names::FOLDED];
        let found = self.found(&[id], &only).await?.into_iter().flatten().next();
        let Some(item) = found else { return Ok(Vec::new()) };
        let (folded, own) = crate::item::history_of(&item)?;
        let mut lines = Vec::new();
        for write in folded {
            let names = [names::part(write, 0)];
            let items = self.items(&names, &[]).await?;
            let contents = items.get(&names[0]).map(|item| Attributes(item).bytes(names::CONTENTS));
            let contents = contents.transpose().map_err(StoreError::Damaged)?.flatten();
            let texts: Option<Vec<String>> =
                contents.and_then(|contents| serde_json::from_slice(&contents).ok());
            let texts = texts.ok_or_else(|| crate::item::damaged(id, "a part of its history is gone"))?;
            lines.extend(texts);
        }
        lines.extend(own);
        lines.iter().map(|line| parse_line(line, id)).collect()
    }
}

/// Whether a record waits for this, at the moment that its entry says.
pub(crate) fn waits(record: &Record, kind: DueKind, sort: &[u8]) -> bool {
    let at = names::moment(sort).map(Timestamp::from_millis);
    record.due().is_some_and(|(waits_for, since)| waits_for == kind && Some(since) == at)
}

fn place_of(cursor: &Cursor) -> Result<Vec<u8>, StoreError> {
    let place = BASE64_URL_SAFE_NO_PAD.decode(cursor.as_str()).map_err(|_| StoreError::InvalidCursor)?;
    if place.len() == PLACE { Ok(place) } else { Err(StoreError::InvalidCursor) }
}

/// The first and the last place in the index of a page.
type Places = (Vec<u8>, Vec<u8>);

/// From where to where in the index the records are that can pass, behind the last page's last record; `None`: nowhere.
fn range_of(filter: &Filter, from: Option<&Cursor>, order: Order) -> Result<Option<Places>, StoreError> {
    // A record's place is from the moment of its creation, or close to it.
    let slack = i64::try_from(Filter::OUT_OF_ORDER.as_millis() * 2).unwrap_or(i64::MAX);
    let first = |at: Timestamp| names::sortable(at.as_millis().saturating_sub(slack)).to_vec();
    let mut low = filter.created_from.map_or(vec![0], first);
    let mut high = filter.created_until.map_or(vec![0xff; PLACE], |at| {
        [names::sortable(at.as_millis().saturating_add(slack)).as_slice(), &[0xff; PLACE - 8]].concat()
    });
    if let Some(place) = from.map(place_of).transpose()? {
        match order {
            Order::Ascending => low = low.max(after(place)),
            Order::Descending => match before(&place) {
                Some(place) => high = high.min(place),
                None => return Ok(None),
            },
        }
    }
    Ok((low <= high).then_some((low, high)))
}

fn whole_key(filter: &Filter) -> Option<RecordKey> {
    let Filter { tenant, operation, key, .. } = filter;
    Some(RecordKey::new(tenant.as_deref()?, operation.as_deref()?, key.as_deref()?))
}

fn passes(filter: &Filter, record: &Record, now: Timestamp) -> bool {
    let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    filter.state.is_none_or(|state| state == state_at(record, now))
        && is(&filter.tenant, &record.key.tenant)
        && is(&filter.operation, &record.key.operation)
        && is(&filter.key, &record.key.key)
        && filter.dead_letter.is_none_or(|dead_letter| dead_letter == record.dead_letter)
        && filter.created_from.is_none_or(|from| record.times.created >= from)
        && filter.created_until.is_none_or(|until| record.times.created < until)
}
