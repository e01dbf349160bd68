//! What a request passes before the layer sees it: is it addressed rightly, is there room for it, what must not come in.

use crate::capacity::{Party, Refused, Shares};
use crate::headers::{Asked, Decisive, drop_claims, drop_hop_by_hop, is_misspelt_key};
use crate::listener::{
    AnswerBody, Arrival, BodyFailure, Client, InFlight, PeerAddress, RequestBody, Trusts, UnderWay,
    UnderWayHolder,
};
use crate::responses;
use crate::route::{Illegible, legible};
use crate::upstream::{Caller, Upstream};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Version};
use semel_tower::{Body, Idempotency};
use std::future::Future;
use std::sync::Arc;
use tower::Service as _;

/// Where the contract is published.
const CONTRACT: &str = "/.well-known/idempotency";

type Contract = Box<dyn Fn(&Method, &HeaderMap) -> Response<Bytes> + Send + Sync>;
type Check = Box<dyn Fn(PeerAddress, &mut Parts) -> Option<Response<Bytes>> + Send + Sync>;

pub(crate) struct Entrance {
    service: Idempotency<Upstream>,
    contract: Option<Contract>,
    check: Option<Check>,
    decisive: Decisive,
    in_flight: Arc<Shares<UnderWayHolder>>,
    trusts: Trusts,
}

/// A request that is answered here.
struct AnsweredHere(Box<Response<Bytes>>);

impl From<Response<Bytes>> for AnsweredHere {
    fn from(answer: Response<Bytes>) -> Self {
        Self(Box::new(answer))
    }
}

impl Entrance {
    pub(crate) fn new(service: Idempotency<Upstream>, requests_in_flight: usize) -> Self {
        Self {
            service,
            contract: None,
            check: None,
            decisive: Decisive::default(),
            in_flight: Shares::new(requests_in_flight),
            trusts: Arc::new(|address| address.to_canonical().is_loopback()),
        }
    }

    pub(crate) fn publish(
        &mut self,
        contract: impl Fn(&Method, &HeaderMap) -> Response<Bytes> + Send + Sync + 'static,
    ) {
        self.contract = Some(Box::new(contract));
    }

    pub(crate) fn check(
        &mut self,
        check: impl Fn(PeerAddress, &mut Parts) -> Option<Response<Bytes>> + Send + Sync + 'static,
    ) {
        self.check = Some(Box::new(check));
    }

    pub(crate) fn tell_tenants_by(&mut self, names: impl IntoIterator<Item = HeaderName>) {
        self.decisive = Decisive::with(names);
    }

    /// Which peers forward the requests of others.
    pub(crate) fn trust(&mut self, trusts: Trusts) {
        self.trusts = trusts;
    }

    pub(crate) fn trusts(&self) -> Trusts {
        Arc::clone(&self.trusts)
    }

    /// A permit is out for every request that is worked on.
    pub(crate) fn in_flight(&self) -> &Arc<Shares<UnderWayHolder>> {
        &self.in_flight
    }

    /// Gives out the permits of another entrance, whose place it takes: what is worked on there counts here.
    pub(crate) fn share(&mut self, in_flight: &Arc<Shares<UnderWayHolder>>) {
        self.in_flight = Arc::clone(in_flight);
    }

    pub(crate) fn answer(
        &self,
        arrival: Arrival,
    ) -> impl Future<Output = Response<AnswerBody>> + Send + use<> {
        let Arrival { request, client, mut under_way } = arrival;
        let Client { peer, introduction, certificate, .. } = client;
        let (mut parts, body) = request.into_parts();
        let asked = Asked::of(parts.version, &parts.headers);
        let link = under_way.link().clone();
        let body = RequestBody::incoming(body, &parts.headers, link.clone(), self.decisive.clone());
        let admitted = self.admit(peer, &mut parts, &under_way).map(|in_flight| {
            let in_flight = Arc::new(in_flight);
            under_way.hold(&in_flight);
            parts.extensions.insert(peer);
            if let Some(certificate) = certificate {
                parts.extensions.insert(certificate);
            }
            parts.extensions.insert(Caller { in_flight, introduction, link, asked });
            self.service.clone().call(Request::from_parts(parts, body))
        });
        async move {
            let answer = match admitted {
                Err(AnsweredHere(answer)) => answer.map(Body::from),
                Ok(answering) => {
                    let answer = answering.await.unwrap_or_else(|error| {
                        // The layer answers for protected requests, the proxy for all others.
                        tracing::error!(%error, "a request was left without an answer");
                        responses::bad_gateway().map(Body::from)
                    });
                    unless_body_failed(answer, &under_way)
                }
            };
            answer.map(|body| AnswerBody::new(body, under_way))
        }
    }

    /// Lets a request in, with a permit; or answers it here.
    fn admit(
        &self,
        peer: PeerAddress,
        parts: &mut Parts,
        under_way: &UnderWay,
    ) -> Result<InFlight, AnsweredHere> {
        address(parts)?;
        self.is_unambiguous(&parts.headers)?;
        drop_hop_by_hop(&mut parts.headers);
        drop_claims(&mut parts.headers);
        if let Some(contract) = &self.contract
            && parts.uri.path() == CONTRACT
        {
            return Err(contract(&parts.method, &parts.headers).into());
        }
        if let Some(answer) = self.check.as_ref().and_then(|check| check(peer, parts)) {
            return Err(answer.into());
        }
        let client = Party::of_request(peer.0.ip(), &parts.headers, &*self.trusts);
        self.in_flight.take(Some(client), under_way.holder()).map_err(|refused| match refused {
            Refused::Full => responses::too_busy().into(),
            Refused::OverShare => responses::over_share().into(),
        })
    }

    /// Checks that the service and the gateway read the same key, and the same tenant, out of these headers.
    fn is_unambiguous(&self, headers: &HeaderMap) -> Result<(), AnsweredHere> {
        let refuse = |detail| Err(responses::bad_request(detail).into());
        if self.decisive.is_named_by_connection(headers) {
            return refuse(
                "Connection names a field that is part of the request, such as the Idempotency-Key, a credential or the account, as if \
                 it were about this connection alone.",
            );
        }
        if headers.keys().any(|name| is_misspelt_key(name.as_str())) {
            return refuse(
                "The Idempotency-Key is spelt in another way. Send it as it is documented: with a hyphen.",
            );
        }
        Ok(())
    }
}

/// The layer and the proxy only know that a body broke off; the client is told why.
fn unless_body_failed(answer: Response<Body>, under_way: &UnderWay) -> Response<Body> {
    let told = match under_way.link().failure() {
        None => return answer,
        Some(BodyFailure::Late) => responses::too_slow(),
        Some(BodyFailure::TooLong) => responses::too_long(),
        Some(BodyFailure::MadeRoom) => responses::made_room(),
        Some(BodyFailure::Malformed) => {
            responses::bad_request("The request body is not framed as HTTP/1.1 has it.")
        }
    };
    told.map(Body::from)
}

/// Checks whom and what a request asks for, and writes it in one way: the host in `Host`, path and query in the target.
fn address(parts: &mut Parts) -> Result<(), AnsweredHere> {
    let refuse = |detail| Err(responses::bad_request(detail).into());
    if parts.method == Method::CONNECT {
        return Err(responses::no_tunnels().into());
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return refuse("There is more than one Host.");
    }
    let is_named = host.is_some() || (parts.version == Version::HTTP_2 && parts.uri.authority().is_some());
    if !is_named && parts.version != Version::HTTP_10 {
        return refuse("There is no Host, which HTTP/1.1 requires, nor an :authority, as HTTP/2 has it.");
    }
    if parts.version == Version::HTTP_2 {
        in_the_words_of_http_1(&mut parts.headers)?;
    }
    match (parts.uri.scheme(), parts.uri.authority()) {
        (None, None) => {}
        // The target's host counts, whatever `Host` says: RFC 9112.
        (Some(scheme), Some(authority))
            if [Scheme::HTTP, Scheme::HTTPS].contains(scheme) && !authority.as_str().contains('@') =>
        {
            let Ok(host) = HeaderValue::from_str(authority.as_str()) else {
                return refuse("The host in the request target is not one.");
            };
            parts.headers.insert(HOST, host);
        }
        _ => return refuse("The request target is neither a path nor an http address."),
    }
    match legible(parts.uri.path()) {
        Ok(()) => {}
        Err(Illegible::ControlCharacter) => {
            return refuse("The path of this request has a control character in it, percent-encoded.");
        }
        Err(Illegible::NotUtf8) => {
            return refuse("The path of this request is not UTF-8 once it is percent-decoded.");
        }
    }
    if parts.uri.path() == "*" && parts.method != Method::OPTIONS {
        return refuse("The request target * is for OPTIONS alone.");
    }
    Ok(())
}

/// What HTTP/2 may write otherwise, and what its library lets pass that would be ambiguous in HTTP/1.1.
fn in_the_words_of_http_1(headers: &mut HeaderMap) -> Result<(), AnsweredHere> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let is_number =
        |length: &HeaderValue| !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit);
    if lengths.next().is_some_and(|length| !is_number(length)) || lengths.next().is_some() {
        return Err(responses::bad_request("The Content-Length is not one plain number.").into());
    }
    // RFC 9113, section 8.2.3: cookies may come apart, and belong into one line.
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1 {
        // Values joined with values are a value.
        if let Ok(cookie) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
            headers.insert(COOKIE, cookie);
        }
    }
    Ok(())
}
