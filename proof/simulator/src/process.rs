//! One gateway process, as everybody else sees it.

use crate::life::Life;
use crate::lock::locked;
use crate::log::{self, Answer, Meaning};
use crate::network::Broken;
use crate::rules::Rule;
use bytes::Bytes;
use http::header::SET_COOKIE;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use semel::{Engine, InFlight};
use semel_tower::{Body, BoxError};
use semel_worker::WebhookIntake;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

/// The layer with what it protects.
pub(crate) type Inner = BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, BoxError>;

/// One process, from its start to its end.
pub(crate) struct Process {
    /// Which gateway it is; a new process of the same gateway has the same number.
    pub(crate) number: usize,
    pub(crate) life: Arc<Life>,
    pub(crate) engine: Engine,
    pub(crate) service: Mutex<Inner>,
    /// Whether it goes by the other configuration.
    pub(crate) is_other: Arc<AtomicBool>,
    pub(crate) intake: WebhookIntake,
    /// What is done without a request.
    pub(crate) background: Mutex<Vec<AbortHandle>>,
}

impl Process {
    /// Ends it at once.
    pub(crate) fn kill(&self) {
        self.life.kill();
        locked(&self.background).drain(..).for_each(|task| task.abort());
    }

    /// Serves by this from now on.
    pub(crate) fn serve_by(&self, service: Inner, other: bool) {
        *locked(&self.service) = service;
        self.is_other.store(other, Relaxed);
    }

    /// Serves a client's request.
    pub(crate) async fn serve(&self, request: Request<Full<Bytes>>, rule: &Rule) -> Result<Answer, Broken> {
        let serving = async {
            self.life.pass().await;
            let service = locked(&self.service).clone();
            let accepted = rule.in_force(self.is_other.load(Relaxed)).policy.in_flight == InFlight::Accepted;
            let response = service.oneshot(request).await.map_err(|_| Broken)?;
            self.life.pass().await;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
            let header = |name: &str| parts.headers.get(name)?.to_str().ok();
            let status = parts.status.as_u16();
            Ok(Answer {
                status,
                replayed: header("idempotent-replayed") == Some("true"),
                operation_id: header("semel-operation-id").map(str::to_owned),
                kept: log::kept(&parts.headers),
                sets_cookie: parts.headers.contains_key(SET_COOKIE),
                meaning: Meaning::of(status, accepted, &body),
                body,
            })
        };
        self.life.during(serving).await.unwrap_or(Err(Broken))
    }

    /// Takes a webhook in; the status that its sender gets.
    pub(crate) async fn take_in(&self, headers: HeaderMap, body: Bytes) -> Result<u16, Broken> {
        let taking_in = async {
            self.life.pass().await;
            let answer = self.intake.handle("provider", &headers, body).await.into_response();
            self.life.pass().await;
            answer.status().as_u16()
        };
        self.life.during(taking_in).await.ok_or(Broken)
    }
}
