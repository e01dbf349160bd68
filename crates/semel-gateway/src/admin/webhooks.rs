//! Takes webhooks in. They bring their own proof of who sends them: a signature instead of the token.

use super::Shared;
use super::problem::AdminProblem;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use std::sync::Arc;

pub(super) async fn receive(
    State(shared): State<Arc<Shared>>,
    Path(source): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(intake) = &shared.admin.webhooks else { return AdminProblem::no_such_path().into_response() };
    let answer = match to_bytes(body, intake.max_body()).await {
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
        Err(_) => intake.too_large(&source),
    };
    answer.into_response().map(Body::from)
}
