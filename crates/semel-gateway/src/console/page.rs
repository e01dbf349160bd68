//! What all pages have around them.

use super::visitor::Visitor;
use super::{assets, moment::Moment};
use crate::identity::Role;
use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;

/// What stands around a page's own part.
pub(super) struct Frame {
    pub(super) title: String,
    /// Which of the screens it is.
    pub(super) screen: &'static str,
    pub(super) who: Option<Who>,
    pub(super) form_token: String,
    pub(super) assets: String,
    /// Since when the page is out of date; nothing can be done on it then.
    pub(super) stale: Option<Moment>,
}

pub(super) struct Who {
    pub(super) name: String,
    pub(super) role: &'static str,
    pub(super) can_sign_out: bool,
}

impl Frame {
    pub(super) fn new(visitor: &Visitor, screen: &'static str, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            screen,
            who: Some(Who {
                name: crate::escape::escape(&visitor.identity.name),
                role: visitor.identity.role.as_str(),
                can_sign_out: visitor.can_sign_out(),
            }),
            form_token: visitor.form_token.clone(),
            assets: assets::base(),
            stale: None,
        }
    }

    /// For somebody who is not signed in.
    pub(super) fn outside(title: &str) -> Self {
        Self {
            title: title.into(),
            screen: "",
            who: None,
            form_token: String::new(),
            assets: assets::base(),
            stale: None,
        }
    }

    pub(super) fn stale_since(self, since: Option<Moment>) -> Self {
        Self { stale: since, ..self }
    }

    /// Whether this user can do what the role allows, on what this page shows.
    pub(super) fn may(&self, visitor: &Visitor, role: Role) -> bool {
        self.stale.is_none() && visitor.may(role)
    }
}

/// A page that only says something.
#[derive(Template)]
#[template(path = "console/message.html")]
struct Message<'a> {
    frame: Frame,
    text: &'a str,
    link: Option<(&'a str, &'a str)>,
}

/// Sends a page.
pub(super) fn html(page: &impl Template) -> Response {
    with_status(StatusCode::OK, page)
}

pub(super) fn with_status(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "console: a page cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Says why not, to somebody who may not be signed in.
pub(super) fn refused(status: StatusCode, text: &str) -> Response {
    let title = match status {
        StatusCode::FORBIDDEN => "Refused",
        StatusCode::SERVICE_UNAVAILABLE => "Unavailable",
        StatusCode::NOT_FOUND => "Not found",
        _ => "Not possible",
    };
    let link = Some(("/console", "To the overview"));
    with_status(status, &Message { frame: Frame::outside(title), text, link })
}

/// The same, inside of the console.
pub(super) fn told(frame: Frame, status: StatusCode, text: &str, link: Option<(&str, &str)>) -> Response {
    with_status(status, &Message { frame, text, link })
}

/// Another page, by a GET.
pub(super) fn see(target: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response()
}
