//! Reveal: the whole key and the stored answer, as text. It is in the audit before it is shown.

use super::operation::path;
use super::page::{self, Frame};
use super::visitor::Visitor;
use super::{Console, acted};
use crate::escape::{escape, escape_lines};
use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use semel::{Body, OperationId};
use std::sync::Arc;

/// What is shown of a body at most, in bytes; the rest can be downloaded.
const SHOWN: usize = 256 * 1024;

#[derive(Template)]
#[template(path = "console/revealed.html")]
struct RevealedScreen {
    frame: Frame,
    id: String,
    key: String,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Option<String>,
    is_cut: bool,
    is_text: bool,
    bytes: usize,
}

/// `POST /console/operations/{id}/reveal`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let frame = Frame::new(&visitor, "operations", "Revealed");
    let Ok(parsed) = id.parse::<OperationId>() else {
        return page::refused(StatusCode::NOT_FOUND, "There is no such operation.");
    };
    let revealed = match console.settings.acts.reveal(&visitor.operator(), parsed).await {
        Ok(revealed) => revealed,
        Err(error) => return acted::refused(frame, &error, (&path(&id), "To the operation")),
    };
    let response = revealed.response.as_ref();
    let body = response.and_then(|response| match &response.body {
        Body::Stored(bytes) => Some(bytes),
        _ => None,
    });
    let cut = body.map(|body| &body[..body.len().min(SHOWN)]);
    let text = cut.map(String::from_utf8_lossy);
    page::html(&RevealedScreen {
        frame,
        id: parsed.to_string(),
        key: escape(&revealed.seen.record.key.key),
        status: response.map(|response| response.status),
        headers: response.map_or_else(Vec::new, |response| {
            let field = |(name, value): &(String, bytes::Bytes)| {
                (escape(name), escape(&String::from_utf8_lossy(value)))
            };
            response.headers.iter().map(field).collect()
        }),
        is_text: body.is_some_and(|body| std::str::from_utf8(body).is_ok()),
        body: text.map(|text| escape_lines(&text)),
        is_cut: body.is_some_and(|body| body.len() > SHOWN),
        bytes: body.map_or(0, |body| body.len()),
    })
}

/// `POST /console/operations/{id}/download`: the body as a file, whatever it claims to be.
pub(super) async fn download(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let frame = Frame::new(&visitor, "operations", "Download");
    let Ok(parsed) = id.parse::<OperationId>() else {
        return page::refused(StatusCode::NOT_FOUND, "There is no such operation.");
    };
    match console.settings.acts.reveal(&visitor.operator(), parsed).await {
        Ok(revealed) => match revealed.response.map(|response| response.body) {
            Some(Body::Stored(bytes)) => {
                let disposition = format!("attachment; filename=\"{parsed}.bin\"");
                let headers =
                    [(CONTENT_TYPE, "application/octet-stream"), (CONTENT_DISPOSITION, disposition.as_str())];
                (headers, bytes).into_response()
            }
            _ => page::told(
                frame,
                StatusCode::NOT_FOUND,
                "There is no stored body.",
                Some((&path(&id), "To the operation")),
            ),
        },
        Err(error) => acted::refused(frame, &error, (&path(&id), "To the operation")),
    }
}
