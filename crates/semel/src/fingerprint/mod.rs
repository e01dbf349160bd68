//! The hash of what was asked for, and the rules that it is made by.
//!
//! Two requests under one key are the same request if their fingerprints are. A fingerprint is only ever compared with
//! one that was made by the same rules: every record names its [`Recipe`], and the recipe's text is kept in the store, so
//! that a retry of an old request is compared as the old request was, whatever was deployed in between. Where that is
//! not possible the comparison has no result ([`RecipeUnavailable`]), which is not the same as "different".
//!
//! ```
//! use http::{HeaderMap, HeaderValue, Method};
//! use semel::fingerprint::{HttpRequest, Recipe, fingerprint};
//!
//! let recipe = Recipe::builder().ignore("/metadata/trace_id").header("api-version").build()?;
//! let mut headers = HeaderMap::new();
//! headers.insert("content-type", HeaderValue::from_static("application/json"));
//! let request = |body| HttpRequest {
//!     operation: "create_payment",
//!     method: &Method::POST,
//!     path: "/payments",
//!     query: None,
//!     host: None,
//!     headers: &headers,
//!     body,
//! };
//! assert_eq!(
//!     fingerprint(&recipe, None, &request(br#"{"amount": 10.0, "currency": "EUR"}"#))?,
//!     fingerprint(&recipe, None, &request(br#"{"currency":"EUR","amount":10}"#))?,
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod command;
mod credential;
mod form;
mod header;
mod host;
mod media_type;
mod multipart;
mod parts;
mod recipe;
mod request;
mod secret;
mod subject;
#[cfg(test)]
mod tests;
mod version;
mod version_1;
mod version_2;

pub use command::{Command, CommandError, command_fingerprint};
pub use credential::tenant_of_credential;
pub use recipe::{Recipe, RecipeBuilder, RecipeError, RecipeUnavailable};
pub use request::{HttpRequest, JsonBody};
pub use secret::{FingerprintSecret, SecretTooShort};
pub use subject::{RequestSubject, Subject};
pub use version::{fingerprint, fingerprint_of_checked};
