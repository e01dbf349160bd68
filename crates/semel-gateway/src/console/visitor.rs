//! Who asks for a page: from here on every request has a user, and every form comes from one of our pages.

use super::cookie::Transport;
use super::form::{Form, TOKEN};
use super::same_origin::is_same_origin;
use super::session::Session;
use super::{Console, page, sign_in};
use crate::acts::{Operator, Via};
use crate::capacity::Party;
use crate::identity::{Caller, Identity, Role, Source};
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Extensions, HeaderMap, Method, StatusCode};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// An authenticated user, and the way they came.
#[derive(Clone)]
pub(super) struct Visitor {
    pub(super) identity: Identity,
    pub(super) session: Option<Session>,
    /// What the forms of this page send.
    pub(super) form_token: String,
    /// Whom a trusted proxy forwarded it for.
    pub(super) forwarded_for: Option<String>,
    /// What the listener knows of the connection.
    pub(super) extensions: Extensions,
    pub(super) headers: HeaderMap,
}

impl Visitor {
    pub(super) fn may(&self, role: Role) -> bool {
        self.identity.role >= role
    }

    /// Whether there is a session to be ended.
    pub(super) fn can_sign_out(&self) -> bool {
        self.session.is_some() && matches!(self.identity.source, Source::Token | Source::User)
    }

    /// The user as the audit knows them.
    pub(super) fn operator(&self) -> Operator {
        Operator {
            peer: peer(&self.extensions),
            forwarded_for: self.forwarded_for.clone(),
            session: self.session.as_ref().map(Session::hash),
            request_id: brief(&self.headers, "x-request-id"),
            ..Operator::new(self.identity.clone(), Via::Console)
        }
    }
}

/// The address of the peer.
pub(super) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
}

impl Console {
    pub(super) fn transport(&self, extensions: &Extensions, headers: &HeaderMap) -> Transport {
        Transport::of(self.settings.has_tls, peer(extensions), headers)
    }

    /// Whose wrong tokens are counted together.
    pub(super) fn party(&self, extensions: &Extensions, headers: &HeaderMap) -> Party {
        let peer = peer(extensions).unwrap_or(IpAddr::from([0, 0, 0, 0]));
        Party::of_request(peer, headers, |peer| self.settings.people.trusts(peer))
    }

    fn is_ours(&self, extensions: &Extensions, headers: &HeaderMap) -> bool {
        let trusted = peer(extensions).is_some_and(|peer| self.settings.people.trusts(peer));
        is_same_origin(headers, trusted)
    }

    /// The user of a request; `None`: nobody signed in.
    async fn visitor(
        &self,
        extensions: &Extensions,
        headers: &HeaderMap,
    ) -> Result<Option<Visitor>, semel::StoreError> {
        let people = &self.settings.people;
        let cookie = self.transport(extensions, headers).cookie(headers);
        let session = match cookie {
            Some(cookie) => self.sessions.open(people, cookie).await?,
            None => None,
        };
        let identity = match &session {
            Some(session) => session.identity.clone(),
            None => match people.authenticate(Caller { peer: peer(extensions), headers }) {
                Ok(identity) => identity,
                Err(_) => return Ok(None),
            },
        };
        let form_token = self.sessions.form_token(&identity, session.as_ref()).await?;
        Ok(Some(self.visitor_of(identity, session, form_token, extensions, headers)))
    }

    pub(super) fn visitor_of(
        &self,
        identity: Identity,
        session: Option<Session>,
        form_token: String,
        extensions: &Extensions,
        headers: &HeaderMap,
    ) -> Visitor {
        let is_believed = peer(extensions).is_some_and(|peer| self.settings.people.trusts(peer));
        let forwarded_for = is_believed.then(|| brief(headers, "x-forwarded-for")).flatten();
        let (extensions, headers) = (extensions.clone(), headers.clone());
        Visitor { identity, session, form_token, forwarded_for, extensions, headers }
    }
}

/// How much of a header field the audit keeps, in characters.
const LONGEST_FIELD: usize = 200;

fn brief(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    Some(text.chars().take(LONGEST_FIELD).collect())
}

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
