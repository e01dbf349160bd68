//! Schemas of single values, for what their types cannot say.

use crate::identity::{Role, Source};
use semel::State;
use semel::audit::{AuditAction, AuditResult};
use semel_worker::WebhookResult;
use utoipa::openapi::schema::{AdditionalProperties, AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type};

/// How many items a page may have.
pub(super) const LEAST: usize = 1;
pub(super) const MOST: usize = 1_000;

pub(super) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String))
}

fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

/// The names of the states.
pub(super) fn states() -> Schema {
    text().enum_values(Some(State::ALL.map(State::as_str))).build().into()
}

/// The names of the roles.
pub(super) fn roles() -> Schema {
    text().enum_values(Some(Role::ALL.map(Role::as_str))).build().into()
}

/// Where names come from.
pub(super) fn sources() -> Schema {
    text().enum_values(Some(Source::ALL.map(Source::as_str))).build().into()
}

/// What a parameter may be: as good as absent, if it has no value.
fn asked_for(schema: Schema) -> Schema {
    Schema::AnyOf(AnyOfBuilder::new().item(schema).item(text().max_length(Some(0)).build()).build())
}

/// A state in a query.
pub(super) fn state_asked_for() -> Schema {
    asked_for(states())
}

/// Yes or no in a query.
pub(super) fn flag_asked_for() -> Schema {
    asked_for(ObjectBuilder::new().schema_type(SchemaType::Type(Type::Boolean)).build().into())
}

/// How many, in a query.
pub(super) fn limit_asked_for() -> Schema {
    let limit = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    asked_for(limit.minimum(Some(LEAST)).maximum(Some(MOST)).build().into())
}

/// What the audit is about.
pub(super) fn audit_actions() -> Schema {
    text().enum_values(Some(AuditAction::ALL.map(AuditAction::as_str))).build().into()
}

/// How it ended.
pub(super) fn audit_results() -> Schema {
    text().enum_values(Some(AuditResult::ALL.map(AuditResult::as_str))).build().into()
}

/// An action in a query.
pub(super) fn audit_action_asked_for() -> Schema {
    asked_for(audit_actions())
}

/// A result in a query.
pub(super) fn audit_result_asked_for() -> Schema {
    asked_for(audit_results())
}

/// A moment in a query.
pub(super) fn moment_asked_for() -> Schema {
    const MOMENT: &str = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?Z$";
    asked_for(text().pattern(Some(MOMENT)).build().into())
}

/// A duration in a query.
pub(super) fn duration_asked_for() -> Schema {
    asked_for(text().pattern(Some("^[0-9]{1,6}(ms|s|m|h|d)$")).build().into())
}

/// The order of a listing.
pub(super) fn order_asked_for() -> Schema {
    asked_for(text().enum_values(Some(["newest", "oldest"])).build().into())
}

/// The format of an export.
pub(super) fn export_format_asked_for() -> Schema {
    asked_for(text().enum_values(Some(["csv", "json"])).build().into())
}

/// What may become of a webhook.
pub(super) fn webhook_results() -> Schema {
    text().enum_values(Some(WebhookResult::ALL.map(WebhookResult::as_str))).build().into()
}

/// A name without control characters.
pub(super) fn operator() -> Schema {
    text_or_null().min_length(Some(1)).max_length(Some(100)).pattern(Some(NAME)).build().into()
}

const NAME: &str =
    r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";

/// Standard base64 with padding.
pub(super) fn base64() -> Schema {
    // The bits that pad the last character are zero.
    const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
    text_or_null().pattern(Some(BASE64)).build().into()
}

/// Header fields by name.
pub(super) fn header_fields() -> Schema {
    let value = text().pattern(Some(r"^[\x20-\x7e]*$")).build();
    ObjectBuilder::new()
        .property_names(Some(text().pattern(Some("^(trailer:)?[A-Za-z0-9-]+$")).build()))
        .additional_properties(Some(AdditionalProperties::RefOr(Schema::from(value).into())))
        .description(Some(
            "The header fields, each once; trailers of gRPC calls as `trailer:grpc-status`. Cookies, credentials and hop-by-hop \
             fields are refused.",
        ))
        .build()
        .into()
}
