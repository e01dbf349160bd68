//! The requests that several parts of the store send: one item, many items, items written and deleted without a condition.

use crate::api::{Api, Failure};
use crate::names::{NAME, RECORD};
use crate::value::{Attributes, Item, text};
use semel::StoreError;
use serde_json::{Value, json};
use std::collections::HashMap;

/// How many items one request may read, or write.
const READ_AT_ONCE: usize = 100;
const WRITTEN_AT_ONCE: usize = 25;

/// How often what the service left undone of many independent writes is sent again. These have no condition, and are the same twice.
const TRIES: usize = 5;

impl Api {
    /// The item of this name, as it is now.
    pub(crate) async fn item(&self, name: &str) -> Result<Option<Item>, StoreError> {
        let request =
            json!({ "TableName": self.table(), "Key": { NAME: text(name) }, "ConsistentRead": true });
        let mut answer = self.read("GetItem", &request).await?;
        Ok(object(answer.get_mut("Item")))
    }

    /// The items of these names, as they are now, by their names. `only` these attributes, or all.
    pub(crate) async fn items(
        &self,
        names: &[String],
        only: &[&str],
    ) -> Result<HashMap<String, Item>, StoreError> {
        let mut found = HashMap::with_capacity(names.len());
        let mut distinct: Vec<&String> = names.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        if let ([name], true) = (&distinct[..], only.is_empty()) {
            found.extend(self.item(name).await?.map(|item| ((*name).clone(), item)));
            return Ok(found);
        }
        for names in distinct.chunks(READ_AT_ONCE) {
            let keys: Vec<Value> = names.iter().map(|name| json!({ NAME: text(name) })).collect();
            let mut of_table = json!({ "Keys": keys, "ConsistentRead": true });
            if !only.is_empty() {
                let (places, called) = projected(only);
                of_table["ProjectionExpression"] = places.into();
                of_table["ExpressionAttributeNames"] = called;
            }
            let mut wanted = json!({ self.table(): of_table });
            loop {
                let request = json!({ "RequestItems": wanted });
                let mut answer = self.read("BatchGetItem", &request).await?;
                let items = answer.pointer_mut(&format!("/Responses/{}", self.table()));
                let items = items.and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
                let came = items.len();
                for mut item in items {
                    let Some(item) = object(Some(&mut item)) else { continue };
                    let name = Attributes(&item).text(NAME).map_err(StoreError::Damaged)?.map(str::to_owned);
                    found.extend(name.map(|name| (name, item)));
                }
                // An answer ends at 16 MB, and the rest is asked for again. Without any progress, this is throttling.
                let left = answer.get_mut("UnprocessedKeys").map(Value::take).unwrap_or_default();
                if left.as_object().is_none_or(serde_json::Map::is_empty) {
                    break;
                }
                if came == 0 {
                    return Err(StoreError::Unavailable("the table is throttled".into()));
                }
                wanted = left;
            }
        }
        Ok(found)
    }

    /// Writes pointers, each a pair of its name and the record's.
    pub(crate) async fn put_pointers(&self, pointers: &[(String, String)]) -> Result<(), Failure> {
        let put = |(name, record): &(String, String)| json!({ "PutRequest": { "Item": { NAME: text(name), RECORD: text(record) } } });
        self.write_all(pointers.iter().map(put).collect()).await
    }

    /// Deletes the items of these names, whether they are there or not.
    pub(crate) async fn delete_all(&self, names: &[String]) -> Result<(), Failure> {
        let delete = |name: &String| json!({ "DeleteRequest": { "Key": { NAME: text(name) } } });
        self.write_all(names.iter().map(delete).collect()).await
    }

    async fn write_all(&self, requests: Vec<Value>) -> Result<(), Failure> {
        for requests in requests.chunks(WRITTEN_AT_ONCE) {
            let mut left = json!({ self.table(): requests });
            for again in 0.. {
                let request = json!({ "RequestItems": left });
                let mut answer = self.call("BatchWriteItem", &request).await?;
                left = answer.get_mut("UnprocessedItems").map(Value::take).unwrap_or_default();
                if left.as_object().is_none_or(serde_json::Map::is_empty) {
                    break;
                }
                if again == TRIES {
                    return Err(Failure::Unknown("the table is throttled".into()));
                }
                tokio::time::sleep(std::time::Duration::from_millis(10 << again)).await;
            }
        }
        Ok(())
    }
}

/// An item in an answer.
pub(crate) fn object(value: Option<&mut Value>) -> Option<Item> {
    match value.map(Value::take) {
        Some(Value::Object(item)) => Some(item),
        _ => None,
    }
}

/// These attributes as a projection, by placeholders: some of their names are words of the service's.
fn projected(only: &[&str]) -> (String, Value) {
    let places: Vec<String> = (0..only.len()).map(|index| format!("#a{index}")).collect();
    let called: serde_json::Map<String, Value> =
        places.iter().cloned().zip(only.iter().map(|name| Value::from(*name))).collect();
    (places.join(","), Value::Object(called))
}
