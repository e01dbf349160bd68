//! Bulk: a list of operations in doubt, frozen, and settled one by one with a result each.
//!
//! The list is kept in the store with the attempt and the version of each operation, so that it goes on from its address: after a reload, on another
//! instance, by somebody else. Each step settles a few and writes down what became of them. A step whose results were lost does no
//! harm: what it settled has another version by then.

use super::documents::{Operation, OperationPage};
use super::form::Form;
use super::id::Id;
use super::links::percent_encoded;
use super::operations::without;
use super::page::{self, Frame};
use super::visitor::Visitor;
use super::{Console, acted};
use crate::acts::{ActError, Stated, Statement};
use crate::identity::Role;
use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use http::StatusCode;
use semel::OperationId;
use semel::audit::{AuditAction, AuditEntry};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use uuid::Uuid;

/// Operations of one list at most.
const MOST: usize = 1_000;

/// Operations of one step: a second's work.
const STEP: usize = 20;

/// Operations that the page shows before the list is frozen.
const SHOWN: usize = 20;

/// What narrows a list; anything less would be everything.
const FILTERS: [&str; 8] =
    ["tenant", "operation", "key", "error", "resource", "older_than", "created_after", "created_before"];

/// A frozen list, as the store keeps it.
#[derive(Clone, Serialize, Deserialize)]
struct Frozen {
    actor: String,
    outcome: String,
    reason: String,
    ticket: Option<String>,
    filter: String,
    digest: String,
    state: RunState,
    items: Vec<Item>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RunState {
    Frozen,
    Running,
    Aborted,
    Done,
}

#[derive(Clone, Serialize, Deserialize)]
struct Item {
    id: String,
    attempt: u32,
    version: u64,
    /// `None`: not tried yet; empty: settled; else why not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    result: Option<String>,
}

impl Frozen {
    fn tried(&self) -> usize {
        self.items.iter().filter(|item| item.result.is_some()).count()
    }

    fn settled(&self) -> usize {
        self.items.iter().filter(|item| item.result.as_deref() == Some("")).count()
    }

    fn failed(&self) -> usize {
        self.tried() - self.settled()
    }

    fn is_running(&self) -> bool {
        matches!(self.state, RunState::Frozen | RunState::Running)
    }
}

#[derive(Template)]
#[template(path = "console/bulk.html")]
struct BulkScreen {
    frame: Frame,
    filter: String,
    filter_words: Vec<(String, String)>,
    count: usize,
    is_more: bool,
    digest: String,
    sample: Vec<Operation>,
    problem: Option<String>,
    reason: String,
    ticket: String,
}

#[derive(Template)]
#[template(path = "console/bulk_run.html")]
struct RunScreen {
    frame: Frame,
    id: String,
    run: Frozen,
    can_act: bool,
}

fn frame(visitor: &Visitor) -> Frame {
    Frame::new(visitor, "operations", "Settle many")
}

fn name(id: Uuid) -> String {
    format!("console/bulk/{id}")
}

fn target(id: Uuid) -> String {
    format!("/console/bulk/{id}")
}

fn digest(operations: &[Operation]) -> String {
    let all = operations.iter().fold(Sha256::new(), |all, operation| {
        let (id, attempt, version) = (&operation.operation_id, operation.attempt, operation.version);
        all.chain_update(format!("{id} {attempt} {version}\n"))
    });
    all.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The filter of a form, without what does not narrow.
fn filter_of(form: &Form) -> String {
    let names: Vec<&str> =
        form.fields().iter().map(|(name, _)| name.as_str()).filter(|name| !FILTERS.contains(name)).collect();
    without(form, &names)
}

/// What the filter selects now, of what is in doubt.
async fn listed(
    console: &Console,
    visitor: &Visitor,
    filter: &str,
) -> Result<(Vec<Operation>, bool), Response> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let api = format!("/v1/operations?{filter}&state=unknown&limit=500{cursor}");
        let page: OperationPage = match console.api.read(visitor, &api).await {
            Ok(page) => page,
            Err(refused) => {
                let link = Some(("/console/operations", "To the operations"));
                return Err(page::told(frame(visitor), refused.status, &refused.detail, link));
            }
        };
        all.extend(page.operations);
        match page.next_cursor {
            _ if all.len() > MOST => {
                all.truncate(MOST);
                return Ok((all, true));
            }
            None => return Ok((all, false)),
            Some(next) => cursor = format!("&cursor={}", percent_encoded(&next)),
        }
    }
}

fn denied(visitor: &Visitor) -> Response {
    let link = Some(("/console/operations", "To the operations"));
    page::told(frame(visitor), StatusCode::FORBIDDEN, "Settling many needs the role admin.", link)
}

fn empty_filter(visitor: &Visitor) -> Response {
    let text = "Without a filter this would be everything that is in doubt. Filter by operation, tenant, error, resource or age first.";
    let link = Some(("/console/operations?state=unknown", "To the operations"));
    page::told(frame(visitor), StatusCode::BAD_REQUEST, text, link)
}

/// `GET /console/bulk`: what would be settled.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Response {
    if !visitor.may(Role::Admin) {
        return denied(&visitor);
    }
    let form = Form::parse(query.unwrap_or_default().as_bytes());
    let filter = filter_of(&form);
    if filter.is_empty() {
        return empty_filter(&visitor);
    }
    match listed(&console, &visitor, &filter).await {
        Ok(listed) => preview(&visitor, filter, listed, &Form::default(), None),
        Err(response) => response,
    }
}

fn preview(
    visitor: &Visitor,
    filter: String,
    (operations, is_more): (Vec<Operation>, bool),
    sent: &Form,
    problem: Option<&str>,
) -> Response {
    let words = Form::parse(filter.as_bytes());
    let words =
        words.fields().iter().map(|(name, value)| (name.replace('_', " "), crate::escape::escape(value)));
    let screen = BulkScreen {
        frame: frame(visitor),
        filter_words: words.collect(),
        filter,
        count: operations.len(),
        is_more,
        digest: digest(&operations),
        sample: operations.into_iter().take(SHOWN).collect(),
        problem: problem.map(str::to_owned),
        reason: sent.text("reason").to_owned(),
        ticket: sent.text("ticket").to_owned(),
    };
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    page::with_status(status, &screen)
}

/// `POST /console/bulk`: freezes the list.
pub(super) async fn freeze(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Extension(sent): Extension<Form>,
) -> Response {
    if !visitor.may(Role::Admin) {
        return denied(&visitor);
    }
    let filter = filter_of(&Form::parse(sent.text("filter").as_bytes()));
    if filter.is_empty() {
        return empty_filter(&visitor);
    }
    let (operations, is_more) = match listed(&console, &visitor, &filter).await {
        Ok(listed) => listed,
        Err(response) => return response,
    };
    let outcome = Stated::from_name(sent.text("outcome"));
    let count = operations.len();
    let is_counted = sent.text("count").trim().parse() == Ok(count);
    let problem = match outcome {
        Some(Stated::NotExecuted) => {
            Some("`not_executed` is settled one by one: each would be executed again.".to_owned())
        }
        None => Some("Choose what happened.".to_owned()),
        _ if count == 0 => Some("Nothing that is in doubt matches any more.".to_owned()),
        _ if digest(&operations) != sent.text("digest") => {
            Some("The list has changed since you looked at it. This is the new one: look again.".to_owned())
        }
        _ if !is_counted => Some(format!("Type {count} to confirm how many there are.")),
        _ if sent.text("reason").trim().is_empty() => Some("Write the reason.".to_owned()),
        _ => None,
    };
    let (Some(outcome), None) = (outcome, &problem) else {
        return preview(&visitor, filter, (operations, is_more), &sent, problem.as_deref());
    };
    let id = Uuid::new_v4();
    let run = Frozen {
        actor: visitor.identity.to_string(),
        outcome: outcome.as_str().into(),
        reason: sent.text("reason").trim().to_owned(),
        ticket: Some(sent.text("ticket").trim().to_owned()).filter(|ticket| !ticket.is_empty()),
        digest: digest(&operations),
        filter,
        state: RunState::Frozen,
        items: operations
            .into_iter()
            .map(|operation| Item {
                id: operation.operation_id,
                attempt: operation.attempt,
                version: operation.version,
                result: None,
            })
            .collect(),
    };
    let link = ("/console/operations", "To the operations");
    if let Err(error) = noted(&console, &visitor, AuditAction::BulkFreeze, id, &run).await {
        return acted::refused(frame(&visitor), &error, link);
    }
    match console.settings.store.remember(name(id), written(&run)).await {
        Ok(_) => page::see(&target(id)),
        Err(error) => acted::refused(frame(&visitor), &ActError::Store(error), link),
    }
}

fn written(run: &Frozen) -> Bytes {
    // Texts and numbers, written to memory: nothing here can fail.
    serde_json::to_vec(run).map(Bytes::from).unwrap_or_default()
}

async fn noted(
    console: &Console,
    visitor: &Visitor,
    action: AuditAction,
    id: Uuid,
    run: &Frozen,
) -> Result<(), ActError> {
    let acts = &console.settings.acts;
    let mut entry: AuditEntry = acts.entry(&visitor.operator(), action);
    entry.target = Some(id.to_string());
    entry.details.outcome = Some(run.outcome.clone());
    entry.details.reason = Some(run.reason.clone());
    entry.details.ticket.clone_from(&run.ticket);
    entry.details.note =
        Some(format!("{} operations, digest {}, {} tried", run.items.len(), run.digest, run.tried()));
    acts.note(entry).await
}

/// The list, and how it is written in the store.
async fn recalled(console: &Console, visitor: &Visitor, id: Uuid) -> Result<(Frozen, Bytes), Response> {
    let link = Some(("/console/operations", "To the operations"));
    if !visitor.may(Role::Admin) {
        return Err(denied(visitor));
    }
    match console.settings.store.recall(name(id)).await {
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(run) => Ok((run, bytes)),
            Err(_) => {
                Err(page::told(frame(visitor), StatusCode::NOT_FOUND, "The list cannot be read.", link))
            }
        },
        Ok(None) => Err(page::told(frame(visitor), StatusCode::NOT_FOUND, "There is no such list.", link)),
        Err(_) => {
            let text =
                "The store is unavailable. Nothing is settled until it answers; the list goes on from here.";
            Err(page::told(frame(visitor), StatusCode::SERVICE_UNAVAILABLE, text, None))
        }
    }
}

/// `GET /console/bulk/{id}`: how far it has come.
pub(super) async fn run(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(Id(id)): Path<Id>,
) -> Response {
    match recalled(&console, &visitor, id).await {
        Ok((run, _)) => shown(&visitor, id, run),
        Err(response) => response,
    }
}

fn shown(visitor: &Visitor, id: Uuid, run: Frozen) -> Response {
    page::html(&RunScreen { frame: frame(visitor), id: id.to_string(), can_act: run.is_running(), run })
}

/// `POST /console/bulk/{id}/step`: settles the next few.
pub(super) async fn step(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(Id(id)): Path<Id>,
) -> Response {
    let (mut run, mut before) = match recalled(&console, &visitor, id).await {
        Ok(recalled) => recalled,
        Err(response) => return response,
    };
    if run.state == RunState::Frozen {
        if let Err(error) = noted(&console, &visitor, AuditAction::BulkStart, id, &run).await {
            return acted::refused(frame(&visitor), &error, (&target(id), "To the list"));
        }
        run.state = RunState::Running;
        // From now on nobody else begins it.
        match console.settings.store.replace(name(id), before.clone(), written(&run)).await {
            Ok(Some(kept)) if kept == written(&run) => before = kept,
            _ => return page::see(&target(id)),
        }
    }
    let mut store_failed = None;
    if run.state == RunState::Running {
        let outcome = Stated::from_name(&run.outcome).filter(|outcome| *outcome != Stated::NotExecuted);
        let Some(outcome) = outcome else { return page::see(&target(id)) };
        let (reason, ticket) = (run.reason.clone(), run.ticket.clone());
        for item in run.items.iter_mut().filter(|item| item.result.is_none()).take(STEP) {
            match settle(&console, &visitor, item, outcome, &reason, ticket.clone()).await {
                Ok(result) => item.result = Some(result),
                Err(error) => {
                    store_failed = Some(error);
                    break;
                }
            }
        }
        if run.tried() == run.items.len() {
            run.state = RunState::Done;
        }
        // Somebody else's step, or an abort, may have come between: then what is written there counts, and what this step settled
        // is found to be settled.
        let _others = console.settings.store.replace(name(id), before, written(&run)).await;
    }
    if let Some(error) = store_failed {
        return acted::refused(frame(&visitor), &error, (&target(id), "To the list"));
    }
    let wants_json = visitor.headers.get("accept").is_some_and(|accept| accept == "application/json");
    if !wants_json {
        return page::see(&target(id));
    }
    // What is written, which may be an abort of somebody else.
    match recalled(&console, &visitor, id).await {
        Ok((run, _)) => Json(serde_json::json!({
            "tried": run.tried(), "settled": run.settled(), "failed": run.failed(), "running": run.is_running(),
        }))
        .into_response(),
        Err(response) => response,
    }
}

async fn settle(
    console: &Console,
    visitor: &Visitor,
    item: &Item,
    outcome: Stated,
    reason: &str,
    ticket: Option<String>,
) -> Result<String, ActError> {
    let Ok(id) = item.id.parse::<OperationId>() else { return Ok("invalid id".into()) };
    let statement = Statement {
        outcome,
        attempt: Some(item.attempt),
        version: Some(item.version),
        after_lease: true,
        reason: reason.to_owned(),
        ticket,
        claimed: None,
        response: None,
        resource: None,
    };
    let (acts, operator) = (&console.settings.acts, visitor.operator());
    match acts.settle_as(AuditAction::BulkItem, &operator, id, statement).await {
        Ok(_) => Ok(String::new()),
        Err(error @ (ActError::Store(_) | ActError::Unknown(_))) => Err(error),
        Err(ActError::Moved { why, seen }) => {
            // By a step of this list, whose results were lost?
            let history = acts.engine.store().history(id).await.unwrap_or_default();
            let was_ours = history.last().is_some_and(|line| {
                line.entry.note.as_deref() == Some(reason) && line.version == item.version + 1
            });
            if was_ours {
                return Ok(String::new());
            }
            Ok(format!("{} It is {} now.", why.as_str(), seen.record.state.as_str()))
        }
        Err(error) => Ok(crate::escape::escape(&error.to_string())),
    }
}

/// `POST /console/bulk/{id}/abort`, and `…/resume`.
pub(super) async fn turn(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path((Id(id), way)): Path<(Id, String)>,
) -> Response {
    let action = match way.as_str() {
        "abort" => AuditAction::BulkAbort,
        "resume" => AuditAction::BulkStart,
        _ => return page::refused(StatusCode::NOT_FOUND, "There is no such page."),
    };
    // A step that is under way writes too: look again, a few times.
    for _ in 0..10 {
        let (mut run, before) = match recalled(&console, &visitor, id).await {
            Ok(recalled) => recalled,
            Err(response) => return response,
        };
        run.state = match (action, run.state) {
            (AuditAction::BulkAbort, RunState::Frozen | RunState::Running) => RunState::Aborted,
            (AuditAction::BulkStart, RunState::Aborted) => RunState::Running,
            _ => return page::see(&target(id)),
        };
        let after = written(&run);
        match console.settings.store.replace(name(id), before, after.clone()).await {
            Ok(Some(kept)) if kept == after => {
                if let Err(error) = noted(&console, &visitor, action, id, &run).await {
                    return acted::refused(frame(&visitor), &error, (&target(id), "To the list"));
                }
                return page::see(&target(id));
            }
            Ok(_) => {}
            Err(error) => {
                return acted::refused(
                    frame(&visitor),
                    &ActError::Store(error),
                    (&target(id), "To the list"),
                );
            }
        }
    }
    page::see(&target(id))
}
