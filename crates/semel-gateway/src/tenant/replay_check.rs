//! Asks an authority before every replay: a credential that was revoked since finds its operation, and must not get the answer.

use super::forward_auth::{Authority, ForwardAuthConfig, Question};
use super::{Network, is_trusted};
use crate::tls::{ClientTlsFiles, TlsError};
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderName, StatusCode};
use semel_http::Endpoint;
use semel_tower::{ReplayCheck, ReplayCheckFuture, ReplayVerdict};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Who is asked before every replay, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayCheckConfig {
    /// Where. Nothing of a request changes it.
    pub url: Endpoint,
    /// Whom to trust there, for `https`.
    pub tls: ClientTlsFiles,
    /// How long an answer may take. Default 2 s.
    pub deadline: Duration,
    /// Which headers of the request are sent. Default: `Authorization`, `Cookie` and `X-Api-Key`.
    pub headers: Vec<HeaderName>,
}

impl ReplayCheckConfig {
    /// Asks there, with the defaults.
    #[must_use]
    pub fn at(url: Endpoint) -> Self {
        Self {
            url,
            tls: ClientTlsFiles::default(),
            deadline: ForwardAuthConfig::DEADLINE,
            headers: ForwardAuthConfig::HEADERS.into(),
        }
    }

    /// Asks the authority of forward-auth.
    #[must_use]
    pub fn as_forward_auth(asked: &ForwardAuthConfig) -> Self {
        let ForwardAuthConfig { url, tls, deadline, headers, .. } = asked.clone();
        Self { url, tls, deadline, headers }
    }
}

/// Asks as forward-auth does, each time: what was answered a moment ago may have been revoked since.
pub(super) struct AskedBeforeReplays {
    headers: Vec<HeaderName>,
    authority: Authority,
    trusted_peers: Arc<[Network]>,
}

impl AskedBeforeReplays {
    pub(super) fn new(config: &ReplayCheckConfig, trusted_peers: Arc<[Network]>) -> Result<Self, TlsError> {
        let authority = Authority::new(&config.url, &config.tls, config.deadline)?;
        Ok(Self { headers: config.headers.clone(), authority, trusted_peers })
    }

    async fn ask(&self, parts: &Parts) -> ReplayVerdict {
        let trusts = |peer: IpAddr| is_trusted(&self.trusted_peers, peer);
        let question = Question::about(parts, &self.headers, trusts);
        let answer = match self.authority.ask(&question).await {
            Ok((status, _)) if status.is_success() => return ReplayVerdict::Allowed,
            Ok((StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, headers)) => {
                let challenges = headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect();
                return ReplayVerdict::Refused { challenges };
            }
            Ok((status, _)) => format!("it answered {status}"),
            Err(error) => error.to_string(),
        };
        tracing::error!(why = answer, "replay check: undecided; nothing was replayed");
        ReplayVerdict::Undecided
    }
}

impl ReplayCheck for AskedBeforeReplays {
    fn check<'a>(&'a self, request: &'a Parts) -> ReplayCheckFuture<'a> {
        Box::pin(self.ask(request))
    }
}
