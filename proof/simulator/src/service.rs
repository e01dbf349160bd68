//! The service behind the gateways. It protects itself by nothing: whatever reaches it is carried out.

use crate::book::{Charged, Order};
use crate::fault::Fault;
use crate::network::{About, Broken, Host, NoAnswer, Way};
use crate::provider::{self, Said, declined, paid};
use crate::rules::Rule;
use crate::world::World;
use bytes::Bytes;
use http::header::SET_COOKIE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use semel::{Body, StoredResponse};
use std::sync::Arc;
use std::time::Duration;

/// How long it waits for the provider.
const PATIENCE: Duration = Duration::from_secs(6);

/// Serves one request.
pub(crate) async fn serve(world: Arc<World>, order: Order, rule: Rule) -> Result<Response<Bytes>, Broken> {
    let life = world.service();
    let serving = async {
        // Whoever was promised that an attempt does nothing any more was promised it by the service too.
        if world.book.pages().is_sealed(&order) {
            world.note_nothing(&order);
            return nothing_done();
        }
        world.note_start(&order);
        if world.faults.strikes(Fault::ServiceNothing) {
            world.note_nothing(&order);
            return nothing_done();
        }
        if world.faults.strikes(Fault::ServiceReleases) {
            world.note_nothing(&order);
            return come_again();
        }
        let charging = provider::charge(Arc::clone(&world), order.clone(), rule);
        let way = Way::new(Host::Service, Host::Provider, About::Number(order.number));
        let said = world.network.ask(way, PATIENCE, charging).await;
        match said {
            Ok(Said::Done(Charged::Done)) => answer(paid(order.id, order.tenant, "service")),
            Ok(Said::Done(Charged::Declined)) => answer(declined(order.id, order.tenant, "service")),
            Ok(Said::Done(Charged::Sealed)) | Err(NoAnswer::NotSent) => {
                world.note_nothing(&order);
                nothing_done()
            }
            Ok(Said::Error) | Err(NoAnswer::Silence) => {
                plain(StatusCode::GATEWAY_TIMEOUT, r#"{"code":"provider_silent"}"#)
            }
        }
    };
    life.during(serving).await.ok_or(Broken)
}

/// Nothing was done, and another attempt may try.
pub(crate) fn nothing_done() -> Response<Bytes> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, r#"{"code":"nothing_done"}"#);
    response.headers_mut().insert("semel-outcome", HeaderValue::from_static("retryable"));
    response
}

pub(crate) fn come_again() -> Response<Bytes> {
    plain(StatusCode::TOO_MANY_REQUESTS, r#"{"code":"come_again"}"#)
}

pub(crate) fn answer(stored: StoredResponse) -> Response<Bytes> {
    let body = if let Body::Stored(bytes) = stored.body { bytes } else { Bytes::new() };
    let mut response = Response::new(body);
    for (name, value) in stored.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_maybe_shared(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    // For whoever is answered now, and nobody else.
    response.headers_mut().insert(SET_COOKIE, HeaderValue::from_static("session=of-one-caller"));
    *response.status_mut() = StatusCode::from_u16(stored.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

pub(crate) fn plain(status: StatusCode, body: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = status;
    response
}
