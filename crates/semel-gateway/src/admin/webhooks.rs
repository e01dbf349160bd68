//! Takes webhooks in. They bring their own proof of who sends them: a signature instead of the token.

use super::Shared;
use super::body::{self, NotRead};
use super::problem::{AdminProblem, ProblemDocument};
use super::resolution::{Outcome, StrictResource, StrictResponse};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// What a provider reports about an operation, named by `operation_id`, or by `tenant`, `operation` and `key`. Unknown members are
/// ignored, and so are events without an operation or an outcome.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what semel-worker reads")]
struct WebhookEvent {
    #[schema(format = "uuid")]
    operation_id: Option<String>,
    tenant: Option<String>,
    operation: Option<String>,
    key: Option<String>,
    /// The attempt that it is about. Default: the first.
    attempt: Option<u32>,
    outcome: Option<Outcome>,
    response: Option<StrictResponse>,
    resource: Option<StrictResource>,
}

/// The result of a webhook.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what semel-worker answers")]
struct WebhookAnswer {
    #[schema(schema_with = super::schemas::webhook_results)]
    result: String,
    /// The operation that it is about, if it was found.
    #[schema(format = "uuid")]
    operation_id: Option<String>,
    /// What was wrong, and what to do.
    detail: Option<String>,
}

/// Receives a webhook, signed as Standard Webhooks specifies.
#[utoipa::path(
    post, path = "/v1/webhooks/{source}", operation_id = "receiveWebhook", tag = "webhooks",
    params(
        ("source" = String, Path, description = "A source from the configuration"),
        ("webhook-id" = String, Header, description = "The message's id"),
        ("webhook-timestamp" = String, Header, description = "When it was sent, in seconds of the Unix epoch"),
        ("webhook-signature" = String, Header, description = "`v1,` and the signature in base64; several are separated by \
                                                              spaces"),
    ),
    request_body = WebhookEvent,
    responses(
        (status = 200, description = "Accepted", body = WebhookAnswer),
        (status = 400, description = "Invalid message", body = WebhookAnswer),
        (status = 401, description = "The signature matches no secret of the source, or the timestamp is too old", body = WebhookAnswer),
        (status = 404, description = "No such operation or source", body = WebhookAnswer),
        (status = 408, description = "The body did not arrive in time", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "The operation is in progress: deliver it again later", body = WebhookAnswer),
        (status = 413, description = "The body is too large", body = WebhookAnswer),
        (status = 503, description = "The store is unavailable: deliver it again later", body = WebhookAnswer),
    ),
    security(())
)]
pub(super) async fn receive(
    State(shared): State<Arc<Shared>>,
    Path(source): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(intake) = &shared.admin.webhooks else { return AdminProblem::no_such_path().into_response() };
    let answer = match body::read(body, intake.max_body()).await {
        // On a task of its own: a sender that hangs up must not leave it half taken in.
        Ok(body) => {
            let intake = Arc::clone(intake);
            let name = source.clone();
            let taking = tokio::spawn(async move { intake.handle(&name, &headers, body).await });
            match taking.await {
                Ok(answer) => answer,
                Err(_) => return http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
        Err(slow @ NotRead::TooSlow) => return AdminProblem::from(slow).into_response(),
        Err(NotRead::TooLong(_)) => intake.too_large(&source),
    };
    answer.into_response().map(Body::from)
}
