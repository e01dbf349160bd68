//! Operations: a list by filter, newest first.

use super::Console;
use super::documents::{Operation, OperationPage};
use super::form::Form;
use super::links::percent_encoded;
use super::moment::Moment;
use super::page::{self, Frame};
use super::visitor::Visitor;
use super::words::{self, StateWords};
use crate::identity::Role;
use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::StatusCode;
use semel::State as OperationState;
use std::sync::Arc;

/// Operations on a page.
const ON_A_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "console/operations.html")]
struct Operations {
    frame: Frame,
    filters: Filters,
    rows: Vec<Row>,
    damaged: usize,
    /// What is wrong with the address.
    problem: Option<String>,
    next: Option<String>,
    first: Option<String>,
    /// Where bulk settling of what is listed begins.
    bulk: Option<String>,
    /// What asks whether there are newer ones.
    newer: Option<String>,
    states: Vec<(&'static str, &'static str, bool)>,
}

/// What the page is filtered by, as the fields show it.
#[derive(Default)]
struct Filters {
    tenant: String,
    operation: String,
    key: String,
    error: String,
    resource: String,
    older_than: String,
    is_oldest_first: bool,
    is_dead_letter: bool,
    any: bool,
}

struct Row {
    id: String,
    state: StateWords,
    created: Moment,
    operation: String,
    tenant: String,
    key: String,
    error: String,
    resource: String,
}

impl From<(Operation, &str)> for Row {
    fn from((operation, now): (Operation, &str)) -> Self {
        Self {
            state: words::state(&operation.state, operation.dead_letter),
            created: Moment::new(&operation.times.created, now),
            error: operation.last_error.unwrap_or_default(),
            resource: operation
                .resource
                .map_or_else(String::new, |resource| format!("{}/{}", resource.kind, resource.id)),
            id: operation.operation_id,
            operation: operation.operation,
            tenant: operation.tenant,
            key: operation.key,
        }
    }
}

/// The query with these parameters left out.
pub(super) fn without(form: &Form, left_out: &[&str]) -> String {
    let pairs =
        form.fields().iter().filter(|(name, value)| !value.is_empty() && !left_out.contains(&name.as_str()));
    let pairs: Vec<_> =
        pairs.map(|(name, value)| format!("{}={}", percent_encoded(name), percent_encoded(value))).collect();
    pairs.join("&")
}

pub(super) fn with(target: &str, query: &str) -> String {
    if query.is_empty() { target.to_owned() } else { format!("{target}?{query}") }
}

/// `GET /console/operations`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Response {
    let form = Form::parse(query.unwrap_or_default().as_bytes());
    let frame = Frame::new(&visitor, "operations", "Operations");
    let asked = without(&form, &[]);
    let limited = if form.text("limit").is_empty() { format!("&limit={ON_A_PAGE}") } else { String::new() };
    let told = console.told::<OperationPage>(&visitor, &format!("/v1/operations?{asked}{limited}")).await;
    let (status, problem, page, stale) = match told {
        Ok(told) => (StatusCode::OK, None, told.value, told.stale),
        Err(refused) if refused.status == StatusCode::BAD_REQUEST => {
            (StatusCode::BAD_REQUEST, Some(refused.detail), OperationPage::default(), None)
        }
        Err(refused) => return page::told(frame, refused.status, &refused.detail, None),
    };
    let frame = frame.stale_since(stale);
    let escaped = |name: &str| crate::escape::escape(form.text(name));
    let filters = Filters {
        tenant: escaped("tenant"),
        operation: escaped("operation"),
        key: escaped("key"),
        error: escaped("error"),
        resource: escaped("resource"),
        older_than: escaped("older_than"),
        is_oldest_first: form.text("order") == "oldest",
        is_dead_letter: form.text("dead_letter") == "true",
        any: !without(&form, &["cursor", "limit", "order"]).is_empty(),
    };
    let state = form.text("state");
    let is_first = form.text("cursor").is_empty();
    let filter = without(&form, &["cursor", "limit", "order"]);
    let listing = Operations {
        next: page.next_cursor.as_ref().map(|cursor| {
            let rest = without(&form, &["cursor"]);
            let and = if rest.is_empty() { "" } else { "&" };
            format!("/console/operations?{rest}{and}cursor={}", percent_encoded(cursor))
        }),
        first: (!is_first).then(|| with("/console/operations", &without(&form, &["cursor"]))),
        bulk: (frame.may(&visitor, Role::Admin) && !page.operations.is_empty())
            .then(|| with("/console/bulk", &filter)),
        newer: (is_first && !filters.is_oldest_first && problem.is_none()).then(|| {
            let since =
                page.operations.first().map_or(page.now.as_str(), |first| first.times.created.as_str());
            let and = if filter.is_empty() { "" } else { "&" };
            format!("/console/newer?{filter}{and}since={}", percent_encoded(since))
        }),
        rows: page
            .operations
            .into_iter()
            .map(|operation| Row::from((operation, page.now.as_str())))
            .collect(),
        damaged: page.damaged,
        states: OperationState::ALL
            .map(|known| (known.as_str(), words::state(known.as_str(), false).text, known.as_str() == state))
            .into(),
        frame,
        filters,
        problem,
    };
    page::with_status(status, &listing)
}

/// `GET /console/newer`: how many there are since the page was made.
pub(super) async fn newer(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Response {
    let form = Form::parse(query.unwrap_or_default().as_bytes());
    let target = format!("/v1/operations?{}&limit={ON_A_PAGE}", without(&form, &["since"]));
    match console.api.read::<OperationPage>(&visitor, &target.replace("?&", "?")).await {
        Ok(page) => {
            let since = form.text("since");
            // RFC 3339 in UTC with milliseconds: the order of texts is the order of time.
            let newer =
                page.operations.iter().filter(|operation| operation.times.created.as_str() > since).count();
            Json(serde_json::json!({ "newer": newer, "more": newer == ON_A_PAGE })).into_response()
        }
        Err(refused) => (refused.status, Json(serde_json::json!({ "newer": 0 }))).into_response(),
    }
}
