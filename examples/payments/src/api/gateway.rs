//! The gateway in front, where there is one, and what it calls an operation.

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use semel::OperationId;
use semel_tower::OPERATION_ID;
use std::convert::Infallible;

/// What the gateway calls the operation that a request belongs to, or that it asks about. Nothing without a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct GatewaysName(pub(crate) Option<OperationId>);

/// Keeps it before the layer puts the service's own name in its place. Only where nobody but the gateway reaches the service: it takes
/// out what clients say about this.
pub(crate) async fn keep_name(mut request: Request) -> Request {
    let name = request.headers().get(OPERATION_ID).and_then(|name| name.to_str().ok()?.parse().ok());
    request.extensions_mut().insert(GatewaysName(name));
    request
}

impl<S: Send + Sync> FromRequestParts<S> for GatewaysName {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}
