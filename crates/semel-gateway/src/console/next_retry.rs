//! What a client's next retry gets, by a dry run of the real rules.

use super::Console;
use super::visitor::Visitor;
use crate::acts::{ActError, DryRun, NextRetry, Stated, Statement};
use crate::escape::{escape, escape_lines};
use semel::OperationId;

/// The answer of a retry, or that it executes.
pub(super) struct Preview {
    /// In a sentence.
    pub(super) sentence: String,
    /// Status line and header fields.
    pub(super) head: Vec<String>,
    pub(super) body: Option<String>,
}

impl Preview {
    fn said(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), head: Vec::new(), body: None }
    }
}

/// What it gets if this is stated, without an answer.
pub(super) async fn of_outcome(
    console: &Console,
    visitor: &Visitor,
    id: OperationId,
    outcome: Stated,
) -> Preview {
    let statement = Statement {
        outcome,
        attempt: None,
        version: None,
        after_lease: true,
        reason: String::new(),
        ticket: None,
        claimed: None,
        response: None,
        resource: None,
    };
    match of(console, visitor, id, statement).await {
        Ok(preview) => preview,
        Err(why) => Preview::said(why),
    }
}

/// What it gets if this is stated.
pub(super) async fn of(
    console: &Console,
    visitor: &Visitor,
    id: OperationId,
    statement: Statement,
) -> Result<Preview, String> {
    match console.settings.acts.dry_run(&visitor.operator(), id, statement).await {
        Ok(DryRun { next, .. }) => Ok(Preview::of(next)),
        Err(ActError::Store(_)) => Err("The store is unavailable: what a retry gets cannot be told.".into()),
        Err(error) => Err(escape_lines(&error.to_string())),
    }
}

impl Preview {
    pub(super) fn of(next: NextRetry) -> Self {
        match next {
            NextRetry::Executes { attempt } => {
                Self::said(format!("The next retry executes, as attempt {attempt}."))
            }
            NextRetry::Answered { status, headers, body } => {
                let head = headers.iter().map(|(name, value)| {
                    format!("{}: {}", escape(name), escape(&String::from_utf8_lossy(value)))
                });
                let reason =
                    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
                let line = format!("{status} {}", reason.unwrap_or_default());
                // A refusal is known by its code.
                let code = serde_json::from_slice::<serde_json::Value>(&body).ok();
                let code = code.as_ref().and_then(|document| document["code"].as_str());
                let code = code.map_or_else(String::new, |code| format!(", {}", escape(code)));
                Self {
                    sentence: format!("The next retry gets {}{code}.", line.trim_end()),
                    head: std::iter::once(line.clone()).chain(head).collect(),
                    body: (!body.is_empty()).then(|| match std::str::from_utf8(&body) {
                        Ok(text) => escape_lines(text),
                        Err(_) => format!("({} bytes that are no text)", body.len()),
                    }),
                }
            }
        }
    }
}
