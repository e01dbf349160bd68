//! Audit: who did what, when, and what was refused.

use super::Console;
use super::documents::{AuditEntry, AuditPage};
use super::form::Form;
use super::links::percent_encoded;
use super::moment::Moment;
use super::operations::{with, without};
use super::page::{self, Frame};
use super::visitor::Visitor;
use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use semel::audit::{AuditAction, AuditResult};
use std::sync::Arc;

/// Entries on a page.
const ON_A_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditScreen {
    frame: Frame,
    rows: Vec<Row>,
    problem: Option<String>,
    actor: String,
    target: String,
    tenant: String,
    actions: Vec<(&'static str, bool)>,
    results: Vec<(&'static str, bool)>,
    any: bool,
    next: Option<String>,
    first: Option<String>,
    csv: String,
    json: String,
}

struct Row {
    at: Moment,
    link: Option<String>,
    entry: AuditEntry,
}

impl Row {
    fn result_class(&self) -> &'static str {
        match self.entry.result.as_str() {
            "done" => "done",
            "begun" => "busy",
            _ => "failed",
        }
    }

    /// What changed, in a few words.
    fn change(&self) -> String {
        let entry = &self.entry;
        let state = match (&entry.state_before, &entry.state_after) {
            (Some(before), Some(after)) => format!("{before} → {after}"),
            _ => String::new(),
        };
        let parts = [Some(state), entry.outcome.clone(), entry.refusal.clone(), entry.note.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }
}

/// `GET /console/audit`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Response {
    let form = Form::parse(query.unwrap_or_default().as_bytes());
    let frame = Frame::new(&visitor, "audit", "Audit");
    let asked = without(&form, &[]);
    let and = if asked.is_empty() { "" } else { "&" };
    let told = console.told::<AuditPage>(&visitor, &format!("/v1/audit?{asked}{and}limit={ON_A_PAGE}")).await;
    let (status, problem, page, stale) = match told {
        Ok(told) => (StatusCode::OK, None, told.value, told.stale),
        Err(refused) if refused.status == StatusCode::BAD_REQUEST => {
            (StatusCode::BAD_REQUEST, Some(refused.detail), AuditPage::default(), None)
        }
        Err(refused) => return page::told(frame, refused.status, &refused.detail, None),
    };
    let escaped = |name: &str| crate::escape::escape(form.text(name));
    let filter = without(&form, &["cursor"]);
    let export = |format: &str| {
        let and = if filter.is_empty() { "" } else { "&" };
        format!("/console/audit/export?{filter}{and}format={format}")
    };
    let screen = AuditScreen {
        frame: frame.stale_since(stale),
        problem,
        actor: escaped("actor"),
        target: escaped("target"),
        tenant: escaped("tenant"),
        actions: AuditAction::ALL
            .map(|action| (action.as_str(), action.as_str() == form.text("action")))
            .into(),
        results: AuditResult::ALL
            .map(|result| (result.as_str(), result.as_str() == form.text("result")))
            .into(),
        any: !filter.is_empty(),
        next: page.next_cursor.as_ref().map(|cursor| {
            let and = if filter.is_empty() { "" } else { "&" };
            format!("/console/audit?{filter}{and}cursor={}", percent_encoded(cursor))
        }),
        first: (!form.text("cursor").is_empty()).then(|| with("/console/audit", &filter)),
        csv: export("csv"),
        json: export("json"),
        rows: page
            .entries
            .into_iter()
            .map(|entry| Row {
                at: Moment::new(&entry.at, &page.now),
                link: entry.target.as_deref().and_then(|target| link(&entry.action, target)),
                entry,
            })
            .collect(),
    };
    page::with_status(status, &screen)
}

/// Where the target of an act can be looked at.
fn link(action: &str, target: &str) -> Option<String> {
    let id = target.parse::<uuid::Uuid>().ok()?;
    match action {
        "bulk.freeze" | "bulk.start" | "bulk.abort" => Some(format!("/console/bulk/{id}")),
        "republish" | "drop" => Some(format!("/console/outbox/{id}")),
        _ => Some(format!("/console/operations/{id}")),
    }
}

/// `GET /console/audit/export`: a file, which itself is in the audit.
pub(super) async fn export(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Response {
    console.api.passed_on(&visitor, &format!("/v1/audit/export?{}", query.unwrap_or_default())).await
}
