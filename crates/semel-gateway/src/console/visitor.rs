//! Who asks for a page.

use super::Console;
use super::cookie::Transport;
use super::same_origin::is_same_origin;
use super::session::Session;
use crate::acts::{Operator, Via};
use crate::capacity::Party;
use crate::identity::{Caller, Identity, Role, Source};
use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap};
use std::net::{IpAddr, SocketAddr};

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

    pub(super) fn is_ours(&self, extensions: &Extensions, headers: &HeaderMap) -> bool {
        let trusted = peer(extensions).is_some_and(|peer| self.settings.people.trusts(peer));
        is_same_origin(headers, trusted)
    }

    /// The user of a request; `None`: nobody signed in.
    pub(super) async fn visitor(
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
