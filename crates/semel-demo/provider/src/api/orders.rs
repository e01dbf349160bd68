//! Charging, refunding, and asking what became of it.

use super::answer::{ApiError, Occasion, receipt};
use crate::book::{Placed, Rules};
use crate::connection::Closed;
use crate::entry::Object;
use crate::misbehaviour::{MODE_HEADER, Mode};
use crate::order::{Command, Malformed, Order, check_identity};
use crate::stall::StallPoint;
use crate::state::ProviderState;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::sync::Arc;

type Body = Result<Json<Command>, JsonRejection>;

pub(super) async fn charge(
    State(shared): State<Arc<ProviderState>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    take(shared, Object::Charge, &headers, body).await
}

pub(super) async fn refund(
    State(shared): State<Arc<ProviderState>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    take(shared, Object::Refund, &headers, body).await
}

async fn take(
    shared: Arc<ProviderState>,
    object: Object,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let mode = mode(&shared, headers)?;
    match mode {
        Some(Mode::Reject) => return Err(ApiError::Rejected),
        Some(Mode::DropBefore) => return Ok(Closed.into_response()),
        _ => {}
    }
    let Json(command) = body?;
    let order = Order::read(object, headers, command)?;
    let answer = match mode {
        Some(Mode::StallBefore) => place_late(&shared, order).await,
        Some(Mode::Decline) => place(&shared, order, true).await,
        _ => place(&shared, order, false).await,
    };
    match mode {
        Some(Mode::DropAfter) => Ok(Closed.into_response()),
        Some(Mode::ErrorAfter) => Err(ApiError::FailedOnPurpose),
        Some(Mode::StallAfter) => {
            let length = shared.settings.borrow().stall;
            // A client that goes away takes this future with it, and that ends the stall.
            shared.stalls.begin(StallPoint::After).ok_or(ApiError::TooManyStalls)?.end(length).await;
            answer
        }
        _ => answer,
    }
}

/// What goes wrong this time: as the header says, or else as the dice fall. A request takes its throw in any case, so that a
/// header does not shift what becomes of the others.
fn mode(shared: &ProviderState, headers: &HeaderMap) -> Result<Option<Mode>, ApiError> {
    let drawn = {
        let settings = shared.settings.borrow();
        shared.fates.draw(&settings.misbehave, settings.seed)
    };
    match headers.get(MODE_HEADER).map(|value| value.to_str()) {
        None => Ok(drawn),
        Some(Ok("none")) => Ok(None),
        Some(name) => match name.ok().and_then(Mode::named) {
            Some(mode) => Ok(Some(mode)),
            None => {
                let modes = Mode::ALL.map(Mode::name).join(", ");
                let detail = format!("X-Provider-Mode must be none or one of {modes}");
                Err(Malformed { code: "mode_unknown", detail }.into())
            }
        },
    }
}

async fn place(shared: &ProviderState, order: Order, declines: bool) -> Result<Response, ApiError> {
    let rules = {
        let settings = shared.settings.borrow();
        Rules { deduplicates: settings.deduplicates, declines, notifies: settings.webhook.is_some() }
    };
    match shared.ledger.decide(|book, now| book.place(order, rules, now)).await? {
        Placed::Now(entry) => receipt(&entry, Occasion::First),
        Placed::Before(entry) => receipt(&entry, Occasion::Again),
        Placed::Refused(refusal) => Err(refusal.into()),
    }
}

/// The effect comes late, and it comes even if its client has gone: as with a request that was long on its way.
async fn place_late(shared: &Arc<ProviderState>, order: Order) -> Result<Response, ApiError> {
    let shared = Arc::clone(shared);
    let late = tokio::spawn(async move {
        let length = shared.settings.borrow().stall;
        shared.stalls.begin(StallPoint::Before).ok_or(ApiError::TooManyStalls)?.end(length).await;
        place(&shared, order, false).await
    });
    late.await.unwrap_or_else(|error| Err(ApiError::Broken(error.to_string())))
}

#[derive(Deserialize)]
pub(super) struct AttemptQuery {
    #[serde(default = "first")]
    attempt: u32,
}

fn first() -> u32 {
    1
}

type Identity = Result<Path<String>, PathRejection>;
type Attempt = Result<Query<AttemptQuery>, QueryRejection>;

pub(super) async fn ask_for_charge(
    State(shared): State<Arc<ProviderState>>,
    identity: Identity,
    attempt: Attempt,
) -> Result<Response, ApiError> {
    ask(&shared, Object::Charge, identity, attempt).await
}

pub(super) async fn ask_for_refund(
    State(shared): State<Arc<ProviderState>>,
    identity: Identity,
    attempt: Attempt,
) -> Result<Response, ApiError> {
    ask(&shared, Object::Refund, identity, attempt).await
}

async fn ask(
    shared: &ProviderState,
    object: Object,
    identity: Identity,
    attempt: Attempt,
) -> Result<Response, ApiError> {
    if !shared.settings.borrow().queryable {
        return Err(ApiError::NotSupported);
    }
    let (Path(identity), Query(AttemptQuery { attempt })) = (identity?, attempt?);
    if attempt == 0 {
        return Err(
            Malformed { code: "attempt_invalid", detail: "attempt is a number from 1 up".into() }.into()
        );
    }
    let identity = check_identity(identity.as_bytes())?;
    match shared.ledger.decide(|book, now| book.ask(object, &identity, attempt, now)).await? {
        Some(entry) => receipt(&entry, Occasion::AskedFor),
        None => Err(ApiError::NothingKnown { identity, attempt }),
    }
}
