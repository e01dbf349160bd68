//! What is remembered by name, and the format of client keys.
//!
//! The format is fixed by one item, before anything is stored that depends on it: whoever first remembers a recipe or creates a record marks the item as
//! used, and whoever seals the keys does so on condition that it is not. So creates need no second condition, and a table that is in use never changes
//! its format.

use crate::api::{Api, CONDITION, Failure, Refusal};
use crate::names::{CONTENTS, FORMAT, NAME, remembered};
use crate::requests::object;
use crate::value::{Attributes, Item, bytes, text};
use bytes::Bytes;
use semel::seal::SEALED_KEY;
use semel::{Draft, KeyFormat, KeyFormatSet, Respell, StoreError};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Whether anything depends on the format.
const USED: &str = "used";

/// Why records are not written in another format.
const NO_RESPELLING: &str = "a DynamoDB table keeps the format of client keys that it was first used with: use a new table for the other one";

/// The format of a table that is in use, once it is known: it never changes.
#[derive(Debug, Default)]
pub(crate) struct Format(OnceLock<bool>);

impl Format {
    /// Refuses drafts of the other format, and fixes the format by the first of them.
    pub(crate) async fn check(&self, api: &Api, drafts: &[Draft]) -> Result<(), StoreError> {
        if drafts.is_empty() {
            return Ok(());
        }
        let sealed = self.fix(api).await?;
        if drafts.iter().all(|draft| draft.key.key.starts_with(SEALED_KEY) == sealed) {
            return Ok(());
        }
        let format = if sealed { "sealed" } else { "plain" };
        Err(StoreError::Unavailable(format!("the store accepts only {format} client keys")))
    }

    /// Fixes the format, if it is not; whether keys are sealed.
    async fn fix(&self, api: &Api) -> Result<bool, StoreError> {
        if let Some(sealed) = self.0.get() {
            return Ok(*sealed);
        }
        let request = json!({
            "TableName": api.table(),
            "Key": { NAME: text(FORMAT) },
            "UpdateExpression": "SET #used = :true",
            "ExpressionAttributeNames": { "#used": USED },
            "ExpressionAttributeValues": { ":true": { "BOOL": true } },
            "ReturnValues": "ALL_NEW",
        });
        // Done twice, it is the same: an answer that is lost has harmed nothing.
        let mut answer = api.call("UpdateItem", &request).await.map_err(Failure::of_read)?;
        let item = object(answer.get_mut("Attributes")).unwrap_or_default();
        Ok(*self.0.get_or_init(|| Attributes(&item).has(CONTENTS)))
    }

    /// Keeps a value under a name unless there is one already; what is there in the end.
    pub(crate) async fn remember(&self, api: &Api, name: &str, value: &[u8]) -> Result<Bytes, StoreError> {
        if name.starts_with(KeyFormat::RECIPES) {
            self.fix(api).await?;
        }
        let request = json!({
            "TableName": api.table(),
            "Key": { NAME: text(&remembered(name)) },
            "UpdateExpression": "SET #d = :d",
            "ConditionExpression": "attribute_not_exists(#d)",
            "ExpressionAttributeNames": { "#d": CONTENTS },
            "ExpressionAttributeValues": { ":d": bytes(value) },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        match conditional(api, &request).await? {
            Ok(()) => Ok(Bytes::copy_from_slice(value)),
            Err(there) => there.ok_or_else(|| StoreError::Lost("a remembered value is gone".into())),
        }
    }
}

/// Puts a format in force, where the table was never used.
pub(crate) async fn set_key_format(
    api: &Api,
    format: KeyFormat,
    respell: Option<Respell>,
) -> Result<KeyFormatSet, StoreError> {
    let there = api.item(FORMAT).await?.unwrap_or_default();
    let is_used = Attributes(&there).has(USED);
    let in_force = match Attributes(&there).bytes(CONTENTS).map_err(StoreError::Damaged)? {
        Some(secret) => KeyFormat::Sealed { secret: secret.into() },
        None => KeyFormat::Plain,
    };
    let (update, values) = match (&in_force, &format) {
        (KeyFormat::Plain, KeyFormat::Plain) | (KeyFormat::Sealed { .. }, KeyFormat::Sealed { .. }) => {
            return Ok(KeyFormatSet::InForce(in_force));
        }
        _ if is_used && respell.is_some() => return Ok(KeyFormatSet::NotAllowed(NO_RESPELLING.into())),
        _ if is_used => return Ok(KeyFormatSet::InUse),
        (_, KeyFormat::Sealed { secret }) => ("SET #d = :d", Some(json!({ ":d": bytes(secret) }))),
        (_, KeyFormat::Plain) => ("REMOVE #d", None),
    };
    let condition = match in_force {
        KeyFormat::Plain => "attribute_not_exists(#used) AND attribute_not_exists(#d)",
        KeyFormat::Sealed { .. } => "attribute_not_exists(#used) AND attribute_exists(#d)",
    };
    let mut request = json!({
        "TableName": api.table(),
        "Key": { NAME: text(FORMAT) },
        "UpdateExpression": update,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": { "#used": USED, "#d": CONTENTS },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    if let Some(values) = values {
        request["ExpressionAttributeValues"] = values;
    }
    match conditional(api, &request).await? {
        Ok(()) => Ok(KeyFormatSet::InForce(format)),
        // Somebody was faster: with the same, or with a record.
        Err(Some(secret)) if matches!(format, KeyFormat::Sealed { .. }) => {
            Ok(KeyFormatSet::InForce(KeyFormat::Sealed { secret }))
        }
        Err(_) => Ok(KeyFormatSet::InUse),
    }
}

/// What is kept under a name.
pub(crate) async fn recall(api: &Api, name: &str) -> Result<Option<Bytes>, StoreError> {
    let item = api.item(&remembered(name)).await?;
    item.as_ref().map_or(Ok(None), contents)
}

/// Replaces a value, if it is the expected one; what is there in the end.
pub(crate) async fn replace(
    api: &Api,
    name: &str,
    expected: &[u8],
    value: Bytes,
) -> Result<Option<Bytes>, StoreError> {
    let request = json!({
        "TableName": api.table(),
        "Key": { NAME: text(&remembered(name)) },
        "UpdateExpression": "SET #d = :d",
        "ConditionExpression": "#d = :was",
        "ExpressionAttributeNames": { "#d": CONTENTS },
        "ExpressionAttributeValues": { ":d": bytes(&value), ":was": bytes(expected) },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    Ok(match conditional(api, &request).await? {
        Ok(()) => Some(value),
        Err(there) => there,
    })
}

/// Sends a conditional write; if its condition does not hold, the value that is there.
async fn conditional(api: &Api, request: &Value) -> Result<Result<(), Option<Bytes>>, StoreError> {
    match api.call("UpdateItem", request).await {
        Ok(_) => Ok(Ok(())),
        Err(Failure::Refused(Refusal { code, mut document, .. })) if code == CONDITION => {
            let item = object(document.get_mut("Item"));
            Ok(Err(item.as_ref().map_or(Ok(None), contents)?))
        }
        Err(failure) => Err(failure.of_write()),
    }
}

fn contents(item: &Item) -> Result<Option<Bytes>, StoreError> {
    Ok(Attributes(item).bytes(CONTENTS).map_err(StoreError::Damaged)?.map(Bytes::from))
}
