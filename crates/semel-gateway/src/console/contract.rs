//! What clients are promised, and the configuration in force.

use super::moment::Moment;
use super::page::{self, Frame};
use super::strangers::harmless;
use super::visitor::Visitor;
use super::{Console, acted};
use crate::identity::Role;
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "console/contract.html")]
struct ContractScreen {
    frame: Frame,
    document: String,
}

#[derive(Template)]
#[template(path = "console/settings.html")]
struct SettingsScreen {
    frame: Frame,
    config: String,
    /// When it was reloaded last, and what that changed.
    reloaded: Option<(Moment, Vec<String>)>,
    can_reload: bool,
}

#[derive(Template)]
#[template(path = "console/keys.html")]
struct Keys {
    frame: Frame,
}

/// `GET /console/contract`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let frame = Frame::new(&visitor, "contract", "Contract");
    let Some(contract) = &console.settings.contract else {
        return page::told(
            frame,
            StatusCode::NOT_FOUND,
            "This process serves no clients: there is no contract.",
            None,
        );
    };
    let document = serde_json::from_slice(&contract.json()).map(harmless).unwrap_or_default();
    page::html(&ContractScreen {
        frame,
        document: serde_json::to_string_pretty(&document).unwrap_or_default(),
    })
}

/// `GET /console/settings`.
pub(super) async fn settings(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let frame = Frame::new(&visitor, "settings", "Settings");
    if visitor.identity.tenants.is_limited() {
        let text = "Settings are about all tenants; your access is limited to some.";
        return page::told(frame, StatusCode::FORBIDDEN, text, None);
    }
    let can_reload = frame.may(&visitor, Role::Admin);
    let config = crate::escape::escape_lines(&console.settings.shown_config);
    let now = jiff::Timestamp::now().to_string();
    let reloaded = console.settings.replaced.as_ref().map(|replaced| {
        let lines = replaced.difference(&console.settings.shown_config);
        let lines = lines.iter().map(|line| crate::escape::escape(line)).collect();
        (Moment::new(&replaced.at(), &now), lines)
    });
    page::html(&SettingsScreen { frame, config, reloaded, can_reload })
}

/// `POST /console/reload`.
pub(super) async fn reload(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    match console.settings.acts.reload(&visitor.operator()).await {
        Ok(_) => page::see("/console/settings"),
        Err(error) => {
            let frame = Frame::new(&visitor, "settings", "Reload");
            acted::refused(frame, &error, ("/console/settings", "To the settings"))
        }
    }
}

/// `GET /console/keys`.
pub(super) async fn keys(Extension(visitor): Extension<Visitor>) -> Response {
    page::html(&Keys { frame: Frame::new(&visitor, "keys", "Keys") })
}
