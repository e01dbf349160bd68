//! What the provider said for certain, and what no answer of it is.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the provider said for certain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The money has moved.
    Succeeded {
        /// What the provider calls it.
        id: String,
    },
    /// It was refused, and no money has moved.
    Declined {
        /// Why.
        code: String,
    },
}

impl Verdict {
    /// What a receipt of the provider says, whichever way it came.
    pub(crate) fn of_receipt(receipt: &Value) -> Result<Self, NoAnswer> {
        let member = |name: &str| serde_json::from_value(receipt[name].clone()).map_err(NoAnswer::Unreadable);
        match receipt["status"].as_str() {
            Some("succeeded") => Ok(Self::Succeeded { id: member("id")? }),
            Some("declined") => Ok(Self::Declined { code: member("code")? }),
            _ => Err(NoAnswer::Neither),
        }
    }
}

/// The provider said nothing that can be relied on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("the provider did not answer")]
    Silent(#[from] semel_http::Error),
    #[error("the provider's URL is invalid")]
    Url(#[from] semel_http::InvalidEndpoint),
    #[error(transparent)]
    Tls(#[from] semel_http::tls::TlsError),
    #[error("the provider answered {0}")]
    Status(StatusCode),
    #[error("the provider's answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
    #[error("the provider says neither that the money has moved nor that it has not")]
    Neither,
    #[error("the request to the provider cannot be made")]
    Request(#[from] axum::http::Error),
}
