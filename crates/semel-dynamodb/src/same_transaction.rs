//! Completion together with the application's own items, in one `TransactWriteItems`.

use crate::api::{Failure, Refusal as Refused};
use crate::error::CommitError;
use crate::item::{changing, line};
use crate::names::{self, ID, NAME, VERSION, WriteId};
use crate::store::DynamoStore;
use crate::value::{Item, bytes, number, text};
use crate::write::is_ours;
use semel::transition::{Act, Change, Claim, Refusal};
use semel::{Expected, HistoryLine, Record, StoreError, Swap};
use serde_json::{Value, json};

/// How often it is decided again, where the record was written meanwhile: by the owner's own heartbeat, most likely.
const TRIES: usize = 5;

/// Why a transaction as a whole was not done.
const CANCELLED: &str = "TransactionCanceledException";

impl DynamoStore {
    /// The owner acts on its record, and the application writes its own items, in one transaction of the service's: there is no moment at which one
    /// of them is there without the other. The record as it is then; `None`: removed.
    ///
    /// `actions` are what `TransactWriteItems` takes, on any tables of the same account and region: at most 99 of them, each `Put`, `Update`,
    /// `Delete` or `ConditionCheck`. None may be on the record itself. A transaction costs twice the units of its writes.
    ///
    /// ```no_run
    /// # use semel::transition::{Act, Claim};
    /// # use semel_dynamodb::{CommitError, DynamoStore};
    /// # async fn run(store: DynamoStore, claim: Claim, completion: Act) -> Result<(), CommitError> {
    /// let payment = serde_json::json!({ "Put": {
    ///     "TableName": "payments",
    ///     "Item": { "id": { "S": "pay_1" }, "amount": { "N": "1000" } },
    ///     "ConditionExpression": "attribute_not_exists(id)",
    /// } });
    /// store.commit_with(vec![payment], &claim, &completion).await?; // refused: neither is written
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Nothing was written; or, with [`StoreError::Lost`], that is unknown: read the record back by its owner.
    pub async fn commit_with(
        &self,
        actions: Vec<Value>,
        claim: &Claim,
        act: &Act,
    ) -> Result<Option<Record>, CommitError> {
        let api = self.api();
        let mut folded: Option<(u64, Vec<Value>)> = None;
        for _ in 0..TRIES {
            let found = api.found(&[claim.operation_id], &[]).await.map_err(CommitError::Store)?;
            // A record that is gone is another operation by now, or will be.
            let item = found.into_iter().next().flatten().ok_or(CommitError::Refused(Refusal::Fenced))?;
            let record = api.whole(item.clone()).await.map_err(CommitError::Store)?;
            let record = record.ok_or(CommitError::Refused(Refusal::Fenced))?;
            let (name, expected) = (names::record(&record.key), record.expected());
            let moment = api.moment().await.map_err(CommitError::Store)?;
            let write = WriteId::random();
            let (own, next) =
                match semel::transition::act(&record, claim, act).map_err(CommitError::Refused)? {
                    Change::Put { next, history } => {
                        let swap = Swap { expected: expected.clone(), next, history };
                        swap.check().map_err(CommitError::Store)?;
                        let next = swap.next.at(moment.stamp());
                        let at = moment.told.earliest;
                        let history =
                            swap.history.map(|entry| line(&HistoryLine { at, version: next.version, entry }));
                        let large = api.put_apart(&next, &name, write, at.as_millis()).await;
                        let large = large.map_err(|failure| CommitError::Store(failure.of_read()))?;
                        let attributes = changing(&next, &large, write);
                        let items = folded.take().filter(|(version, _)| *version == expected.version);
                        let items = items.map(|(_, items)| items);
                        let update = api.update(&name, &expected, &attributes, history.as_deref(), items);
                        (json!({ "Update": update }), Some((next, history.is_some())))
                    }
                    Change::Remove => (json!({ "Delete": delete(api.table(), &name, &expected) }), None),
                };
            let all: Vec<&Value> = std::iter::once(&own).chain(&actions).collect();
            let refused = match api.call("TransactWriteItems", &json!({ "TransactItems": all })).await {
                Ok(_) => return self.committed(next.map(|(next, _)| next), &item).await,
                Err(Failure::Refused(refused)) if refused.code == CANCELLED => refused,
                Err(Failure::Unknown(why)) => {
                    // It was done whole or not at all, so what became of the record became of the application's items.
                    let there = api.item(&name).await.ok().flatten();
                    return match (there, next) {
                        (Some(there), Some((next, _))) if is_ours(&there, write, &next) => Ok(Some(next)),
                        _ => Err(CommitError::Store(StoreError::Lost(why))),
                    };
                }
                Err(failure) => return Err(CommitError::Store(failure.of_write())),
            };
            match why(&refused) {
                (0, "ConditionalCheckFailed") => {}
                (place, code) if place > 0 && code == "ConditionalCheckFailed" => {
                    return Err(CommitError::Condition { action: place - 1 });
                }
                (_, code) => {
                    return Err(CommitError::Store(StoreError::Unavailable(format!("{CANCELLED}: {code}"))));
                }
            }
            // Unless the record was written meanwhile, it is its history that has no room for one more line.
            let again = api.item(&name).await.map_err(CommitError::Store)?;
            if let (Some(again), Some((_, true))) = (again, &next)
                && again.get(VERSION) == item.get(VERSION)
            {
                let items = api.fold(&again, &name, moment).await.map_err(CommitError::Store)?;
                folded = Some((expected.version, items));
            }
        }
        Err(CommitError::Store(StoreError::Unavailable("the record was written again and again".into())))
    }

    async fn committed(&self, next: Option<Record>, before: &Item) -> Result<Option<Record>, CommitError> {
        if next.is_none() {
            self.api().clean_up(std::slice::from_ref(before), true).await;
        }
        Ok(next)
    }
}

fn delete(table: &str, name: &str, expected: &Expected) -> Value {
    json!({
        "TableName": table,
        "Key": { NAME: text(name) },
        "ConditionExpression": "#id = :id AND #v = :v",
        "ExpressionAttributeNames": { "#id": ID, "#v": VERSION },
        "ExpressionAttributeValues": {
            ":id": bytes(expected.operation_id.as_bytes()), ":v": number(expected.version)
        },
    })
}

/// The first action that was in the way, and why.
fn why(refused: &Refused) -> (usize, &str) {
    let reasons = refused.document.get("CancellationReasons").and_then(Value::as_array);
    let codes = reasons.into_iter().flatten().map(|reason| reason.get("Code").and_then(Value::as_str));
    codes
        .map(|code| code.unwrap_or("None"))
        .enumerate()
        .find(|(_, code)| *code != "None")
        .unwrap_or((0, "unknown"))
}
