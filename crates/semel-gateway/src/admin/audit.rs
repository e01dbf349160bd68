//! `GET /v1/audit`: who did what, newest first; and the same as a file.

use super::Shared;
use super::audit_query::{AuditListing, OfAudit, OfExport};
use super::csv::Csv;
use super::document::Moment;
use super::openapi::{Guarded, StoreFailed};
use super::problem::{AdminProblem, ProblemDocument};
use crate::acts::Operator;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use semel::audit::{AuditAction, AuditCursor, AuditLine};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The most entries of one export. What is beyond is asked for with the cursor of the last one.
const EXPORTED: usize = 10_000;

/// How many entries an export reads at once.
const READ_AT_ONCE: usize = 1_000;

/// A page of the audit, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditPage)]
pub(super) struct AuditListed {
    now: Moment,
    entries: Vec<AuditDocument>,
    /// How many more there are on this page that cannot be read.
    #[serde(skip_serializing_if = "super::document::is_zero")]
    damaged: usize,
    /// The cursor of the next page. A page may be short, or empty, and still be followed by another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One entry of the audit. Members without a value are absent.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct AuditDocument {
    #[schema(format = "uuid")]
    id: String,
    at: Moment,
    /// Who: `token:oncall`, `proxy:user@example.com`, `loopback`.
    actor: String,
    #[schema(schema_with = super::schemas::audit_actions)]
    action: &'static str,
    #[schema(schema_with = super::schemas::audit_results)]
    result: &'static str,
    /// What it was done to: an operation id, an event id, a path of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    #[serde(flatten)]
    details: Details,
}

/// What else an entry says.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditDetails)]
struct Details {
    /// Where the actor's name comes from: `token`, `user`, `proxy`, `loopback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The actor's role.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// The address of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    /// Whom a trusted peer forwarded it for.
    #[serde(skip_serializing_if = "Option::is_none")]
    forwarded_for: Option<String>,
    /// A hash that tells the actor's sessions apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The `X-Request-Id` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// By which way: `console`, `api`, `cli`.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    /// The process that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_after: Option<String>,
    /// The outcome that was stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    /// The SHA-256 of the body that was given or shown, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_sha256: Option<String>,
    /// The length of that body, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_bytes: Option<u64>,
    /// The code of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl From<AuditLine> for AuditDocument {
    fn from(line: AuditLine) -> Self {
        let (entry, details) = (line.entry.clone(), line.entry.details);
        Self {
            id: entry.id.to_string(),
            at: line.at.into(),
            actor: entry.actor,
            action: entry.action.as_str(),
            result: entry.result.as_str(),
            target: entry.target,
            tenant: entry.tenant,
            operation: entry.operation,
            details: Details {
                kind: details.kind,
                role: details.role,
                peer: details.peer,
                forwarded_for: details.forwarded_for,
                session: details.session,
                request_id: details.request_id,
                via: details.via,
                instance: details.instance,
                attempt: details.attempt,
                version_before: details.version_before,
                version_after: details.version_after,
                state_before: details.state_before,
                state_after: details.state_after,
                outcome: details.outcome,
                reason: details.reason,
                ticket: details.ticket,
                response_sha256: details.response_sha256,
                response_bytes: details.response_bytes,
                refusal: details.refusal,
                note: details.note,
            },
        }
    }
}

/// Lists the audit, newest first: for admins all of it, for others what is about operations of their tenants.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "listAudit", tag = "audit",
    params(OfAudit),
    responses(
        (status = 200, description = "A page of the audit", body = AuditListed),
        (status = 400, description = "Invalid query parameter", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    RawQuery(query): RawQuery,
) -> Result<Response, AdminProblem> {
    let AuditListing { filter, from, limit } = AuditListing::read(query.as_deref())?;
    let now = shared.admin.engine.store().now().await?.earliest;
    let page = shared.acts.audit(&operator, &filter, from, limit).await?;
    let listed = AuditListed {
        now: now.into(),
        entries: page.lines.into_iter().map(AuditDocument::from).collect(),
        damaged: page.damaged,
        next_cursor: page.next.map(|AuditCursor(cursor)| cursor),
    };
    Ok(Json(listed).into_response())
}

/// Exports the audit as CSV or JSON: what `GET /v1/audit` lists, up to 10 000 entries. The export is in the audit itself.
#[utoipa::path(
    get, path = "/v1/audit/export", operation_id = "exportAudit", tag = "audit",
    params(OfExport),
    responses(
        (status = 200, description = "The entries; the header `Semel-Next-Cursor` has the cursor of what is beyond", content(
            (String = "text/csv"),
            (Vec<AuditDocument> = "application/json"),
        )),
        (status = 400, description = "Invalid query parameter", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn export(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    RawQuery(query): RawQuery,
) -> Result<Response, AdminProblem> {
    let (as_csv, listing) = AuditListing::read_export(query.as_deref())?;
    let mut entry = shared.acts.entry(&operator, AuditAction::Export);
    entry.target = Some("audit".into());
    entry.details.note =
        query.filter(|query| !query.is_empty()).map(|query| query.chars().take(500).collect());
    shared.acts.note(entry).await?;
    let (mut lines, mut next) = (Vec::new(), listing.from);
    loop {
        let room = (EXPORTED - lines.len()).min(READ_AT_ONCE);
        let page = shared.acts.audit(&operator, &listing.filter, next, room).await?;
        lines.extend(page.lines);
        next = page.next;
        if next.is_none() || lines.len() >= EXPORTED {
            break;
        }
    }
    let (body, kind, name) = match as_csv {
        true => (csv(&lines), "text/csv; charset=utf-8", "attachment; filename=\"audit.csv\""),
        false => {
            let entries: Vec<AuditDocument> = lines.into_iter().map(AuditDocument::from).collect();
            // Texts, numbers and flags, written to memory: nothing here can fail.
            let text = serde_json::to_string(&entries).unwrap_or_default();
            (text, "application/json", "attachment; filename=\"audit.json\"")
        }
    };
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static(name));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(cursor) = next.and_then(|AuditCursor(cursor)| HeaderValue::try_from(cursor).ok()) {
        headers.insert("semel-next-cursor", cursor);
    }
    Ok(response)
}

/// The columns of an export, by their names in the API.
const COLUMNS: [&str; 28] = [
    "id",
    "at",
    "actor",
    "kind",
    "role",
    "peer",
    "forwarded_for",
    "session",
    "request_id",
    "action",
    "target",
    "tenant",
    "operation",
    "attempt",
    "version_before",
    "version_after",
    "state_before",
    "state_after",
    "outcome",
    "reason",
    "ticket",
    "response_sha256",
    "response_bytes",
    "via",
    "result",
    "refusal",
    "note",
    "instance",
];

fn csv(lines: &[AuditLine]) -> String {
    let mut csv = Csv::new(&COLUMNS);
    for line in lines {
        let document = AuditDocument::from(line.clone());
        // One object of texts and numbers, whatever is absent.
        let Ok(serde_json::Value::Object(members)) = serde_json::to_value(&document) else { continue };
        csv.row(COLUMNS.iter().map(|column| match members.get(*column) {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }));
    }
    csv.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::Timestamp;
    use semel::audit::{AuditDetails, AuditEntry};

    #[test]
    fn an_export_has_every_member_of_an_entry() {
        let text = || Some("x".to_owned());
        let mut entry = AuditEntry::new("token:ada", AuditAction::Settle);
        (entry.target, entry.tenant, entry.operation) = (text(), text(), text());
        entry.details = AuditDetails {
            kind: text(),
            role: text(),
            peer: text(),
            forwarded_for: text(),
            session: text(),
            request_id: text(),
            via: text(),
            instance: text(),
            attempt: Some(1),
            version_before: Some(1),
            version_after: Some(2),
            state_before: text(),
            state_after: text(),
            outcome: text(),
            reason: text(),
            ticket: text(),
            response_sha256: text(),
            response_bytes: Some(3),
            refusal: text(),
            note: text(),
        };
        let document = AuditDocument::from(AuditLine { at: Timestamp::from_millis(0), entry });
        let serde_json::Value::Object(members) = serde_json::to_value(&document).unwrap() else { panic!() };
        let mut names: Vec<_> = members.keys().map(String::as_str).collect();
        let mut columns = COLUMNS.to_vec();
        names.sort_unstable();
        columns.sort_unstable();
        assert_eq!(names, columns);
    }
}
