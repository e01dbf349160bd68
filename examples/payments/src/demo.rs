//! Handlers that take their time, for demonstrations and tests. Off by default: a client that can hold a handler can hold them
//! all.
//!
//! - `X-Demo-Delay: 1500ms` waits before the transaction.
//! - `X-Provider-Mode: drop-after` is passed on to the provider.
//! - `X-Demo-Hold: name` waits until somebody lets it go with `DELETE /demo/holds/name`. `GET /demo/holds/name` answers once
//!   a handler is held there: "in the middle of the handler" is then a fact and not a guess about time.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::get;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The header that makes a handler slow.
pub const DELAY: &str = "x-demo-delay";
/// The header that holds a handler.
pub const HOLD: &str = "x-demo-hold";

/// The header that is passed on to the provider, which then misbehaves.
pub const PROVIDER_MODE: &str = "x-provider-mode";

/// Nobody is kept for longer, so that a forgotten hold ends by itself.
const LONGEST: Duration = Duration::from_secs(30);

/// The pauses of a service; without any if they are disabled.
#[derive(Clone, Default)]
pub(crate) struct Demo(Option<Arc<Holds>>);

#[derive(Default)]
struct Holds(Mutex<HashMap<String, watch::Sender<Hold>>>);

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Hold {
    #[default]
    Empty,
    Held,
    LetGo,
}

impl Demo {
    pub(crate) fn enabled() -> Self {
        Self(Some(Arc::default()))
    }

    /// Waits as the request asks for.
    pub(crate) async fn pause(&self, headers: &HeaderMap) {
        let Some(holds) = &self.0 else { return };
        if let Some(delay) = headers.get(DELAY).and_then(|value| parse_delay(value.to_str().ok()?)) {
            tokio::time::sleep(delay.min(LONGEST)).await;
        }
        if let Some(name) = headers.get(HOLD).and_then(|value| value.to_str().ok()) {
            let hold = holds.named(name);
            let mut ended = hold.subscribe();
            hold.send_if_modified(|hold| {
                let first = *hold == Hold::Empty;
                if first {
                    *hold = Hold::Held;
                }
                first
            });
            let _forgotten = timeout(LONGEST, ended.wait_for(|hold| *hold == Hold::LetGo)).await;
        }
    }

    /// How the provider is to misbehave for this request.
    pub(crate) fn provider_mode(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        self.0.as_ref().and_then(|_| headers.get(PROVIDER_MODE).cloned())
    }

    /// The routes that watch and end holds; none if pauses are disabled.
    pub(crate) fn routes(&self) -> Router {
        let Some(holds) = &self.0 else {
            return Router::new();
        };
        Router::new().route("/demo/holds/{name}", get(held).delete(let_go)).with_state(Arc::clone(holds))
    }
}

impl Holds {
    fn named(&self, name: &str) -> watch::Sender<Hold> {
        let mut holds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        holds.entry(name.to_owned()).or_default().clone()
    }
}

async fn held(Path(name): Path<String>, State(holds): State<Arc<Holds>>) -> StatusCode {
    let mut hold = holds.named(&name).subscribe();
    match timeout(LONGEST, hold.wait_for(|hold| *hold != Hold::Empty)).await {
        Ok(_) => StatusCode::NO_CONTENT,
        Err(_) => StatusCode::NOT_FOUND,
    }
}

async fn let_go(Path(name): Path<String>, State(holds): State<Arc<Holds>>) -> StatusCode {
    holds.named(&name).send_replace(Hold::LetGo);
    StatusCode::NO_CONTENT
}

/// `1500ms` or `2s`.
fn parse_delay(text: &str) -> Option<Duration> {
    if let Some(millis) = text.strip_suffix("ms") {
        return millis.parse().ok().map(Duration::from_millis);
    }
    text.strip_suffix('s')?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_has_a_unit() {
        assert_eq!(parse_delay("1500ms"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_delay("2s"), Some(Duration::from_secs(2)));
        for text in ["", "s", "ms", "2", "-1s", "2m"] {
            assert_eq!(parse_delay(text), None, "{text:?}");
        }
    }
}
