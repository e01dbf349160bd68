//! What became of an operator's act, as a page.

use super::page::{self, Frame};
use crate::acts::ActError;
use axum::response::Response;
use http::StatusCode;
use semel::StoreError;

/// Why it was not done, with a link to where to look.
pub(super) fn refused(frame: Frame, error: &ActError, link: (&str, &str)) -> Response {
    let status = match error {
        ActError::Forbidden { .. } | ActError::Limited => StatusCode::FORBIDDEN,
        ActError::NoSuchOperation | ActError::NoSuchEvent | ActError::NoOutbox => StatusCode::NOT_FOUND,
        ActError::Invalid(_) | ActError::AttemptMissing { .. } => StatusCode::BAD_REQUEST,
        ActError::Moved { .. } | ActError::NotPolled | ActError::NotDeadLetter(_) | ActError::Reload(_) => {
            StatusCode::CONFLICT
        }
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let text = match error {
        ActError::Unknown(_) => {
            "The store's answer was lost: it may be done, or not. Look before you do anything again."
                .to_owned()
        }
        ActError::Store(StoreError::Damaged(_)) => {
            "A stored record cannot be read. The log says which.".into()
        }
        ActError::Store(_) => "The store is unavailable. Nothing was done.".into(),
        ActError::Reload(error) => format!("The current configuration stays in force: {error}."),
        error => format!("{error} Nothing was done."),
    };
    page::told(frame, status, &crate::escape::escape_lines(&text), Some(link))
}
