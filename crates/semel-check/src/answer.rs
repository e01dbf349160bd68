//! What came back.

use crate::json_text;
use bytes::Bytes;
use http::HeaderMap;
use std::time::Instant;

/// An answer, and when the last byte of its request was written and the answer began.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// When the write of the last byte began. As `came` if the answer came before that.
    pub(crate) sending: Instant,
    /// When that write was known to have succeeded.
    pub(crate) sent: Instant,
    pub(crate) came: Instant,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("no connection ({0})")]
    Connect(String),
    #[error("the connection broke without an answer ({0})")]
    Broken(String),
    #[error("no answer in {0} s")]
    TimedOut(u64),
    #[error("it was not sent: the run was stopped")]
    Stopped,
}

/// What a request came to.
pub(crate) type Reply = Result<Answer, NoAnswer>;

impl Answer {
    /// 2xx, or a redirect to what was made.
    pub(crate) fn is_success(&self) -> bool {
        (200..400).contains(&self.status)
    }

    pub(crate) fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }

    pub(crate) fn is_server_error(&self) -> bool {
        self.status >= 500
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The text of the JSON value at a pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<&str> {
        json_text::at(std::str::from_utf8(&self.body).ok()?, pointer)
    }

    /// Whether it says that the outcome is unknown.
    pub(crate) fn is_doubt(&self, words: &[&str]) -> bool {
        let text = self.text();
        !self.is_success() && words.iter().any(|word| text.contains(word))
    }

    pub(crate) fn has_same_body_as(&self, other: &Self) -> bool {
        self.body == other.body || self.json().is_some_and(|own| Some(own) == other.json())
    }

    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// How an answer is told of in one or two words.
pub(crate) fn told(reply: &Reply) -> String {
    match reply {
        Ok(answer) => answer.status.to_string(),
        Err(NoAnswer::Connect(_)) => "no connection".into(),
        Err(NoAnswer::Broken(_)) => "no answer".into(),
        Err(NoAnswer::TimedOut(_)) => "time-out".into(),
        Err(NoAnswer::Stopped) => "not sent".into(),
    }
}

/// All scalar members of a document that differ between two others: what may name the thing that was made.
pub(crate) fn differing(one: &serde_json::Value, two: &serde_json::Value) -> Vec<String> {
    let (mut at, mut found) = (String::new(), Vec::new());
    walk(one, two, &mut at, &mut found);
    found
}

fn walk(one: &serde_json::Value, two: &serde_json::Value, at: &mut String, found: &mut Vec<String>) {
    match (one, two) {
        (serde_json::Value::Object(one), serde_json::Value::Object(two)) => {
            for (name, value) in one {
                if let Some(other) = two.get(name) {
                    let length = at.len();
                    at.push('/');
                    at.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    walk(value, other, at, found);
                    at.truncate(length);
                }
            }
        }
        (one, two) if !one.is_object() && !one.is_array() && !one.is_null() && one != two => {
            found.push(at.clone());
        }
        _ => {}
    }
}
