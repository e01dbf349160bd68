//! The responses that the layer makes: replays and problem documents.

use crate::body::Body;
use crate::body::NoRoom;
use crate::cross_origin::{Origin, is_internal};
use crate::headers::{
    self, IDEMPOTENT_REPLAYED, KeptHeaders, OPERATION_ID, TRAILER_PREFIX, is_for_origin, operation_id_value,
};
use crate::identification;
use crate::protection::Protection;
use crate::replay_check::ReplayVerdict;
use crate::state::LayerState;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use semel::catch_panic::catch_panic;
use semel::headers::ORIGINAL_REQUEST_ID;
use semel::problem::{Code, PlainProblem, Problem, Profile};
use semel::{BeginError, Decision, InFlight, OperationId, Record, State, StoreError, StoredResponse, Ticket};
use std::time::Duration;

/// `Retry-After` when the tenant could not be determined.
const RETRY_SCOPE: Duration = Duration::from_secs(1);

/// A decision: to execute, or an answer.
pub(crate) enum Decided {
    Execute(Ticket),
    Answer(Response<Body>),
}

impl LayerState {
    /// What comes of a decision about a request with these `headers`.
    pub(crate) fn decided(
        &self,
        decision: Decision,
        protection: &Protection,
        headers: &HeaderMap,
    ) -> Decided {
        let policy = &protection.policy;
        Decided::Answer(match decision {
            Decision::Execute(ticket) => return Decided::Execute(ticket),
            Decision::Replay(record) => self.replay_if_there_is_room(*record, &Origin::of(headers), &protection.kept_headers),
            Decision::NotStored(record) => self.not_stored(*record),
            Decision::InProgress { operation_id, retry_after } => {
                self.in_progress(operation_id, retry_after, policy.in_flight)
            }
            Decision::Unknown { operation_id, retry_after } => {
                let answer = self.unknown(operation_id).with_retry_after(retry_after);
                self.pending_or_problem(answer, policy.in_flight)
            }
            Decision::KeyReused { operation_id, state, expires } => self.problem(
                Problem::new(
                    Code::KeyReused,
                    self.profile,
                    "This key was already used for a different request. Send the original request unchanged, or \
                     use a new key for a new operation.",
                )
                .with_operation_id(operation_id)
                .with_state(state)
                .with_expiry(expires),
            ),
            Decision::QuotaExceeded { retry_after } => self.problem(
                Problem::new(
                    Code::QuotaExceeded,
                    self.profile,
                    "Quota for new idempotency keys exceeded; nothing was executed. Send the same request again \
                     later, with the same key. Retries of earlier requests are not affected.",
                )
                .with_retry_after(retry_after),
            ),
            Decision::Expired { operation_id, expires } => self.problem(
                Problem::new(
                    Code::KeyExpired,
                    self.profile,
                    "This key was used by an operation whose retention window is over. Look up the result of that \
                     operation; use a new key for a new operation.",
                )
                .with_operation_id(operation_id)
                .with_expiry(expires),
            ),
            Decision::CannotTell { operation_id } => {
                let mut problem = self.unknown(operation_id);
                problem.detail = "This instance cannot compare this request with the first one under this key, \
                                  because it does not know the fingerprint recipe. Send the same request again \
                                  later."
                    .into();
                self.problem(problem)
            }
            // `Decision` is non-exhaustive. A decision that this version does not know executes nothing.
            _ => self.store_unavailable(&"the engine returned a decision that this layer does not know"),
        })
    }

    /// A replay can be had later as well.
    fn replay_if_there_is_room(
        &self,
        mut record: Record,
        origin: &Origin,
        asked_for: &KeptHeaders,
    ) -> Response<Body> {
        if let Some(StoredResponse { body: semel::Body::Stored(bytes), .. }) = &mut record.response {
            match self.body_budget.keep(std::mem::take(bytes)) {
                Ok(kept) => *bytes = kept,
                Err(NoRoom) => {
                    return self.no_room(
                        "Not enough memory to send the stored response at the moment. Send the same request again \
                         later.",
                    );
                }
            }
        }
        self.replay(record, origin, asked_for)
    }

    /// `asked_for`: what the policy keeps whichever page asks.
    pub(crate) fn replay(&self, record: Record, origin: &Origin, asked_for: &KeptHeaders) -> Response<Body> {
        let (operation_id, expires) = (record.operation_id, record.times.expires);
        match record.response {
            Some(stored) => {
                let is_for_page = origin.is_of(&stored.headers);
                let goes = |name: &HeaderName| is_for_page || !is_for_origin(name) || asked_for.names(name);
                let mut response = self.stored(stored, operation_id, goes);
                let headers = response.headers_mut();
                headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
                identification::add_expiry(headers, expires);
                self.identify_replay(headers, operation_id);
                response
            }
            None => self.not_stored(record),
        }
    }

    /// The answer that the handler's transaction stored, for the request that executed it.
    pub(crate) fn first_stored(&self, stored: StoredResponse, operation_id: OperationId) -> Response<Body> {
        // Read back after a lost commit, it has what is kept for replays.
        self.stored(stored, operation_id, |name| *name != ORIGINAL_REQUEST_ID)
    }

    /// A stored answer as it went out the first time, with the fields that go; without its body if that was not stored.
    fn stored(
        &self,
        stored: StoredResponse,
        operation_id: OperationId,
        goes: impl Fn(&HeaderName) -> bool,
    ) -> Response<Body> {
        let bytes = match stored.body {
            semel::Body::Stored(bytes) => bytes,
            // It could not be decrypted, which was logged.
            semel::Body::Sealed(_) => return self.problem(self.damaged()),
            _ => return self.problem(self.answer_is_gone(operation_id)),
        };
        let Ok(status) = StatusCode::from_u16(stored.status) else {
            return self.problem(self.damaged());
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        let mut trailers: Option<HeaderMap> = None;
        for (name, value) in stored.headers {
            if is_internal(&name) {
                continue;
            }
            let (trailer, name) = match name.strip_prefix(TRAILER_PREFIX) {
                Some(name) => (true, HeaderName::try_from(name)),
                None => (false, HeaderName::try_from(name)),
            };
            let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value)) else {
                return self.problem(self.damaged());
            };
            if !goes(&name) {
                continue;
            }
            let fields = if trailer { trailers.get_or_insert_default() } else { response.headers_mut() };
            fields.append(name, value);
        }
        *response.body_mut() = Body::trailed(bytes, trailers);
        response.headers_mut().insert(OPERATION_ID, operation_id_value(operation_id));
        response
    }

    fn not_stored(&self, record: Record) -> Response<Body> {
        let mut problem = self
            .answer_is_gone(record.operation_id)
            .with_state(record.state)
            .with_expiry(record.times.expires);
        if let Some(resource) = record.resource {
            problem = problem.with_resource(resource);
        }
        let mut original = None;
        if let Some(stored) = record.response {
            original = identification::id_kept(&stored.headers);
            problem = problem.with_upstream_status(stored.status);
        }
        let mut response = self.problem(problem);
        if let Some(original) = original {
            response.headers_mut().insert(ORIGINAL_REQUEST_ID, original);
        }
        self.identify_replay(response.headers_mut(), record.operation_id);
        response
    }

    fn answer_is_gone(&self, operation_id: OperationId) -> Problem {
        Problem::new(
            Code::ResponseNotStored,
            self.profile,
            "The operation has ended and will not be executed again, but its response was not stored. Fetch the \
             resource instead.",
        )
        .with_operation_id(operation_id)
    }

    fn in_progress(
        &self,
        operation_id: Option<OperationId>,
        retry_after: Duration,
        in_flight: InFlight,
    ) -> Response<Body> {
        let mut problem = Problem::new(
            Code::InProgress,
            self.profile,
            "The first request with this key is still in progress. Send the same request again later to get its \
             answer.",
        )
        .with_retry_after(retry_after);
        if let Some(operation_id) = operation_id {
            problem = problem.with_operation_id(operation_id);
        }
        self.pending_or_problem(problem, in_flight)
    }

    /// The policy `accepted` answers 202 to what would be a 409: not an error, but come back.
    fn pending_or_problem(&self, problem: Problem, in_flight: InFlight) -> Response<Body> {
        if in_flight != InFlight::Accepted {
            return self.problem(problem);
        }
        let mut accepted = problem;
        accepted.status = StatusCode::ACCEPTED;
        let mut response = self.problem(accepted);
        if self.profile == Profile::Ietf {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        response
    }

    fn unknown(&self, operation_id: OperationId) -> Problem {
        Problem::new(
            Code::OutcomeUnknown,
            self.profile,
            "It is not known whether the operation was executed. While that is so, it will not be executed again. \
             Send the same request again later to learn the outcome; do not use a new key.",
        )
        .with_operation_id(operation_id)
    }

    /// For the request whose own execution ended in doubt: with what the service answered, if it did. When to come back, it knows best.
    pub(crate) fn unknown_to_first(
        &self,
        operation_id: OperationId,
        answered: Option<&http::response::Parts>,
    ) -> Response<Body> {
        let mut problem = self.unknown(operation_id).for_first_request();
        if let Some(answered) = answered {
            problem = problem.with_upstream_status(answered.status.as_u16());
        }
        let mut response = self.problem(problem);
        if let Some(wait) = answered.and_then(|answered| headers::retry_after(&answered.headers)) {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        response
    }

    /// For a request that was cut off by the end of the process.
    pub(crate) fn unknown_at_exit(&self) -> Response<Body> {
        let detail = "The process is shutting down, and it is not known whether the operation was executed. Send \
                      the same request again later.";
        self.problem(Problem::new(Code::OutcomeUnknown, self.profile, detail).for_first_request())
    }

    /// For an owner that came too late: what its retries will get.
    pub(crate) fn fenced(
        &self,
        record: Option<Box<Record>>,
        operation_id: OperationId,
        origin: &Origin,
        asked_for: &KeptHeaders,
    ) -> Response<Body> {
        match record {
            Some(record)
                if record.operation_id == operation_id
                    && matches!(record.state, State::Completed | State::FailedReplayable) =>
            {
                self.replay(*record, origin, asked_for)
            }
            _ => self.unknown_to_first(operation_id, None),
        }
    }

    pub(crate) fn begin_error(&self, error: &BeginError) -> Response<Body> {
        match error {
            BeginError::Store(StoreError::Damaged(_)) => {
                tracing::error!(%error, "damaged record");
                self.problem(self.damaged())
            }
            _ => self.store_unavailable(error),
        }
    }

    pub(crate) fn store_unavailable(&self, error: &dyn std::fmt::Display) -> Response<Body> {
        tracing::error!(%error, "store unavailable; nothing was executed");
        self.problem(Problem::new(
            Code::StoreUnavailable,
            self.profile,
            "The idempotency store is unavailable; nothing was executed. Send the same request again later.",
        ))
    }

    fn damaged(&self) -> Problem {
        Problem::new(
            Code::RecordDamaged,
            self.profile,
            "The stored record of this operation is damaged. The request was not executed. Contact the operator \
             of this API.",
        )
    }

    pub(crate) fn key_problem(&self, code: Code, detail: String) -> Response<Body> {
        self.problem(Problem::new(code, self.profile, detail))
    }

    pub(crate) fn scope_unresolved(&self, challenges: Vec<HeaderValue>) -> Response<Body> {
        let detail = "The caller could not be identified, so the key cannot be looked up. Authenticate, and send the \
                      request again with the same key.";
        self.unauthenticated(detail, challenges)
    }

    /// What a caller gets in place of a replay that it may not have; `None` where nothing keeps it from what was decided.
    pub(crate) async fn withheld(
        &self,
        decision: &Decision,
        request: &Parts,
        patience: Duration,
    ) -> Option<Response<Body>> {
        let check = self.replay_check.as_ref()?;
        if !matches!(decision, Decision::Replay(_) | Decision::NotStored(_)) {
            return None;
        }
        let checking = tokio::time::timeout(patience, catch_panic(async { check.check(request).await }));
        match checking.await {
            Ok(Ok(ReplayVerdict::Allowed)) => None,
            Ok(Ok(ReplayVerdict::Refused { challenges })) => Some(self.replay_refused(challenges)),
            Ok(Ok(ReplayVerdict::Undecided)) => Some(self.replay_undecided()),
            Ok(Err(_)) => {
                tracing::error!("the replay check panicked; nothing was replayed");
                Some(self.replay_undecided())
            }
            Err(_) => {
                tracing::error!("the replay check took too long; nothing was replayed");
                Some(self.replay_undecided())
            }
        }
    }

    /// For a caller who may not have the stored answer any more.
    pub(crate) fn replay_refused(&self, challenges: Vec<HeaderValue>) -> Response<Body> {
        let detail = "These credentials are not accepted any more, so the stored response is not sent. Authenticate, and \
                      send the request again with the same key.";
        self.unauthenticated(detail, challenges)
    }

    fn unauthenticated(&self, detail: &'static str, challenges: Vec<HeaderValue>) -> Response<Body> {
        let mut response = self.problem(Problem::new(Code::ScopeUnresolved, self.profile, detail));
        // A 401 has to name a scheme; which one the application wants, only it knows.
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        for (number, challenge) in challenges.into_iter().enumerate() {
            if number == 0 {
                response.headers_mut().remove(WWW_AUTHENTICATE);
            }
            response.headers_mut().append(WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// For a tenant source that cannot answer: the request is not at fault, and can be retried.
    pub(crate) fn scope_undecided(&self) -> Response<Body> {
        self.undecided(
            "The caller cannot be identified at the moment; nothing was executed. Send the same request again \
             later.",
        )
    }

    /// For a replay check that cannot answer.
    pub(crate) fn replay_undecided(&self) -> Response<Body> {
        self.undecided(
            "It cannot be checked at the moment whether these credentials are still accepted, so the stored \
             response is not sent. Send the same request again later.",
        )
    }

    fn undecided(&self, detail: &'static str) -> Response<Body> {
        let mut problem = Problem::new(Code::ScopeUnresolved, self.profile, detail)
            .with_retryable(true)
            .with_retry_after(RETRY_SCOPE);
        problem.status = StatusCode::SERVICE_UNAVAILABLE;
        self.problem(problem)
    }

    pub(crate) fn no_room_for_request(&self) -> Response<Body> {
        self.no_room(
            "Not enough memory for a body of this size at the moment; nothing was executed. Send the same request \
             again later.",
        )
    }

    pub(crate) fn too_large(&self, limit: usize) -> Response<Body> {
        self.problem(Problem::new(
            Code::RequestTooLarge,
            self.profile,
            format!("The request body is larger than the limit of {limit} bytes."),
        ))
    }

    fn problem(&self, problem: Problem) -> Response<Body> {
        let (operation_id, expires) = (problem.operation_id, problem.expires_at);
        semel::trace::note(|noted| noted.problem = Some(problem.code.as_str()));
        let (mut parts, bytes): (_, Bytes) = self.format.problem(&problem, &self.docs).into_parts();
        if let Some(operation_id) = operation_id {
            parts.headers.insert(OPERATION_ID, operation_id_value(operation_id));
        }
        identification::add_expiry(&mut parts.headers, expires);
        // gRPC has words of its own for it.
        parts.extensions.insert(problem);
        Response::from_parts(parts, Body::from(bytes))
    }

    /// Large bodies have used up their memory.
    fn no_room(&self, detail: &'static str) -> Response<Body> {
        let mut response = self.plain(StatusCode::SERVICE_UNAVAILABLE, true, detail);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }

    /// A refusal that is not about idempotency.
    pub(crate) fn plain(&self, status: StatusCode, retryable: bool, detail: &'static str) -> Response<Body> {
        let problem = PlainProblem { status, retryable, detail };
        let mut response = self.format.plain(&problem).map(Body::from);
        response.extensions_mut().insert(problem);
        response
    }
}

#[cfg(test)]
mod tests {
    use semel::key::{KeyError, KeySources};
    use semel::problem::Code;
    use std::fs;

    /// String literals that go over several lines, as one line.
    fn joined(source: &str) -> String {
        source.split("\\\n").map(str::trim_start).collect()
    }

    #[test]
    fn the_pages_of_the_codes_show_what_the_layer_says() {
        let here = env!("CARGO_MANIFEST_DIR");
        let source = joined(include_str!("responses.rs")) + &joined(include_str!("admission.rs"));
        let wanted = format!("requires {}.", KeySources::default().wanted());
        let source = source.replace("requires {}.", &wanted);
        let shown = |code: Code| {
            let page = fs::read_to_string(format!("{here}/../../docs/errors/{code}.md")).unwrap();
            let (_, detail) = page.split_once("\"detail\": \"").unwrap();
            detail.split_once('"').unwrap().0.to_owned()
        };
        // Their details hold numbers, or are the gateway's.
        let others = [Code::KeyInvalid, Code::RequestTooLarge, Code::UpstreamUnreachable];
        for code in Code::ALL.into_iter().filter(|code| !others.contains(code)) {
            assert!(source.contains(&shown(code)), "{code}: {}", shown(code));
        }
        assert_eq!(shown(Code::KeyInvalid), KeyError::TooShort { min: 16 }.to_string());
    }
}
