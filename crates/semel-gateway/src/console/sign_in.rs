//! Signs users in by their token, and out again.

use super::form::Form;
use super::page::{self, Frame};
use super::visitor::{Visitor, peer};
use super::{Console, cookie::Transport, settle};
use crate::identity::{Identity, Role, Source, Tenants};
use askama::Template;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use semel::audit::{AuditAction, AuditResult};
use std::sync::Arc;

/// The field with where to go then.
const BACK: &str = "back";

/// What the fields of a form that came too late are called here.
const KEPT: &str = "kept:";

#[derive(Template)]
#[template(path = "console/sign_in.html")]
struct SignIn<'a> {
    frame: Frame,
    /// What is wrong.
    problem: Option<&'a str>,
    back: &'a str,
    /// The fields of a form that came after its session had ended.
    kept: Vec<(String, String)>,
    /// Whether a token can be sent here at all.
    is_safe: bool,
    has_users: bool,
    has_proxy: bool,
}

/// Where a user may be sent: our own pages.
fn back(text: &str) -> &str {
    let is_ours = text == "/console" || text.starts_with("/console/") || text.starts_with("/console?");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_ours && is_plain && !text.starts_with("/console/sign-") { text } else { "/console" }
}

fn form(
    console: &Console,
    (extensions, headers): (&Extensions, &HeaderMap),
    status: StatusCode,
    problem: Option<&str>,
    target: &str,
    kept: Vec<(String, String)>,
) -> Response {
    let people = &console.settings.people;
    let has_users = people.token.is_some() || !people.users.is_empty();
    page::with_status(
        status,
        &SignIn {
            frame: Frame::outside("Sign in"),
            problem,
            back: back(target),
            kept,
            is_safe: console.transport(extensions, headers) != Transport::Plain,
            has_users,
            has_proxy: people.proxy.is_some(),
        },
    )
}

/// Asks somebody who is not signed in to do so. What they wrote is kept.
pub(super) fn ask(
    console: &Console,
    extensions: &Extensions,
    headers: &HeaderMap,
    target: &str,
    sent: Option<&Form>,
) -> Response {
    let (problem, kept) = match sent {
        Some(sent) => (
            Some("Your session has ended. Nothing was done yet. Sign in: what you wrote is kept."),
            sent.kept().into_iter().map(|(name, value)| (format!("{KEPT}{name}"), value)).collect(),
        ),
        None => (None, Vec::new()),
    };
    form(console, (extensions, headers), StatusCode::UNAUTHORIZED, problem, target, kept)
}

/// `GET /console/sign-in`.
pub(super) async fn show(State(console): State<Arc<Console>>, request: Request) -> Response {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let came = (request.extensions(), request.headers());
    form(&console, came, StatusCode::OK, None, query.text(BACK), Vec::new())
}

/// `POST /console/sign-in`.
pub(super) async fn sign_in(State(console): State<Arc<Console>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let came = (&parts.extensions, &parts.headers);
    let trusted = peer(&parts.extensions).is_some_and(|peer| console.settings.people.trusts(peer));
    if !super::same_origin::is_same_origin(&parts.headers, trusted) {
        return page::refused(StatusCode::FORBIDDEN, "This form was sent by another page. Nothing was done.");
    }
    let Some(sent) = Form::read(body).await else {
        return page::refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            "The form is too long, or did not arrive in time.",
        );
    };
    let target = back(sent.text(BACK));
    let kept: Vec<_> = sent.fields().iter().filter(|(name, _)| name.starts_with(KEPT)).cloned().collect();
    let transport = console.transport(&parts.extensions, &parts.headers);
    if transport == Transport::Plain {
        let problem = "Signing in needs TLS: a token would be read on the way.";
        return form(&console, came, StatusCode::FORBIDDEN, Some(problem), target, kept);
    }
    let party = console.party(&parts.extensions, &parts.headers);
    if let Some(wait) = console.attempts.wait(party) {
        let minutes = wait.as_secs().div_ceil(60);
        let problem = format!("Too many wrong tokens from your address. Try again in {minutes} min.");
        let mut response = form(&console, came, StatusCode::TOO_MANY_REQUESTS, Some(&problem), target, kept);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        return response;
    }
    let people = &console.settings.people;
    let Some(identity) = people.by_token(sent.text("token").trim().as_bytes()) else {
        console.attempts.failed(party);
        tracing::warn!(peer = ?peer(&parts.extensions), "console: wrong token");
        console.note_failure(&parts.extensions, &parts.headers).await;
        let problem = "No user has this token.";
        return form(&console, came, StatusCode::UNAUTHORIZED, Some(problem), target, kept);
    };
    console.attempts.succeeded(party);
    let begun = match console.sessions.begin(people, &identity).await {
        Ok(Some(begun)) => begun,
        Ok(None) => return page::refused(StatusCode::FORBIDDEN, "This user cannot have a session."),
        Err(_) => {
            let text =
                "The store is unavailable, and sessions are signed with a key that is kept there. Try again.";
            return page::refused(StatusCode::SERVICE_UNAVAILABLE, text);
        }
    };
    let (cookie, session) = begun;
    let visitor = console.visitor_of(
        identity.clone(),
        Some(session.clone()),
        String::new(),
        &parts.extensions,
        &parts.headers,
    );
    let entry = console.settings.acts.entry(&visitor.operator(), AuditAction::SignIn);
    if console.settings.acts.note(entry).await.is_err() {
        let text = "The store is unavailable, and signing in is written down there. Try again.";
        return page::refused(StatusCode::SERVICE_UNAVAILABLE, text);
    }
    let mut response = if kept.is_empty() {
        page::see(target)
    } else {
        let form_token = console.sessions.form_token(&identity, Some(&session)).await.unwrap_or_default();
        let visitor =
            console.visitor_of(identity, Some(session), form_token, &parts.extensions, &parts.headers);
        let kept = kept.into_iter().map(|(name, value)| (name[KEPT.len()..].to_owned(), value));
        settle::continued(&console, &visitor, target, Form::of(kept)).await
    };
    if let Some(cookie) = transport.set(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

impl Console {
    /// Writes down that somebody tried.
    async fn note_failure(&self, extensions: &Extensions, headers: &HeaderMap) {
        let nobody =
            Identity { name: String::new(), source: Source::User, role: Role::Reader, tenants: Tenants::All };
        let visitor = self.visitor_of(nobody, None, String::new(), extensions, headers);
        let mut entry = self.settings.acts.entry(&visitor.operator(), AuditAction::SignInFailed);
        entry.actor = "nobody".into();
        entry.result = AuditResult::Refused;
        (entry.details.kind, entry.details.role) = (None, None);
        if let Err(error) = self.settings.acts.note(entry).await {
            tracing::warn!(%error, "a failed sign-in is missing in the audit");
        }
    }
}

/// `POST /console/sign-out`.
pub(super) async fn sign_out(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let transport = console.transport(&visitor.extensions, &visitor.headers);
    let mut response = page::see("/console/sign-in");
    if let Some(cookie) = transport.clear() {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    if matches!(visitor.identity.source, Source::Token | Source::User) {
        let entry = console.settings.acts.entry(&visitor.operator(), AuditAction::SignOut);
        if let Err(error) = console.settings.acts.note(entry).await {
            tracing::warn!(%error, actor = %visitor.identity, "a sign-out is missing in the audit");
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_sent_to_our_own_pages_alone() {
        for ours in ["/console", "/console/operations?state=unknown", "/console?a=b"] {
            assert_eq!(back(ours), ours);
        }
        for other in [
            "",
            "//evil.example",
            "https://evil.example",
            "/consolee",
            "/console/\\evil",
            "/console/sign-out",
            "/console/ x",
        ] {
            assert_eq!(back(other), "/console");
        }
    }
}
