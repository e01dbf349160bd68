//! Settle: what is known, what an operator found out, and what the next retry gets by it.
//!
//! Two steps, each a page that is complete without a script: what was found is written down, then looked over with the exact answer that retries will
//! get, and confirmed. What was read (attempt and version) goes along: if somebody else was first, nothing is done, and the page says who.

use super::documents::{Operation, OperationWithHistory};
use super::form::Form;
use super::moment::Moment;
use super::next_retry::{self, Preview};
use super::operation::{Line, path};
use super::page::{self, Frame};
use super::visitor::Visitor;
use super::words::{self, StateWords};
use super::{Console, acted};
use crate::acts::{ActError, Stated, Statement};
use crate::identity::Role;
use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use semel::OperationId;
use semel_worker::{ResourceDocument, ResponseDocument};
use std::sync::Arc;

/// What somebody writes into the form.
#[derive(Clone, Default)]
pub(super) struct Draft {
    /// Where they looked, and what they found there.
    pub(super) found: String,
    pub(super) outcome: Option<Stated>,
    pub(super) status: String,
    pub(super) content_type: String,
    pub(super) body: String,
    pub(super) resource: String,
    pub(super) reason: String,
    pub(super) ticket: String,
    pub(super) attempt: u32,
    pub(super) version: u64,
}

impl Draft {
    fn of(form: &Form) -> Self {
        let text = |name: &str| form.text(name).to_owned();
        Self {
            found: text("found"),
            outcome: Stated::from_name(form.text("outcome")),
            status: text("status"),
            content_type: text("content_type"),
            body: text("body"),
            resource: text("resource"),
            reason: text("reason"),
            ticket: text("ticket"),
            attempt: form.text("attempt").parse().unwrap_or(0),
            version: form.text("version").parse().unwrap_or(0),
        }
    }

    fn is(&self, outcome: &Stated) -> bool {
        self.outcome == Some(*outcome)
    }

    fn outcome_name(&self) -> &'static str {
        self.outcome.map_or("", Stated::as_str)
    }

    fn has_answer(&self) -> bool {
        self.outcome.is_some_and(|outcome| outcome != Stated::NotExecuted)
    }

    /// What it says; or what is wrong with it.
    pub(super) fn statement(&self) -> Result<Statement, String> {
        let outcome = self.outcome.ok_or("Choose what happened.")?;
        if self.found.trim().is_empty() {
            return Err("Write where you looked and what you found.".into());
        }
        if self.reason.trim().is_empty() {
            return Err("Write the reason: whoever reads the history will want to know how you know.".into());
        }
        let (response, resource) =
            if outcome == Stated::NotExecuted { (None, None) } else { (self.response()?, self.resource()?) };
        Ok(Statement {
            outcome,
            attempt: Some(self.attempt),
            version: Some(self.version),
            after_lease: true,
            reason: format!("{}\nFound: {}", self.reason.trim(), self.found.trim()),
            ticket: Some(self.ticket.trim().to_owned()).filter(|ticket| !ticket.is_empty()),
            claimed: None,
            response,
            resource,
        })
    }

    fn response(&self) -> Result<Option<ResponseDocument>, String> {
        let status = self.status.trim();
        if status.is_empty() {
            return match self.body.trim().is_empty() {
                true => Ok(None),
                false => Err("An answer with a body needs a status, such as 201.".into()),
            };
        }
        let status = status.parse().map_err(|_| "The status of the answer is a number from 200 to 599.")?;
        let content_type = self.content_type.trim();
        let headers =
            (!content_type.is_empty()).then(|| ("content-type".to_owned(), content_type.to_owned()));
        Ok(Some(ResponseDocument {
            status,
            headers: headers.into_iter().collect(),
            body: (!self.body.is_empty()).then(|| self.body.clone()),
            body_base64: None,
            schema_version: None,
        }))
    }

    fn resource(&self) -> Result<Option<ResourceDocument>, String> {
        match self.resource.trim() {
            "" => Ok(None),
            text => match text.split_once('/') {
                Some((kind, id)) if !kind.is_empty() && !id.is_empty() => {
                    Ok(Some(ResourceDocument { kind: kind.to_owned(), id: id.to_owned() }))
                }
                _ => Err("A resource is a type and an id, such as payment/pay_1.".into()),
            },
        }
    }
}

#[derive(Template)]
#[template(path = "console/settle.html")]
struct SettleScreen {
    frame: Frame,
    operation: Operation,
    state: StateWords,
    created: Moment,
    lease: Moment,
    lease_lives: bool,
    /// What provider and owner said last.
    last: Option<Line>,
    draft: Draft,
    previews: Vec<(Stated, Preview)>,
    /// What is wrong with the draft.
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "console/review.html")]
struct Review {
    frame: Frame,
    operation: Operation,
    draft: Draft,
    preview: Preview,
    problem: Option<String>,
    /// What has to be typed.
    confirm: Option<String>,
}

#[derive(Template)]
#[template(path = "console/moved.html")]
struct Moved {
    frame: Frame,
    operation: Operation,
    state: StateWords,
    /// What happened since.
    lines: Vec<Line>,
}

fn frame(visitor: &Visitor) -> Frame {
    Frame::new(visitor, "operations", "Settle")
}

async fn found(
    console: &Console,
    visitor: &Visitor,
    id: &str,
) -> Result<(OperationId, OperationWithHistory), Response> {
    let target = path(id);
    let link = Some((target.as_str(), "To the operation"));
    if !visitor.may(Role::Operator) {
        let text = "Settling needs the role operator.";
        return Err(page::told(frame(visitor), StatusCode::FORBIDDEN, text, link));
    }
    let api = target.replacen("/console", "/v1", 1);
    let shown: OperationWithHistory = match console.api.read(visitor, &api).await {
        Ok(shown) => shown,
        Err(refused) => return Err(page::told(frame(visitor), refused.status, &refused.detail, link)),
    };
    match shown.operation.operation_id.parse() {
        Ok(id) => Ok((id, shown)),
        Err(_) => Err(page::refused(StatusCode::NOT_FOUND, "There is no such operation.")),
    }
}

/// `GET /console/operations/{id}/settle`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let (id, shown) = match found(&console, &visitor, &id).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let (attempt, version) = (shown.operation.attempt, shown.operation.version);
    if !shown.operation.is_unknown() {
        return moved(&visitor, shown, 0);
    }
    let draft = Draft { attempt, version, ..Draft::default() };
    form(&console, &visitor, id, shown, draft, None).await
}

/// What somebody wrote before their session ended, on the page where they wrote it.
pub(super) async fn continued(console: &Console, visitor: &Visitor, target: &str, kept: Form) -> Response {
    let id = target.strip_prefix("/console/operations/").and_then(|rest| rest.strip_suffix("/settle"));
    let Some(id) = id else { return page::see(target) };
    let (id, shown) = match found(console, visitor, id).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let draft = Draft::of(&kept);
    if shown.operation.version != draft.version || !shown.operation.is_unknown() {
        return moved(visitor, shown, draft.version);
    }
    form(console, visitor, id, shown, draft, None).await
}

/// `POST /console/operations/{id}/settle`.
pub(super) async fn send(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Extension(sent): Extension<Form>,
    Path(id): Path<String>,
) -> Response {
    let (id, shown) = match found(&console, &visitor, &id).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let draft = Draft::of(&sent);
    if shown.operation.version != draft.version || !shown.operation.is_unknown() {
        return moved(&visitor, shown, draft.version);
    }
    let statement = match draft.statement() {
        Ok(statement) => statement,
        Err(problem) => return form(&console, &visitor, id, shown, draft, Some(problem)).await,
    };
    if sent.text("step") != "settle" {
        return review(&console, &visitor, id, shown, draft, None).await;
    }
    let last_six = shown.operation.last_six();
    if statement.outcome == Stated::NotExecuted && sent.text("confirm").trim() != last_six {
        let problem = "These are not the last six characters of the operation id. Nothing was done.";
        return review(&console, &visitor, id, shown, draft, Some(problem.into())).await;
    }
    match console.settings.acts.settle(&visitor.operator(), id, statement).await {
        Ok(_) => page::see(&format!("{}?done=settled", path(&id.to_string()))),
        Err(ActError::Invalid(problem)) => form(&console, &visitor, id, shown, draft, Some(problem)).await,
        Err(ActError::Moved { .. }) => match found(&console, &visitor, &id.to_string()).await {
            Ok((_, now)) => moved(&visitor, now, draft.version),
            Err(response) => response,
        },
        Err(error) => {
            let target = path(&id.to_string());
            let words = match &error {
                ActError::Unknown(_) => "It may be settled: look",
                _ => "To the operation",
            };
            acted::refused(frame(&visitor), &error, (&target, words))
        }
    }
}

async fn form(
    console: &Console,
    visitor: &Visitor,
    id: OperationId,
    shown: OperationWithHistory,
    draft: Draft,
    problem: Option<String>,
) -> Response {
    let OperationWithHistory { now, operation, history } = shown;
    let lease = Moment::new(&operation.times.lease_until, &now);
    let mut previews = Vec::new();
    for outcome in Stated::ALL {
        previews.push((outcome, next_retry::of_outcome(console, visitor, id, outcome).await));
    }
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let screen = SettleScreen {
        frame: frame(visitor),
        state: words::state(&operation.state, operation.dead_letter),
        created: Moment::new(&operation.times.created, &now),
        lease_lives: lease.seconds_ago() < 0,
        lease,
        last: history.into_iter().rev().find(|line| line.note.is_some()).map(|line| Line::of(line, &now)),
        operation,
        draft,
        previews,
        problem: problem.map(|problem| crate::escape::escape_lines(&problem)),
    };
    page::with_status(status, &screen)
}

async fn review(
    console: &Console,
    visitor: &Visitor,
    id: OperationId,
    shown: OperationWithHistory,
    draft: Draft,
    problem: Option<String>,
) -> Response {
    let preview = match draft.statement() {
        Ok(statement) => next_retry::of(console, visitor, id, statement).await,
        Err(problem) => Err(problem),
    };
    let preview = match preview {
        Ok(preview) => preview,
        Err(problem) => return form(console, visitor, id, shown, draft, Some(problem)).await,
    };
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let confirm = draft.is(&Stated::NotExecuted).then(|| shown.operation.last_six().to_owned());
    page::with_status(
        status,
        &Review { frame: frame(visitor), operation: shown.operation, draft, preview, problem, confirm },
    )
}

/// Somebody, or something, was first: who, when, and to what. Nothing was done.
fn moved(visitor: &Visitor, shown: OperationWithHistory, looked_at: u64) -> Response {
    let OperationWithHistory { now, operation, history } = shown;
    let since: Vec<_> = history.iter().filter(|line| line.version > looked_at).cloned().collect();
    let lines = if since.is_empty() { history.last().cloned().into_iter().collect() } else { since };
    let screen = Moved {
        frame: frame(visitor),
        state: words::state(&operation.state, operation.dead_letter),
        lines: lines.into_iter().map(|line| Line::of(line, &now)).collect(),
        operation,
    };
    page::with_status(StatusCode::CONFLICT, &screen)
}
