//! The table: how it is made, and whether it is one that can be worked with.

use crate::api::{Api, Failure};
use crate::error::OpenError;
use crate::names::{INDEXES, Index, NAME};
use semel::StoreError;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long it is waited for a new table.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often it is looked whether a table is ready.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// How often it is looked what a table is, and for how long that may fail.
const WATCHED: Duration = Duration::from_secs(60);
const UNSEEN: Duration = Duration::from_secs(300);

/// What a migration did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Migrated {
    /// There was no table, and now there is.
    Created,
    /// The table is as it should be.
    AsItShouldBe,
}

/// Creates the table if it is not there, with its indexes, on demand, protected from deletion and with point-in-time recovery; checks it if it is.
pub(crate) async fn migrate(api: &Api) -> Result<Migrated, OpenError> {
    match check(api).await {
        Ok(()) => return Ok(Migrated::AsItShouldBe),
        Err(OpenError::NoTable { .. }) => {}
        Err(error) => return Err(error),
    }
    match api.call("CreateTable", &definition(api.table())).await {
        Ok(_) => {}
        // Somebody else does the same.
        Err(failure) if failure.code() == Some("ResourceInUseException") => {}
        Err(failure) => return Err(OpenError::of(api, "CreateTable", failure)),
    }
    let begun = Instant::now();
    loop {
        match check(api).await {
            Ok(()) => break,
            Err(OpenError::NotReady { .. } | OpenError::NoTable { .. }) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
            Err(error) => return Err(error),
        }
    }
    let recovery = json!({
        "TableName": api.table(),
        "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": true },
    });
    match api.call("UpdateContinuousBackups", &recovery).await {
        Ok(_) => Ok(Migrated::Created),
        // Emulators have no backups.
        Err(failure) if failure.code() == Some("UnknownOperationException") => {
            tracing::warn!("this service knows no point-in-time recovery: it is not DynamoDB itself");
            Ok(Migrated::Created)
        }
        Err(failure) => Err(OpenError::of(api, "UpdateContinuousBackups", failure)),
    }
}

fn definition(table: &str) -> Value {
    let mut attributes = vec![json!({ "AttributeName": NAME, "AttributeType": "S" })];
    let mut defined = vec![NAME];
    for index in INDEXES {
        for (name, kind) in [(index.partition, "S"), (index.sort, "B")] {
            if !defined.contains(&name) {
                defined.push(name);
                attributes.push(json!({ "AttributeName": name, "AttributeType": kind }));
            }
        }
    }
    let index = |index: Index| {
        let projection = match index.projected {
            None => json!({ "ProjectionType": "KEYS_ONLY" }),
            Some(name) => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": [name] }),
        };
        json!({
            "IndexName": index.name,
            "KeySchema": key_schema(index),
            "Projection": projection,
        })
    };
    json!({
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": true,
        "AttributeDefinitions": attributes,
        "KeySchema": [{ "AttributeName": NAME, "KeyType": "HASH" }],
        "GlobalSecondaryIndexes": INDEXES.map(index),
    })
}

fn key_schema(index: Index) -> Value {
    json!([
        { "AttributeName": index.partition, "KeyType": "HASH" },
        { "AttributeName": index.sort, "KeyType": "RANGE" },
    ])
}

/// Looks whether the table is there, and one that can be worked with.
pub(crate) async fn check(api: &Api) -> Result<(), OpenError> {
    let asked = api.call("DescribeTable", &json!({ "TableName": api.table() })).await;
    let described = match asked {
        Ok(described) => described,
        Err(failure) if failure.code() == Some("ResourceNotFoundException") => {
            return Err(OpenError::NoTable { table: api.table().into() });
        }
        Err(failure) => return Err(OpenError::of(api, "DescribeTable", failure)),
    };
    judge(api.table(), described.get("Table").unwrap_or(&Value::Null))
}

fn judge(table: &str, described: &Value) -> Result<(), OpenError> {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |name: &str| described.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let wrong = |what: String| OpenError::NotOurs { table: table.into(), what };
    // An eventual one loses what two regions write at once, and lets a key execute in both.
    if !list("Replicas").is_empty() && text(described, "MultiRegionConsistency") != "STRONG" {
        return Err(OpenError::Eventual { table: table.into() });
    }
    let is_key = described.get("KeySchema") == Some(&json!([{ "AttributeName": NAME, "KeyType": "HASH" }]));
    let types = list("AttributeDefinitions");
    let is_of = |name: &str, kind: &str| {
        types.iter().any(|one| text(one, "AttributeName") == name && text(one, "AttributeType") == kind)
    };
    if !is_key || !is_of(NAME, "S") {
        return Err(wrong(format!("its primary key must be the partition key {NAME:?} of type S alone")));
    }
    let status = text(described, "TableStatus");
    if !["ACTIVE", "UPDATING"].contains(&status.as_str()) {
        return Err(OpenError::NotReady { table: table.into(), status });
    }
    let there = list("GlobalSecondaryIndexes");
    for index in INDEXES {
        let name = index.name;
        let Some(found) = there.iter().find(|found| text(found, "IndexName") == name) else {
            return Err(wrong(format!("its index {name:?} is missing")));
        };
        if found.get("KeySchema") != Some(&key_schema(index))
            || !is_of(index.partition, "S")
            || !is_of(index.sort, "B")
        {
            return Err(wrong(format!(
                "its index {name:?} must have the partition key {:?} (S) and the sort key {:?} (B)",
                index.partition, index.sort
            )));
        }
        let projected = |name: &str| {
            found
                .pointer("/Projection/NonKeyAttributes")
                .is_some_and(|names| names.to_string().contains(&format!("{name:?}")))
                || found.pointer("/Projection/ProjectionType") == Some(&json!("ALL"))
        };
        if let Some(attribute) = index.projected.filter(|attribute| !projected(attribute)) {
            return Err(wrong(format!("its index {name:?} must include the attribute {attribute:?}")));
        }
        let status = text(found, "IndexStatus");
        if !["ACTIVE", "UPDATING", ""].contains(&status.as_str()) {
            return Err(OpenError::NotReady { table: format!("{table}, index {name}"), status });
        }
    }
    Ok(())
}

/// Looks at the table once a minute: replicas may be added to it later, or an index removed.
#[derive(Debug)]
pub(crate) struct Watch {
    looked: Instant,
    seen: Instant,
    swept: Instant,
}

impl Default for Watch {
    fn default() -> Self {
        let now = Instant::now();
        Self { looked: now, seen: now, swept: now }
    }
}

impl Watch {
    pub(crate) async fn look(&mut self, api: &Api) {
        let now = Instant::now();
        if now.duration_since(self.looked) >= WATCHED {
            self.looked = now;
            self.judge(api, check(api).await, now);
        }
        if now.duration_since(self.swept) >= WATCHED {
            self.swept = now;
            if let Err(error) = api.sweep().await {
                tracing::debug!(%error, "cannot look for parts that nobody needs, retrying");
            }
        }
    }

    fn judge(&mut self, api: &Api, checked: Result<(), OpenError>, now: Instant) {
        match checked {
            Ok(()) => {
                self.seen = now;
                api.time().refuse(None);
            }
            Err(OpenError::Service { .. } | OpenError::Denied { .. } | OpenError::Unreachable { .. })
                if now.duration_since(self.seen) < UNSEEN => {}
            Err(error) => {
                tracing::error!(%error, "the table cannot be worked with: nothing is served");
                api.time().refuse(Some(error.to_string()));
            }
        }
    }
}

impl OpenError {
    /// Of a request that was needed to open the table.
    pub(crate) fn of(api: &Api, action: &'static str, failure: Failure) -> Self {
        match failure {
            Failure::NotSent(why) => Self::Unreachable { address: api.address().into(), why },
            Failure::Refused(refusal) if refusal.code == "AccessDeniedException" => {
                Self::Denied { action, message: refusal.message }
            }
            failure => match failure.of_read() {
                StoreError::Unavailable(why) => Self::Service { action, why },
                other => Self::Service { action, why: other.to_string() },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> Value {
        let mut table = definition("semel");
        table["TableStatus"] = "ACTIVE".into();
        table
    }

    #[test]
    fn what_is_made_can_be_worked_with() {
        assert!(judge("semel", &described()).is_ok());
        let mut busy = described();
        busy["TableStatus"] = "CREATING".into();
        assert!(matches!(judge("semel", &busy), Err(OpenError::NotReady { .. })));
    }

    #[test]
    fn a_global_table_needs_strong_consistency() {
        let mut global = described();
        global["Replicas"] = json!([{ "RegionName": "eu-west-1" }]);
        assert!(matches!(judge("semel", &global), Err(OpenError::Eventual { .. })));
        global["MultiRegionConsistency"] = "EVENTUAL".into();
        assert!(matches!(judge("semel", &global), Err(OpenError::Eventual { .. })));
        global["MultiRegionConsistency"] = "STRONG".into();
        assert!(judge("semel", &global).is_ok());
    }

    #[test]
    fn another_table_is_refused_and_says_what_is_wrong() {
        let told = |change: fn(&mut Value)| {
            let mut table = described();
            change(&mut table);
            judge("semel", &table).unwrap_err().to_string()
        };
        let sorted = told(|table| {
            table["KeySchema"] = json!([
                { "AttributeName": NAME, "KeyType": "HASH" }, { "AttributeName": "x", "KeyType": "RANGE" }
            ]);
        });
        assert!(sorted.contains("primary key"), "{sorted}");
        let missing = told(|table| {
            table["GlobalSecondaryIndexes"].as_array_mut().unwrap().remove(0);
        });
        assert!(missing.contains("\"due\" is missing"), "{missing}");
        let bare = told(|table| {
            table["GlobalSecondaryIndexes"][2]["Projection"] = json!({ "ProjectionType": "KEYS_ONLY" });
        });
        assert!(bare.contains("must include"), "{bare}");
        let other = told(|table| table["GlobalSecondaryIndexes"][1]["KeySchema"] = json!([]));
        assert!(other.contains("partition key \"lp\""), "{other}");
    }
}
