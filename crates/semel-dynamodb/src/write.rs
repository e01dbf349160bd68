//! Creates, swaps and removals: each a single conditional write.
//!
//! A write whose answer is lost is read back by its write id. A condition that does not hold although the write id of what is there is ours was
//! met by the same request before: somebody on the way sent it twice.

use crate::api::{Api, CONDITION, Failure, Refusal};
use crate::item::{changing, fixed, history_of, is_history_attribute, line};
use crate::names::{self, FOLDED, HISTORY, HISTORY_SIZE, ID, NAME, VERSION, WRITE, WriteId};
use crate::requests::object;
use crate::time::Moment;
use crate::value::{Attributes, Item, bytes, number, text};
use semel::{Created, Draft, Expected, HistoryLine, Record, StoreError, Swap, Swapped};
use serde_json::{Map, Value, json};

/// History beyond this many bytes is folded into an item of its own.
const LONGEST_HISTORY: usize = 64 * 1024;

/// What became of a conditional write.
enum Written {
    Done(Value),
    /// The condition did not hold; this is there.
    Otherwise(Option<Item>),
}

impl Api {
    pub(crate) async fn create(
        &self,
        draft: Draft,
        moment: Moment,
        place: Vec<u8>,
    ) -> Result<Created, StoreError> {
        let (write, record) = (WriteId::random(), draft.at(moment.stamp()));
        let name = names::record(&record.key);
        // Nothing of the record is written yet if this fails.
        let large = self.put_apart(&record, &name, write, moment.told.earliest.as_millis()).await;
        let large = large.map_err(Failure::of_read)?;
        let mut item = fixed(&record, &name, &place);
        let some = |(name, value): (&str, Option<Value>)| value.map(|value| (name.to_owned(), value));
        item.extend(changing(&record, &large, write).into_iter().filter_map(some));
        let request = json!({
            "TableName": self.table(),
            "Item": item,
            "ConditionExpression": "attribute_not_exists(#p)",
            "ExpressionAttributeNames": { "#p": NAME },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        let found = match self.written("PutItem", &request).await {
            Ok(Written::Done(_)) => return Ok(Created::Inserted),
            Ok(Written::Otherwise(found)) => found,
            Err(Failure::Unknown(why)) => match self.read_back(&name).await {
                Some(Some(found)) => Some(found),
                // It may come yet.
                _ => return Err(StoreError::Lost(why)),
            },
            Err(failure) => return Err(failure.of_write()),
        };
        let Some(found) = found else {
            return Err(StoreError::Unavailable("the service did not say what is there".into()));
        };
        if is_ours(&found, write, &record) {
            return Ok(Created::Inserted);
        }
        Ok(match self.whole(found).await {
            Ok(Some(there)) => Created::Exists(Box::new(there)),
            Ok(None) => return Err(StoreError::Unavailable("the record went while it was read".into())),
            Err(StoreError::Damaged(why)) => Created::Damaged(why),
            Err(error) => return Err(error),
        })
    }

    pub(crate) async fn swap(&self, swap: Swap, moment: Moment) -> Result<Swapped, StoreError> {
        let Swap { expected, next, history } = swap;
        let (write, record) = (WriteId::random(), next.at(moment.stamp()));
        let (version, at) = (record.version, moment.told.earliest);
        let history = history.map(|entry| line(&HistoryLine { at, version, entry }));
        let name = names::record(&record.key);
        let large = self.put_apart(&record, &name, write, moment.told.earliest.as_millis()).await;
        let attributes = changing(&record, &large.map_err(Failure::of_read)?, write);
        let mut request = self.update(&name, &expected, &attributes, history.as_deref(), None);
        for is_folded in [false, true] {
            let found = match self.written("UpdateItem", &request).await {
                Ok(Written::Done(_)) => return Ok(Swapped::Done),
                Ok(Written::Otherwise(None)) => return Ok(Swapped::Missing),
                Ok(Written::Otherwise(Some(found))) => found,
                Err(Failure::Unknown(why)) => {
                    return self.swapped_after_all(&name, &expected, &record, write, why).await;
                }
                Err(failure) => return Err(failure.of_write()),
            };
            if is_ours(&found, write, &record) {
                return Ok(Swapped::Done);
            }
            match &history {
                // It is what was expected, and its history is too long for one more line.
                Some(history) if !is_folded && is_expected(&found, &expected) => {
                    let folded = self.fold(&found, &name, moment).await?;
                    request = self.update(&name, &expected, &attributes, Some(history), Some(folded));
                }
                _ => return self.changed(found).await,
            }
        }
        Err(StoreError::Unavailable("the history could not be folded".into()))
    }

    /// What became of a swap whose answer is lost.
    async fn swapped_after_all(
        &self,
        name: &str,
        expected: &Expected,
        record: &Record,
        write: WriteId,
        why: String,
    ) -> Result<Swapped, StoreError> {
        let Some(Some(found)) = self.read_back(name).await else { return Err(StoreError::Lost(why)) };
        if is_ours(&found, write, record) {
            return Ok(Swapped::Done);
        }
        // Somebody else's write took the version that this one was to have, so that it can neither have been done nor be done yet.
        let of = Attributes(&found);
        let is_same = of.array(ID) == Ok(*expected.operation_id.as_bytes());
        if is_same
            && of.number::<u64>(VERSION) == Ok(Some(expected.version.saturating_add(1)))
            && record.version == expected.version.saturating_add(1)
        {
            return self.changed(found).await;
        }
        Err(StoreError::Lost(why))
    }

    pub(crate) async fn remove(&self, expected: Expected) -> Result<Swapped, StoreError> {
        let name = names::record(&expected.key);
        let request = json!({
            "TableName": self.table(),
            "Key": { NAME: text(&name) },
            "ConditionExpression": "#id = :id AND #v = :v",
            "ExpressionAttributeNames": { "#id": ID, "#v": VERSION },
            "ExpressionAttributeValues": {
                ":id": bytes(expected.operation_id.as_bytes()), ":v": number(expected.version)
            },
            "ReturnValues": "ALL_OLD",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        match self.written("DeleteItem", &request).await {
            Ok(Written::Done(mut answer)) => {
                let gone: Vec<Item> = object(answer.get_mut("Attributes")).into_iter().collect();
                self.clean_up(&gone, true).await;
                Ok(Swapped::Done)
            }
            Ok(Written::Otherwise(None)) => Ok(Swapped::Missing),
            Ok(Written::Otherwise(Some(found))) => self.changed(found).await,
            Err(Failure::Unknown(why)) => match self.read_back(&name).await {
                Some(Some(found)) if is_later(&found, &expected) => self.changed(found).await,
                _ => Err(StoreError::Lost(why)),
            },
            Err(failure) => Err(failure.of_write()),
        }
    }

    pub(crate) async fn changed(&self, found: Item) -> Result<Swapped, StoreError> {
        Ok(match self.whole(found).await {
            Ok(Some(there)) => Swapped::Changed(Box::new(there)),
            Ok(None) => Swapped::Missing,
            Err(StoreError::Damaged(why)) => Swapped::Damaged(why),
            Err(error) => return Err(error),
        })
    }

    async fn written(&self, operation: &str, request: &Value) -> Result<Written, Failure> {
        match self.call(operation, request).await {
            Ok(answer) => Ok(Written::Done(answer)),
            Err(Failure::Refused(Refusal { code, mut document, .. })) if code == CONDITION => {
                Ok(Written::Otherwise(object(document.get_mut("Item"))))
            }
            Err(failure) => Err(failure),
        }
    }

    /// The item of this name after an answer was lost; `None`: it cannot be read either.
    async fn read_back(&self, name: &str) -> Option<Option<Item>> {
        self.item(name).await.ok()
    }

    /// The request that replaces a record, and appends to its history: to what is there, or, once that was folded, to nothing.
    pub(crate) fn update(
        &self,
        name: &str,
        expected: &Expected,
        attributes: &[(&'static str, Option<Value>)],
        history: Option<&str>,
        folded: Option<Vec<Value>>,
    ) -> Value {
        let (mut called, mut values) = (Map::new(), Map::new());
        let (mut set, mut removed) = (Vec::new(), Vec::new());
        for (name, value) in attributes {
            debug_assert!(!is_history_attribute(name));
            called.insert(format!("#{name}"), Value::from(*name));
            match value {
                Some(value) => {
                    values.insert(format!(":{name}"), value.clone());
                    set.push(format!("#{name}=:{name}"));
                }
                None => removed.push(format!("#{name}")),
            }
        }
        called.insert("#id".into(), ID.into());
        values.insert(":id".into(), bytes(expected.operation_id.as_bytes()));
        values.insert(":was".into(), number(expected.version));
        let mut condition = String::from("#id = :id AND #v = :was");
        if let Some(line) = history {
            called.extend([("#h".into(), HISTORY.into()), ("#hs".into(), HISTORY_SIZE.into())]);
            values.insert(":line".into(), json!({ "L": [text(line)] }));
            values.insert(":size".into(), number(line.len()));
            if let Some(folded) = folded {
                called.insert("#hf".into(), FOLDED.into());
                values.insert(":folded".into(), json!({ "L": folded }));
                set.extend(["#h=:line".into(), "#hs=:size".into(), "#hf=:folded".into()]);
            } else {
                values.extend([
                    (":none".into(), json!({ "L": [] })),
                    (":zero".into(), number(0)),
                    (":most".into(), number(LONGEST_HISTORY)),
                ]);
                set.push("#h=list_append(if_not_exists(#h,:none),:line)".into());
                set.push("#hs=if_not_exists(#hs,:zero)+:size".into());
                condition += " AND (attribute_not_exists(#hs) OR #hs < :most)";
            }
        }
        let mut expression = format!("SET {}", set.join(","));
        if !removed.is_empty() {
            expression += &format!(" REMOVE {}", removed.join(","));
        }
        json!({
            "TableName": self.table(),
            "Key": { NAME: text(name) },
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": called,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        })
    }

    /// Writes the history that an item holds into one of its own; the names of all that it was folded into.
    pub(crate) async fn fold(
        &self,
        found: &Item,
        name: &str,
        moment: Moment,
    ) -> Result<Vec<Value>, StoreError> {
        let (mut folded, lines) = history_of(found)?;
        let write = WriteId::random();
        let contents = Value::from(lines).to_string();
        let now = moment.told.earliest.as_millis();
        self.put_parts(contents.as_bytes(), 0, name, write, now).await.map_err(Failure::of_read)?;
        folded.push(write);
        Ok(folded.iter().map(|write| text(&write.to_string())).collect())
    }
}

/// Whether what is there is what this write left: not its write id alone, but whatever makes it this write.
pub(crate) fn is_ours(found: &Item, write: WriteId, record: &Record) -> bool {
    let of = Attributes(found);
    of.array(WRITE) == Ok(write.0)
        && of.array(ID) == Ok(*record.operation_id.as_bytes())
        && of.number(VERSION) == Ok(Some(record.version))
        && of.number("at") == Ok(Some(record.attempt))
        && of.array("ow") == Ok(uuid::Uuid::from(record.owner).into_bytes())
        && of.text("st") == Ok(Some(record.state.as_str()))
}

pub(crate) fn is_expected(found: &Item, expected: &Expected) -> bool {
    let of = Attributes(found);
    of.array(ID) == Ok(*expected.operation_id.as_bytes()) && of.number(VERSION) == Ok(Some(expected.version))
}

/// Whether what is there is the same operation at a later version, so that what was expected never comes again.
fn is_later(found: &Item, expected: &Expected) -> bool {
    let of = Attributes(found);
    let version = of.number::<u64>(VERSION).ok().flatten();
    of.array(ID) == Ok(*expected.operation_id.as_bytes())
        && version.is_some_and(|version| version > expected.version)
}
