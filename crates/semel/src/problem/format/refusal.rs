//! What every refusal says, whatever its format.

use super::super::{Code, PlainProblem, Problem, whole_seconds};
use super::moment::rfc_3339;
use crate::Resource;
use http::StatusCode;

/// One refusal, before it is given its form on the wire.
pub(super) struct Refusal<'a> {
    /// `None`: it is not about idempotency.
    pub(super) code: Option<Code>,
    pub(super) status: StatusCode,
    pub(super) title: &'a str,
    pub(super) detail: &'a str,
    pub(super) retryable: bool,
    /// Where the code is explained.
    pub(super) page: &'a str,
    pub(super) operation_id: Option<String>,
    pub(super) operation_state: Option<&'static str>,
    /// `None`: there is no key that it could be about.
    pub(super) safe_new_key: Option<bool>,
    pub(super) expires_at: Option<String>,
    pub(super) retry_after: Option<u64>,
    pub(super) upstream_status: Option<u16>,
    pub(super) resource: Option<&'a Resource>,
}

impl<'a> Refusal<'a> {
    pub(super) fn coded(problem: &'a Problem, status: StatusCode, page: &'a str) -> Self {
        Self {
            code: Some(problem.code),
            status,
            title: problem.code.title(),
            detail: &problem.detail,
            retryable: problem.retryable,
            page,
            operation_id: problem.operation_id.map(|id| id.to_string()),
            operation_state: problem.operation_state.map(crate::State::as_str),
            safe_new_key: Some(problem.safe_new_key),
            expires_at: problem.expires_at.map(rfc_3339),
            retry_after: problem.retry_after.map(whole_seconds),
            upstream_status: problem.upstream_status,
            resource: problem.resource.as_ref(),
        }
    }

    pub(super) fn plain(problem: &'a PlainProblem, status: StatusCode) -> Self {
        Self {
            code: None,
            status,
            title: status.canonical_reason().unwrap_or("Problem"),
            detail: problem.detail,
            retryable: problem.retryable,
            page: "about:blank",
            operation_id: None,
            operation_state: None,
            safe_new_key: None,
            expires_at: None,
            retry_after: None,
            upstream_status: None,
            resource: None,
        }
    }

    /// The code as programs read it; of a refusal without one, its status in words.
    pub(super) fn code_text(&self) -> String {
        match self.code {
            Some(code) => code.as_str().to_owned(),
            None => self.title.to_ascii_lowercase().replace([' ', '-'], "_"),
        }
    }
}
