//! The row about the service's clock: who reads and writes it, and when.
//!
//! A task of each handle writes it, once a minute and whenever the judgement changes, on condition that it is the one that was judged by: others
//! write it meanwhile, who have looked at the same clock.

use crate::api::{Api, CONDITION};
use crate::names::{CLOCK, NAME};
use crate::table;
use crate::time::{Looked, Moment, reason};
use crate::value::{Attributes, number, text};
use semel::StoreError;
use semel::clock::{Mark, Wrong};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::AbortHandle;

/// How often it is tried, where others write the row meanwhile.
const TRIES: usize = 3;

/// After each look, so that a row that cannot be written is not tried all the time.
const PAUSE: Duration = Duration::from_millis(100);

/// The task that looks at the clock, and at the table, when nobody else does. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticker(AbortHandle);

impl Ticker {
    pub(crate) fn start(api: Api) -> Self {
        let ticking = tokio::spawn(async move {
            let mut watch = table::Watch::default();
            loop {
                api.time().due().await;
                if let Err(error) = api.mark(false).await {
                    tracing::debug!(%error, "cannot store the clock mark, retrying");
                }
                watch.look(&api).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self(ticking.abort_handle())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Api {
    /// What time it is: by the last answer and the last row, where they are fresh, else by asking.
    pub(crate) async fn moment(&self) -> Result<Moment, StoreError> {
        match self.time().now() {
            Some(moment) => moment,
            None => self.moment_now().await,
        }
    }

    /// What time it is, by the row as it is now.
    pub(crate) async fn moment_now(&self) -> Result<Moment, StoreError> {
        let row = self.clock_row().await?;
        self.time().decided(row)
    }

    /// What is believed of the clock, which nothing that is wrong with it stops.
    pub(crate) async fn look(&self) -> Result<Looked, StoreError> {
        let row = self.clock_row().await?;
        self.time().looked(row)
    }

    async fn clock_row(&self) -> Result<Mark, StoreError> {
        let item = self.item(CLOCK).await?;
        let Some(item) = item else { return Ok(Mark::NONE) };
        let attributes = Attributes(&item);
        let number = |name| -> Result<i64, StoreError> {
            let number = attributes.number(name).map_err(StoreError::Damaged)?;
            number.ok_or_else(|| StoreError::Damaged("the clock's item is incomplete".into()))
        };
        Ok(Mark { at: number("at")?, behind: number("behind")?, hold: number("hold")?, by: number("by")? })
    }

    /// Looks at the clock and leaves a mark in the row, if that is due; ends a clock hold, if that may be or is asked for.
    pub(crate) async fn mark(&self, accept: bool) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let looked = self.look().await?;
            match looked.told.wrong {
                Some(Wrong::Behind(_)) if accept => {
                    self.time().accept_behind();
                    continue;
                }
                Some(wrong) if accept => return Err(StoreError::Unavailable(reason(wrong))),
                _ => {}
            }
            let Some(mark) = self.time().to_write(&looked, accept) else { return Ok(()) };
            if self.write_mark(looked.row, mark).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the row, if it says what is expected. Whether it was written.
    async fn write_mark(&self, expected: Mark, mark: Mark) -> Result<bool, StoreError> {
        let Mark { at, behind, hold, by } = mark;
        let item = json!({
            NAME: text(CLOCK), "at": number(at), "behind": number(behind), "hold": number(hold), "by": number(by)
        });
        let mut request = json!({ "TableName": self.table(), "Item": item });
        if expected.by == 0 && expected.at <= 0 {
            request["ConditionExpression"] = "attribute_not_exists(#p)".into();
            request["ExpressionAttributeNames"] = json!({ "#p": NAME });
        } else {
            request["ConditionExpression"] =
                "#at = :at AND #behind = :behind AND #hold = :hold AND #by = :by".into();
            request["ExpressionAttributeNames"] =
                json!({ "#at": "at", "#behind": "behind", "#hold": "hold", "#by": "by" });
            request["ExpressionAttributeValues"] = json!({
                ":at": number(expected.at), ":behind": number(expected.behind),
                ":hold": number(expected.hold), ":by": number(expected.by)
            });
        }
        match self.call("PutItem", &request).await {
            Ok(_) => {
                self.time().looked(mark)?;
                Ok(true)
            }
            Err(failure) if failure.code() == Some(CONDITION) => Ok(false),
            Err(failure) => Err(failure.of_write()),
        }
    }
}

/// The condition that no clock hold is open, as part of a transaction.
pub(crate) fn no_hold(table: &str) -> Value {
    json!({ "ConditionCheck": {
        "TableName": table,
        "Key": { NAME: text(CLOCK) },
        "ConditionExpression": "attribute_exists(#p) AND #hold <= :zero AND #behind <= :zero",
        "ExpressionAttributeNames": { "#p": NAME, "#hold": "hold", "#behind": "behind" },
        "ExpressionAttributeValues": { ":zero": number(0) },
    } })
}
