//! What the API told last, for while the store does not answer.

use super::Console;
use super::api::Refused;
use super::visitor::Visitor;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::moment::Moment;

/// Answers that are kept: what a few people have open.
const KEPT: usize = 64;

/// The answers of the last minutes, each for the user that got it.
#[derive(Default)]
pub(super) struct Known {
    answers: Mutex<HashMap<(String, String), (Value, jiff::Timestamp)>>,
}

impl Known {
    fn keep(&self, user: String, target: &str, value: &Value) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= KEPT
            && let Some(oldest) = answers.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| key.clone())
        {
            answers.remove(&oldest);
        }
        answers.insert((user, target.to_owned()), (value.clone(), jiff::Timestamp::now()));
    }

    fn last(&self, user: &str, target: &str) -> Option<(Value, jiff::Timestamp)> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(&(user.to_owned(), target.to_owned())).cloned()
    }
}

/// What the API told, now or before.
pub(super) struct Told<T> {
    pub(super) value: T,
    /// When it was told, if that was before the store stopped to answer.
    pub(super) stale: Option<Moment>,
}

impl Console {
    /// What the API tells now, or told this user last if the store does not answer.
    pub(super) async fn told<T: DeserializeOwned>(
        &self,
        visitor: &Visitor,
        target: &str,
    ) -> Result<Told<T>, Refused> {
        // The role is part of it: it may be a lower one by now.
        let user = format!("{} {:?} {:?}", visitor.identity, visitor.identity.role, visitor.identity.tenants);
        let (value, stale) = match self.api.get(visitor, target).await {
            Ok(value) => {
                self.known.keep(user, target, &value);
                (value, None)
            }
            Err(refused) if refused.is_outage() => match self.known.last(&user, target) {
                Some((value, at)) => {
                    let now = jiff::Timestamp::now();
                    (value, Some(Moment::new(&at.to_string(), &now.to_string())))
                }
                None => return Err(refused),
            },
            Err(refused) => return Err(refused),
        };
        match serde_json::from_value(value) {
            Ok(value) => Ok(Told { value, stale }),
            Err(error) => {
                tracing::error!(%error, target, "the console cannot read the admin API's answer");
                Err(Refused::unreadable())
            }
        }
    }
}
