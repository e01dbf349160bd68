//! Who may ask what: every route names the least role that may use it.

use super::Shared;
use super::problem::AdminProblem;
use crate::acts::{ActError, Operator, Via};
use crate::identity::{Caller, Identity, Rejected, Role};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName};
use std::net::SocketAddr;
use std::sync::Arc;

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

impl Peer {
    fn is_loopback(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

/// What guards a group of routes.
pub(super) type Guard = (Arc<Shared>, Role);

/// Requires at least this role, and tells the handler who the user is.
pub(super) async fn at_least(
    State((shared, role)): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    // The console has authenticated its users already. Nothing that comes from outside can stand beside a request.
    let operator = match request.extensions().get::<Operator>() {
        Some(operator) => operator.clone(),
        None => match shared.authenticate(&request) {
            Ok(identity) => shared.operator(identity, &request),
            Err(problem) => return problem.into_response(),
        },
    };
    if let Err(problem) = allowed(&shared, &operator.identity, role) {
        let target = Some(request.uri().path().to_owned());
        shared.acts.denied(&operator, request.method().as_str(), target, "admin_forbidden").await;
        return problem.into_response();
    }
    request.extensions_mut().insert(operator.identity.clone());
    request.extensions_mut().insert(operator);
    next.run(request).await
}

/// Allows reading metrics: they contain no client keys, so local collectors need no token.
pub(super) async fn to_measure(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if request.extensions().get::<Peer>().is_some_and(|peer| peer.is_loopback()) {
        return next.run(request).await;
    }
    // The console has authenticated its users already.
    let known = request.extensions().get::<Operator>().map(|operator| Ok(operator.identity.clone()));
    match known.unwrap_or_else(|| shared.authenticate(&request)) {
        Ok(identity) if identity.tenants.is_limited() => AdminProblem::forbidden(LIMITED).into_response(),
        Ok(_) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Why a user with a tenant limit does not get what is about all tenants.
pub(super) const LIMITED: &str =
    "This covers all tenants; your access is limited to some (`tenants` in your [[admin.user]]).";

impl Shared {
    /// Whose request it is.
    pub(super) fn authenticate(&self, request: &Request) -> Result<Identity, AdminProblem> {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        let caller = Caller { peer, headers: request.headers() };
        self.admin.people.authenticate(caller).map_err(|rejected| {
            if rejected == Rejected::WrongToken {
                tracing::warn!(?peer, "wrong admin token");
            }
            rejected.into()
        })
    }

    /// The user, and how they came, as the audit says it.
    fn operator(&self, identity: Identity, request: &Request) -> Operator {
        let headers = request.headers();
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        let is_cli = text(headers, &USER_AGENT).is_some_and(|agent| agent.starts_with("semel-cli/"));
        let is_believed = peer.is_some_and(|peer| self.admin.people.trusts(peer));
        let forwarded_for = is_believed.then(|| text(headers, &FORWARDED_FOR)).flatten();
        let brief = |text: &str| text.chars().take(LONGEST_FIELD).collect::<String>();
        Operator {
            peer,
            forwarded_for: forwarded_for.map(brief),
            request_id: text(headers, &REQUEST_ID).map(brief),
            ..Operator::new(identity, if is_cli { Via::Cli } else { Via::Api })
        }
    }
}

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How much of a header field the audit keeps, in characters.
const LONGEST_FIELD: usize = 200;

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn allowed(shared: &Shared, identity: &Identity, role: Role) -> Result<(), AdminProblem> {
    if identity.role >= role {
        return Ok(());
    }
    if shared.admin.people.is_empty() {
        return Err(AdminProblem::forbidden(
            "Without a token the admin API is read-only. Set one (SEMEL_ADMIN_TOKEN or --admin-token for the quick start, [admin] \
             token = \"env:SEMEL_ADMIN_TOKEN\" in a file), restart, and send it as `Authorization: Bearer …`.",
        ));
    }
    let actor = identity.to_string();
    Err(ActError::Forbidden { needed: role, had: identity.role, actor }.into())
}

const NO_TOKEN_ELSEWHERE: &str = "Without a token the admin API serves only requests from this machine. Set one ([admin] \
                                  token = \"env:SEMEL_ADMIN_TOKEN\"), restart, and send it as `Authorization: Bearer …`.";

impl From<Rejected> for AdminProblem {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::NoCredentials => Self::unauthorized(
                r#"Bearer realm="semel-admin""#,
                "Admin token required: send `Authorization: Bearer …`.",
            ),
            Rejected::WrongToken => Self::unauthorized(
                r#"Bearer realm="semel-admin", error="invalid_token""#,
                "Invalid admin token.",
            ),
            Rejected::UnreadableIdentity => Self::unauthorized(
                r#"Bearer realm="semel-admin""#,
                "The proxy's identity header is repeated or not a valid name.",
            ),
            Rejected::WithoutRole(name) => Self::forbidden(format!(
                "None of the groups of proxy:{name} has a role ([admin.identity.roles])."
            )),
            Rejected::NotFromHere => Self::forbidden(NO_TOKEN_ELSEWHERE),
            Rejected::AnotherName => Self::forbidden(
                "Without a token the admin API accepts only loopback host names: use localhost, 127.0.0.1 or [::1], or set \
                 a token ([admin] token = \"env:SEMEL_ADMIN_TOKEN\").",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{Admin, router};
    use crate::metrics::Metrics;
    use crate::secret::Secret;
    use axum::body::Body;
    use http::StatusCode;
    use http::header::{AUTHORIZATION, HOST};
    use semel::{Engine, MemoryStore};
    use tower::Service as _;

    /// What a request from this address gets.
    async fn asked(path: &str, peer: &str, configured: Option<&str>, shown: Option<&str>) -> StatusCode {
        let mut admin = Admin::new(Engine::new(MemoryStore::new()), Arc::new(Metrics::new([])));
        admin.people.token = configured.map(|token| Secret::new(token).unwrap());
        let mut request = Request::builder().uri(path).header(HOST, "localhost");
        if let Some(shown) = shown {
            request = request.header(AUTHORIZATION, format!("Bearer {shown}"));
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        router(admin).call(request).await.unwrap().status()
    }

    const HERE: &str = "127.0.0.1:5000";
    const ELSEWHERE: &str = "192.0.2.7:5000";

    #[tokio::test]
    async fn other_machines_need_a_token_for_everything_but_the_probes() {
        for path in ["/v1/operations", "/v1/stats", "/metrics"] {
            for (configured, shown, status) in [
                (None, None, 403),
                (None, Some("token"), 403),
                (Some("token"), None, 401),
                (Some("token"), Some("guess"), 401),
                (Some("token"), Some("token"), 200),
            ] {
                let got = asked(path, ELSEWHERE, configured, shown).await;
                assert_eq!(got, status, "{path}, configured {configured:?}, shown {shown:?}");
            }
        }
        for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
            assert_eq!(asked(path, ELSEWHERE, None, None).await, 200, "{path}");
            assert_eq!(asked(path, ELSEWHERE, Some("token"), None).await, 200, "{path}");
        }
        assert_eq!(asked("/metrics", HERE, Some("token"), None).await, 200);
        assert_eq!(asked("/v1/stats", HERE, Some("token"), None).await, 401);
    }
}
