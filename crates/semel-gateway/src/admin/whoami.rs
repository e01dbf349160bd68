//! `GET /v1/whoami`: who the caller is to the admin API.

use super::openapi::Guarded;
use crate::identity::Identity;
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

/// The authenticated user.
#[derive(Serialize, ToSchema)]
#[schema(as = Whoami)]
pub(super) struct WhoamiDocument {
    /// The user's name.
    name: String,
    /// Where the name comes from.
    #[schema(schema_with = super::schemas::sources)]
    source: &'static str,
    /// As histories and the audit name them: `token:oncall`, `proxy:user@example.com`, `loopback`.
    actor: String,
    /// The user's role.
    #[schema(schema_with = super::schemas::roles)]
    role: &'static str,
    /// The tenants whose operations the user may see; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<Vec<String>>,
}

/// Shows the authenticated user.
#[utoipa::path(
    get, path = "/v1/whoami", operation_id = "whoami", tag = "identities",
    responses((status = 200, description = "Who the caller is", body = WhoamiDocument), Guarded),
    security(("token" = []))
)]
pub(super) async fn whoami(Extension(identity): Extension<Identity>) -> Json<WhoamiDocument> {
    Json(WhoamiDocument {
        actor: identity.to_string(),
        source: identity.source.as_str(),
        role: identity.role.as_str(),
        tenants: identity.tenants.spelled(),
        name: identity.name,
    })
}
