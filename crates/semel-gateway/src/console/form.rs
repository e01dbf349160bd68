//! The fields of a form, as a browser sends them.

use super::LONGEST_FORM;
use axum::body::{Body, to_bytes};
use std::time::Duration;

/// How long a form may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// The name of the field with the form token.
pub(super) const TOKEN: &str = "form_token";

/// Fields by name, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// Reads a body; `None`: too long, or too slow.
    pub(super) async fn read(body: Body) -> Option<Self> {
        let body = tokio::time::timeout(PATIENCE, to_bytes(body, LONGEST_FORM)).await.ok()?.ok()?;
        Some(Self::parse(&body))
    }

    pub(super) fn parse(text: &[u8]) -> Self {
        Self { fields: form_urlencoded::parse(text).into_owned().collect() }
    }

    pub(super) fn of(fields: impl Iterator<Item = (String, String)>) -> Self {
        Self { fields: fields.collect() }
    }

    /// The first value of this name; nothing is as good as an empty one.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str())
    }

    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// All but what must not be sent twice.
    pub(super) fn kept(&self) -> Vec<(String, String)> {
        let is_kept = |(name, _): &&(String, String)| name != TOKEN && name != "token";
        self.fields.iter().filter(is_kept).cloned().collect()
    }
}
