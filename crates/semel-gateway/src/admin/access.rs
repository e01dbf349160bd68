//! Who may ask what.
//!
//! With a token, everything but the probes needs it (`/metrics` only from other machines). Without one, loopback alone may
//! read, and nobody may change anything.

use super::Shared;
use super::problem::AdminProblem;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, uri::Authority};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

impl Peer {
    fn is_loopback(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

pub(super) async fn to_read(shared: State<Arc<Shared>>, request: Request, next: Next) -> Response {
    guarded(may_read(&shared, &request), request, next).await
}

pub(super) async fn to_change(shared: State<Arc<Shared>>, request: Request, next: Next) -> Response {
    guarded(may_change(&shared, &request), request, next).await
}

pub(super) async fn to_measure(shared: State<Arc<Shared>>, request: Request, next: Next) -> Response {
    guarded(may_measure(&shared, &request), request, next).await
}

async fn guarded(may: Result<(), AdminProblem>, request: Request, next: Next) -> Response {
    match may {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn may_read(shared: &Shared, request: &Request) -> Result<(), AdminProblem> {
    if shared.admin.token.is_some() {
        return shows_token(shared, request);
    }
    if !is_loopback(request) {
        return Err(AdminProblem::forbidden(NO_TOKEN_ELSEWHERE));
    }
    // A page in a browser on this machine can send requests here under a name of its own (DNS rebinding), and would read the
    // answers. Whoever means this machine names it.
    if !names_loopback(request.headers()) {
        return Err(AdminProblem::forbidden(
            "Without a token this API answers to the names of this machine alone: use localhost, 127.0.0.1 or [::1], or \
             set a token ([admin] token = \"env:SEMEL_ADMIN_TOKEN\").",
        ));
    }
    Ok(())
}

fn may_change(shared: &Shared, request: &Request) -> Result<(), AdminProblem> {
    if shared.admin.token.is_some() {
        return shows_token(shared, request);
    }
    Err(AdminProblem::forbidden(
        "Without a token this API is for reading alone. Set one ([admin] token = \"env:SEMEL_ADMIN_TOKEN\"), restart, and \
         send it as `Authorization: Bearer …`.",
    ))
}

/// The numbers tell nobody's keys: on this machine they are there for whoever collects them.
fn may_measure(shared: &Shared, request: &Request) -> Result<(), AdminProblem> {
    if is_loopback(request) {
        return Ok(());
    }
    match shared.admin.token {
        Some(_) => shows_token(shared, request),
        None => Err(AdminProblem::forbidden(NO_TOKEN_ELSEWHERE)),
    }
}

const NO_TOKEN_ELSEWHERE: &str = "Without a token this API answers to this machine alone. Set one ([admin] token = \
                                  \"env:SEMEL_ADMIN_TOKEN\"), restart, and send it as `Authorization: Bearer …`.";

fn shows_token(shared: &Shared, request: &Request) -> Result<(), AdminProblem> {
    let Some(shown) = bearer(request.headers()) else {
        return Err(AdminProblem::unauthorized(
            r#"Bearer realm="semel-admin""#,
            "This needs the admin token, as `Authorization: Bearer …`.",
        ));
    };
    if shared.admin.token.as_ref().is_some_and(|token| token.matches(shown)) {
        return Ok(());
    }
    tracing::warn!(peer = ?request.extensions().get::<Peer>(), "a wrong admin token was shown");
    Err(AdminProblem::unauthorized(
        r#"Bearer realm="semel-admin", error="invalid_token""#,
        "This is not the admin token.",
    ))
}

/// The token that a request shows. Two of them are none: nobody could say which one counts.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else { return None };
    let (scheme, token) = field.as_bytes().split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn is_loopback(request: &Request) -> bool {
    request.extensions().get::<Peer>().is_some_and(|peer| peer.is_loopback())
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let mut named = headers.get_all(HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else { return false };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.to_canonical().is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{Admin, router};
    use crate::metrics::Metrics;
    use crate::secret::Secret;
    use axum::body::Body;
    use http::{HeaderValue, StatusCode};
    use semel::{Engine, MemoryStore};
    use tower::Service as _;

    /// What a request from this address gets.
    async fn asked(path: &str, peer: &str, configured: Option<&str>, shown: Option<&str>) -> StatusCode {
        let mut admin = Admin::new(Engine::new(MemoryStore::new()), Arc::new(Metrics::new([])));
        admin.token = configured.map(|token| Secret::new(token).unwrap());
        let mut request = Request::builder().uri(path).header(HOST, "localhost");
        if let Some(shown) = shown {
            request = request.header(AUTHORIZATION, format!("Bearer {shown}"));
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        router(admin, &Arc::default()).call(request).await.unwrap().status()
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
        for path in ["/healthz", "/readyz"] {
            assert_eq!(asked(path, ELSEWHERE, None, None).await, 200, "{path}");
            assert_eq!(asked(path, ELSEWHERE, Some("token"), None).await, 200, "{path}");
        }
        assert_eq!(asked("/metrics", HERE, Some("token"), None).await, 200);
        assert_eq!(asked("/v1/stats", HERE, Some("token"), None).await, 401);
    }

    fn headers(name: http::HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_token_is_read_in_any_spelling_of_its_scheme() {
        for field in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(bearer(&headers(AUTHORIZATION, &[field])), Some(&b"abc"[..]), "{field}");
        }
        for fields in [&[][..], &["abc"], &["Basic abc"], &["Bearer"], &["Bearer abc", "Bearer abc"]] {
            assert_eq!(bearer(&headers(AUTHORIZATION, fields)), None, "{fields:?}");
        }
    }

    #[test]
    fn only_names_of_this_machine_name_it() {
        for host in ["localhost", "LocalHost:8081", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8081"] {
            assert!(names_loopback(&headers(HOST, &[host])), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "10.0.0.1", "[::2]:80", "", "127.0.0.1.evil.example"]
        {
            assert!(!names_loopback(&headers(HOST, &[host])), "{host}");
        }
        assert!(!names_loopback(&HeaderMap::new()));
    }

    #[test]
    fn an_address_of_this_machine_is_known_in_both_families() {
        for (address, loopback) in
            [("127.0.0.1:1", true), ("[::1]:1", true), ("[::ffff:127.0.0.1]:1", true), ("10.0.0.1:1", false)]
        {
            assert_eq!(Peer(address.parse().unwrap()).is_loopback(), loopback, "{address}");
        }
    }
}
