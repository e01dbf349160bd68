//! What an index says, over all of its shards, in order. It says it late: whatever is found is a hint, and read again before anything is
//! decided by it.

use crate::api::Api;
use crate::names::{Index, NAME, SHARDS};
use crate::requests::object;
use crate::value::{Attributes, bytes, text};
use semel::StoreError;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// An entry of an index: its sort key, and the name of the item.
pub(crate) type Entry = (Vec<u8>, String);

/// Which way an index is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// The entries of an index between two sort keys, merged from its shards.
pub(crate) struct Entries<'a> {
    api: &'a Api,
    index: Index,
    order: Order,
    at_once: usize,
    shards: Vec<Shard>,
}

struct Shard {
    partition: String,
    /// What is left to be asked for: both ends belong to it.
    range: Option<(Vec<u8>, Vec<u8>)>,
    buffer: VecDeque<Entry>,
}

impl<'a> Entries<'a> {
    /// The entries from `low` to `high`, both included, of the partitions that `partition` names for each shard.
    pub(crate) fn new(
        api: &'a Api,
        index: Index,
        partition: impl Fn(u8) -> String,
        (low, high): (Vec<u8>, Vec<u8>),
        order: Order,
    ) -> Self {
        let shard = |number| Shard {
            partition: partition(number),
            range: (low <= high).then(|| (low.clone(), high.clone())),
            buffer: VecDeque::new(),
        };
        Self { api, index, order, at_once: 25, shards: (0..SHARDS).map(shard).collect() }
    }

    /// The next `most` of them, or all that are left.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        // Few at first: most of what is asked for is little.
        self.at_once = (most / usize::from(SHARDS) * 2).clamp(10, 500);
        while entries.len() < most {
            self.fill().await?;
            let first = self.shards.iter_mut().filter(|shard| !shard.buffer.is_empty());
            let next = match self.order {
                Order::Ascending => first.min_by(|one, other| one.buffer.front().cmp(&other.buffer.front())),
                Order::Descending => first.max_by(|one, other| one.buffer.front().cmp(&other.buffer.front())),
            };
            let Some(entry) = next.and_then(|shard| shard.buffer.pop_front()) else { break };
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Asks for more of every shard that has run dry, all at once.
    async fn fill(&mut self) -> Result<(), StoreError> {
        let (index, order, at_once) = (self.index, self.order, self.at_once);
        let mut asking = Vec::new();
        for (number, shard) in self.shards.iter_mut().enumerate().filter(|(_, shard)| shard.buffer.is_empty())
        {
            if let Some(range) = shard.range.take() {
                let (api, partition) = (self.api.clone(), shard.partition.clone());
                let asked =
                    tokio::spawn(async move { page(&api, index, &partition, range, order, at_once).await });
                asking.push((number, asked));
            }
        }
        for (number, asked) in asking {
            let broke_off = |_| StoreError::Unavailable("a task of the store broke off".into());
            let (buffer, range) = asked.await.map_err(broke_off)??;
            self.shards[number].buffer = buffer;
            self.shards[number].range = range;
        }
        Ok(())
    }
}

type Range = (Vec<u8>, Vec<u8>);

/// A page of one shard, and what is left to be asked for.
async fn page(
    api: &Api,
    index: Index,
    partition: &str,
    (low, high): Range,
    order: Order,
    at_once: usize,
) -> Result<(VecDeque<Entry>, Option<Range>), StoreError> {
    let request = json!({
        "TableName": api.table(),
        "IndexName": index.name,
        "KeyConditionExpression": "#p = :p AND #s BETWEEN :low AND :high",
        "ExpressionAttributeNames": { "#p": index.partition, "#s": index.sort },
        "ExpressionAttributeValues": { ":p": text(partition), ":low": bytes(&low), ":high": bytes(&high) },
        "ScanIndexForward": order == Order::Ascending,
        "Limit": at_once,
    });
    let mut answer = api.read("Query", &request).await?;
    let is_more = answer.get("LastEvaluatedKey").is_some_and(|key| !key.is_null());
    let items = answer.get_mut("Items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    let mut entries = VecDeque::with_capacity(items.len());
    for mut item in items {
        let Some(item) = object(Some(&mut item)) else { continue };
        let of = Attributes(&item);
        let sort = of.bytes(index.sort).map_err(StoreError::Damaged)?;
        let name = of.text(NAME).map_err(StoreError::Damaged)?;
        entries.extend(sort.zip(name.map(str::to_owned)));
    }
    let last = entries.back().map(|(sort, _)| sort.clone()).filter(|_| is_more);
    let range = last.and_then(|last| match order {
        Order::Ascending => Some((after(last), high)),
        Order::Descending => Some((low, before(&last)?)),
    });
    Ok((entries, range.filter(|(low, high)| low <= high)))
}

/// The first sort key behind this one.
pub(crate) fn after(mut sort: Vec<u8>) -> Vec<u8> {
    sort.push(0);
    sort
}

/// A sort key before this one, and behind all others that are in use: all of an index are equally long.
pub(crate) fn before(sort: &[u8]) -> Option<Vec<u8>> {
    let mut sort = sort.to_vec();
    for byte in sort.iter_mut().rev() {
        let (less, borrows) = byte.overflowing_sub(1);
        *byte = less;
        if !borrows {
            return Some(sort);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_sort_keys() {
        assert!(after(vec![1, 255]) > vec![1, 255] && after(vec![1, 255]) < vec![2, 0]);
        assert_eq!(before(&[1, 0]), Some(vec![0, 255]));
        assert_eq!(before(&[1, 1]), Some(vec![1, 0]));
        assert_eq!(before(&[0, 0]), None);
    }
}
