//! Lets nobody through who is not signed in: from here on every request has a user, and every form comes from one of our pages.

use super::form::{Form, TOKEN};
use super::{Console, page, sign_in};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, StatusCode};
use std::sync::Arc;

/// Lets nobody through who is not signed in, and no form that another page sent.
pub(super) async fn gate(State(console): State<Arc<Console>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let is_form = parts.method == Method::POST;
    if is_form && !console.is_ours(&parts.extensions, &parts.headers) {
        return page::refused(StatusCode::FORBIDDEN, "This form was sent by another page. Nothing was done.");
    }
    let visitor = match console.visitor(&parts.extensions, &parts.headers).await {
        Ok(visitor) => visitor,
        Err(error) => {
            tracing::warn!(%error, "console: the store is unavailable, sessions cannot be read");
            return page::refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "The store is unavailable, and sessions are checked with a key that is kept there. Try again.",
            );
        }
    };
    let form = if is_form {
        let Some(form) = Form::read(body).await else {
            return page::refused(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The form is too long, or did not arrive in time.",
            );
        };
        form
    } else {
        Form::default()
    };
    let Some(visitor) = visitor else {
        let back = parts.uri.path_and_query().map_or("/console", |target| target.as_str());
        return sign_in::ask(&console, &parts.extensions, &parts.headers, back, is_form.then_some(&form));
    };
    if is_form {
        let shown = form.text(TOKEN);
        match console.sessions.is_form_token(shown, &visitor.identity, visitor.session.as_ref()).await {
            Ok(true) => {}
            Ok(false) => {
                return page::refused(
                    StatusCode::FORBIDDEN,
                    "This form belongs to another session. Nothing was done: go back, load the page again, and send it from there.",
                );
            }
            Err(_) => {
                return page::refused(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "The store is unavailable. Nothing was done.",
                );
            }
        }
    }
    parts.extensions.insert(visitor);
    parts.extensions.insert(form);
    next.run(Request::from_parts(parts, Body::empty())).await
}
