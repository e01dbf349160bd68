//! The admin API's description as OpenAPI 3.1: made of the handlers and of the documents that they read and write.

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use semel::problem::{Code, DocsBase, Format};
use serde_json::json;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoParams, IntoResponses, Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use super::Shared;
use super::problem::ProblemDocument;
use super::schemas::text;
use std::sync::Arc;

/// Semel's admin API.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Semel's admin API",
        description = "Operations, the outbox, health and metrics of a gateway or a worker, for operators, probes and \
                       Prometheus. It has its own listen address. Without a configured token it is read-only and serves \
                       only requests from the same machine.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "identities", description = "Who asks"),
        (name = "operations", description = "Operations: list and inspect them, settle unknown outcomes"),
        (name = "audit", description = "Who did what"),
        (name = "outbox", description = "Events that are not published yet"),
        (name = "webhooks", description = "Evidence about operations, sent by providers"),
        (name = "metrics", description = "Metrics and open operations"),
        (name = "probes", description = "Health and readiness"),
    ),
    modifiers(&Token)
)]
struct Description;

struct Token;

impl Modify for Token {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The token of [admin], or of an [[admin.user]], in the configuration"))
            .build();
        let components = description.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(token));
    }
}

/// A router whose routes are described from here on.
pub(super) fn described() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::with_openapi(Description::openapi())
}

/// Adds what the types cannot say: which members exclude or need each other.
pub(super) fn add_one_of_constraints(description: &mut utoipa::openapi::OpenApi) {
    let Some(components) = &mut description.components else { return };
    let some = || ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    let absent = || ObjectBuilder::new().schema_type(SchemaType::Type(Type::Null));
    let outcome = |name: &str| text().enum_values(Some([name]));
    let attempt = || ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    let of_one_attempt =
        |name| some().property("outcome", outcome(name)).property("attempt", attempt()).required("attempt");
    let responses = vec![some().property("body", absent()), some().property("body_base64", absent())];
    let resolutions = vec![
        some().property("outcome", outcome("completed")),
        of_one_attempt("failed"),
        of_one_attempt("not_executed").property("response", absent()).property("resource", absent()),
    ];
    let of_many = vec![
        some().property("outcome", text().enum_values(Some(["completed", "failed"]))),
        some()
            .property("outcome", outcome("not_executed"))
            .property("response", absent())
            .property("resource", absent()),
    ];
    let constrained = [("Response", responses), ("Resolution", resolutions), ("ResolutionOfMany", of_many)];
    for (name, alternatives) in constrained {
        let Some(document) = components.schemas.remove(name) else { continue };
        let either = alternatives.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
        let both = AllOfBuilder::new().item(document).item(Schema::AnyOf(either.build())).build();
        components.schemas.insert(name.into(), Schema::from(both).into());
    }
}

/// Adds how refusals look that the gateway sends to clients, who are no clients of this API: by the profile in force.
pub(super) fn add_refusals(description: &mut utoipa::openapi::OpenApi, format: &Format, docs: &DocsBase) {
    let detail = "This key was already used for a different request.";
    let example = format.example(Code::KeyReused, detail, docs);
    let refusals = json!({
        "profile": format.name(),
        "based_on": format.profile().as_str(),
        "content_type": String::from_utf8_lossy(format.content_type().as_bytes()).into_owned(),
        "example": String::from_utf8_lossy(&example).into_owned(),
    });
    let refusals = ExtensionsBuilder::new().add("x-semel-refusals", refusals).build();
    description.extensions.get_or_insert_default().merge(refusals);
}

/// The description as it goes out.
#[derive(Clone)]
pub(super) struct Written(Bytes);

impl Written {
    pub(super) fn of(description: &utoipa::openapi::OpenApi) -> Self {
        // Texts, numbers and flags, written to memory: nothing here can fail.
        Self(serde_json::to_vec(description).map(Bytes::from).unwrap_or_default())
    }
}

/// This description. It says nothing of anybody, and so needs no token.
#[utoipa::path(
    get, path = "/v1/openapi.json", operation_id = "openapi", tag = "probes",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)),
    security(())
)]
pub(super) async fn document(Extension(Written(text)): Extension<Written>) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

/// The caller is not authenticated, or lacks the role.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes answers; never constructed")]
pub(super) enum Guarded {
    /// The token is missing, or another one.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(ProblemDocument),
    /// Without a configured token: not from here, or not this.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(ProblemDocument),
}

/// The store failed.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes answers; never constructed")]
pub(super) enum StoreFailed {
    /// What is stored cannot be what was written.
    #[response(status = 500, content_type = "application/problem+json")]
    Damaged(ProblemDocument),
    /// The store did not answer.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(ProblemDocument),
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes a path; never constructed")]
pub(super) struct AboutOperation {
    /// The operation's id: see `Semel-Operation-Id`.
    #[param(format = "uuid")]
    id: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes a path; never constructed")]
pub(super) struct AboutEvent {
    /// The event's id: the message id that receivers see.
    #[param(format = "uuid")]
    id: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{Admin, routes};
    use crate::metrics::Metrics;
    use semel::problem::Profile;
    use semel::{Engine, MemoryStore};
    use std::collections::HashSet;

    #[tokio::test]
    async fn every_route_is_described_under_a_name_of_its_own() {
        let admin = Admin::new(Engine::new(MemoryStore::new()), Arc::new(Metrics::new([])));
        let snapshot = admin.snapshot();
        let (_, mut described) =
            routes(&Arc::new(Shared { acts: admin.acts(), admin, snapshot })).split_for_parts();
        add_one_of_constraints(&mut described);
        add_refusals(&mut described, &Format::of(Profile::Stripe), &DocsBase::default());
        let document: serde_json::Value = serde_json::from_slice(&Written::of(&described).0).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        let refusals = &document["x-semel-refusals"];
        assert_eq!(
            (&refusals["profile"], &refusals["content_type"]),
            (&json!("stripe"), &json!("application/json"))
        );
        assert!(refusals["example"].as_str().unwrap().starts_with("{\"error\":"), "{refusals}");
        let paths = document["paths"].as_object().unwrap();
        assert_eq!(paths.len(), 21);
        let mut names = HashSet::new();
        for (path, methods) in paths {
            for (method, described) in methods.as_object().unwrap() {
                assert!(names.insert(described["operationId"].as_str().unwrap().to_owned()), "{path}");
                assert!(described["summary"].is_string() && described["security"].is_array(), "{path}");
                let answers = described["responses"].as_object().unwrap();
                let guarded = described["security"][0].get("token").is_some();
                assert_eq!(
                    answers.contains_key("401"),
                    guarded || path.starts_with("/v1/webhooks") || path == "/metrics"
                );
                let says_it_all =
                    ["requeue", "reload", "accept", "poll"].iter().any(|end| path.ends_with(end));
                assert_eq!(described.get("requestBody").is_some(), method == "post" && !says_it_all);
            }
        }
        let excluded = &document["components"]["schemas"]["Response"]["allOf"][1]["anyOf"];
        assert_eq!(excluded[1]["properties"]["body_base64"]["type"], "null", "{document:#}");
    }
}
