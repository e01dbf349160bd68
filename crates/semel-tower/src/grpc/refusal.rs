//! Refusals as gRPC clients read them: HTTP 200 with everything in the head, and details that their libraries know
//! (`google.rpc.ErrorInfo`, `google.rpc.RetryInfo`).

use super::GRPC;
use crate::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use semel::headers::{GRPC_MESSAGE as MESSAGE, GRPC_STATUS as STATUS, GRPC_STATUS_DETAILS as DETAILS};
use semel::problem::{GrpcStatus, PlainProblem, Problem};
use semel::protobuf::Message;
use std::fmt::Write as _;
use std::time::Duration;

/// When a client's library is to send the call again by itself; below zero: not at all.
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Whose reasons they are.
const DOMAIN: &str = "semel";

/// The longest time that a client is asked to wait: longer than any of them lives, and a number that all of them can read.
const LONGEST: u64 = 24 * 60 * 60;

/// A refusal, in gRPC's words.
struct Refusal {
    status: GrpcStatus,
    message: String,
    /// A word for programs.
    reason: String,
    metadata: Vec<(&'static str, String)>,
    retryable: bool,
    retry_after: Option<Duration>,
}

/// Makes of a refusal, which its [`Problem`] or [`PlainProblem`] is an extension of, one that gRPC clients understand: HTTP 200, and all
/// of it in the head. Whether it is one; then it has no body any more, and the caller has to empty it.
///
/// ```
/// use semel::problem::{Code, DocsBase, Problem, Profile};
///
/// let problem = Problem::new(Code::KeyMissing, Profile::Ietf, "There is no key.");
/// let mut response = problem.clone().into_response(&DocsBase::default());
/// response.extensions_mut().insert(problem);
/// assert!(semel_tower::grpc::refuse(&mut response));
/// assert_eq!((response.status().as_u16(), &response.headers()["grpc-status"]), (200, &"3".parse().unwrap()));
/// ```
pub fn refuse<B>(response: &mut Response<B>) -> bool {
    let extensions = response.extensions_mut();
    let refusal = match (extensions.remove::<Problem>(), extensions.remove::<PlainProblem>()) {
        (Some(problem), _) => Refusal::coded(problem),
        (None, Some(problem)) => Refusal::plain(&problem),
        (None, None) => return false,
    };
    *response.status_mut() = StatusCode::OK;
    refusal.put_into(response.headers_mut());
    true
}

/// The same of an answer of the layer's, with its body.
pub(crate) fn refuse_call(response: &mut Response<Body>) {
    if refuse(response) {
        *response.body_mut() = Body::empty();
    }
}

impl Refusal {
    fn coded(problem: Problem) -> Self {
        let mut metadata = vec![
            ("retryable", problem.retryable.to_string()),
            ("safe_new_key", problem.safe_new_key.to_string()),
        ];
        if let Some(id) = problem.operation_id {
            metadata.push(("operation_id", id.to_string()));
        }
        if let Some(state) = problem.operation_state {
            metadata.push(("operation_state", state.as_str().to_owned()));
        }
        if let Some(resource) = &problem.resource {
            metadata.push(("resource", format!("{}/{}", resource.kind, resource.id)));
        }
        Self {
            status: problem.grpc_status(),
            reason: problem.code.as_str().to_ascii_uppercase(),
            message: problem.detail,
            metadata,
            retryable: problem.retryable,
            retry_after: problem.retry_after,
        }
    }

    fn plain(problem: &PlainProblem) -> Self {
        let reason = problem.status.canonical_reason().unwrap_or("Refused");
        Self {
            status: problem.grpc_status(),
            message: problem.detail.to_owned(),
            reason: reason.to_ascii_uppercase().replace([' ', '-'], "_"),
            metadata: vec![("retryable", problem.retryable.to_string())],
            retryable: problem.retryable,
            retry_after: None,
        }
    }

    fn put_into(self, headers: &mut HeaderMap) {
        // What the head says of it already knows more: a service may have said when to come back.
        let told = headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
        let wait = told.map(Duration::from_secs).or(self.retry_after).filter(|_| self.retryable);
        let wait = wait.map(|wait| wait.min(Duration::from_secs(LONGEST)));
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_TYPE, GRPC);
        headers.insert(STATUS, HeaderValue::from(self.status.number()));
        let texts = [
            (MESSAGE, percent_encoded(&self.message)),
            (DETAILS, STANDARD_NO_PAD.encode(self.details(wait))),
        ];
        for (name, text) in texts {
            // Visible characters and spaces are a value.
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
        match wait {
            Some(wait) => {
                let milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                headers.insert(PUSHBACK, HeaderValue::from(milliseconds));
            }
            None if !self.retryable => {
                headers.insert(PUSHBACK, HeaderValue::from_static("-1"));
            }
            None => {}
        }
    }

    /// A `google.rpc.Status`.
    fn details(&self, wait: Option<Duration>) -> Vec<u8> {
        let mut status = Message::new();
        status.number(1, self.status.number().into());
        status.text(2, &self.message);
        add_detail(&mut status, "google.rpc.ErrorInfo", |info| {
            info.text(1, &self.reason);
            info.text(2, DOMAIN);
            for (name, value) in &self.metadata {
                info.message(3, |entry| {
                    entry.text(1, name);
                    entry.text(2, value);
                });
            }
        });
        if let Some(wait) = wait {
            add_detail(&mut status, "google.rpc.RetryInfo", |info| {
                info.message(1, |delay| {
                    delay.number(1, wait.as_secs());
                    delay.number(2, wait.subsec_nanos().into());
                });
            });
        }
        status.into_bytes()
    }
}

/// Adds a `google.protobuf.Any`.
fn add_detail(status: &mut Message, kind: &str, write: impl FnOnce(&mut Message)) {
    let mut detail = Message::new();
    write(&mut detail);
    status.message(3, |any| {
        any.text(1, &format!("type.googleapis.com/{kind}"));
        any.bytes(2, &detail.into_bytes());
    });
}

/// As `grpc-message` has it: whatever is not visible ASCII or a space, and the percent sign, by its bytes.
fn percent_encoded(message: &str) -> String {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::OperationId;
    use semel::problem::{Code, DocsBase, Profile, plain};

    fn refused(problem: Problem) -> HeaderMap {
        let mut response = problem.clone().into_response(&DocsBase::default());
        response.extensions_mut().insert(problem);
        assert!(refuse(&mut response));
        assert_eq!(response.status(), 200);
        response.headers().clone()
    }

    fn details(headers: &HeaderMap) -> String {
        let bytes = STANDARD_NO_PAD.decode(&headers[DETAILS]).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn every_code_is_refused_with_its_status_and_its_reason() {
        for code in Code::ALL {
            let headers = refused(Problem::new(code, Profile::Ietf, "What to do."));
            assert_eq!(headers[STATUS], code.grpc_status().number().to_string(), "{code}");
            assert_eq!(headers[MESSAGE], "What to do.");
            assert_eq!(headers[CONTENT_TYPE], "application/grpc");
            let details = details(&headers);
            let reason = code.as_str().to_ascii_uppercase();
            assert!((3..=63).contains(&reason.len()), "what ErrorInfo allows: {reason}");
            for part in [&reason, "google.rpc.ErrorInfo", "semel", "safe_new_key"] {
                assert!(details.contains(part), "{code}: {part}");
            }
            let pushback = headers.get(PUSHBACK).map(|wait| wait.to_str().unwrap());
            assert_eq!(pushback == Some("-1"), !code.retryable(), "{code}");
            assert_eq!(details.contains("RetryInfo"), headers.contains_key(RETRY_AFTER), "{code}");
        }
    }

    #[test]
    fn a_refusal_says_which_operation_and_when_to_come_back() {
        let id = OperationId::from_u128(7);
        let problem = Problem::new(Code::InProgress, Profile::Stripe, "Still at 50 % – wait.")
            .with_operation_id(id)
            .with_retry_after(Duration::from_secs(3));
        let headers = refused(problem);
        assert_eq!(headers[MESSAGE], "Still at 50 %25 %E2%80%93 wait.");
        assert_eq!(headers[PUSHBACK], "3000");
        let details = details(&headers);
        for part in ["operation_id", &id.to_string(), "operation_state", "in_progress", "RetryInfo"] {
            assert!(details.contains(part), "{part}");
        }
    }

    #[test]
    fn what_is_not_about_idempotency_is_refused_too() {
        let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, true, "Too busy.");
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        assert!(refuse(&mut response));
        assert_eq!(
            (&response.headers()[STATUS], &response.headers()[PUSHBACK]),
            (&"14".parse().unwrap(), &"1000".parse().unwrap())
        );
        assert!(details(response.headers()).contains("SERVICE_UNAVAILABLE"));
        assert!(!refuse(&mut Response::new(())), "an answer of the service's is not touched");
    }
}
