//! A service that is called over gRPC, and what its callers see.

use crate::support::KEY;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use http_body::Frame;
use http_body_util::BodyExt as _;
use semel::{Filter, Record, Store as _};
use semel_sqlite::SqliteStore;
use semel_tower::{Body, BoxError, IdempotencyLayer, Operation, Reply};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

pub(super) type Frames = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

/// A message as it lies in a body.
pub(super) fn framed(message: &str) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message.as_bytes()].concat().into()
}

pub(super) fn fields(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        fields.append(*name, value.parse().unwrap());
    }
    fields
}

/// A body whose frames a test sends as it likes.
pub(super) fn body() -> (Frames, Body) {
    let (frames, receiver) = mpsc::channel(8);
    (frames, Body::stream(Sent(receiver)))
}

struct Sent(mpsc::Receiver<Result<Frame<Bytes>, BoxError>>);

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(context)
    }
}

/// An answer that says all of it: its messages, and its trailers.
pub(super) async fn answer(messages: &[&str], trailers: &[(&'static str, &str)]) -> Response<Body> {
    let (frames, body) = body();
    for message in messages {
        frames.send(Ok(Frame::data(framed(message)))).await.unwrap();
    }
    if !trailers.is_empty() {
        frames.send(Ok(Frame::trailers(fields(trailers)))).await.unwrap();
    }
    Response::builder().header("content-type", "application/grpc").body(body).unwrap()
}

/// A call.
pub(super) fn call(body: impl Into<Body>) -> Request<Body> {
    Request::post("/shop.Payments/Create")
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("grpc-accept-encoding", "gzip")
        .header("idempotency-key", KEY)
        .body(body.into())
        .unwrap()
}

/// What a caller got.
#[derive(Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) head: HeaderMap,
    pub(super) body: Bytes,
    /// `None`: the head says it all.
    pub(super) trailers: Option<HeaderMap>,
}

impl Ended {
    pub(super) async fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), 200, "gRPC has statuses of its own");
        let (head, body) = response.into_parts();
        let has_ended = http_body::Body::is_end_stream(&body);
        let collected = body.collect().await.unwrap();
        let trailers = collected.trailers().cloned();
        let body = collected.to_bytes();
        assert_eq!(has_ended, body.is_empty() && trailers.is_none());
        Self { head: head.headers, body, trailers }
    }

    /// Wherever it stands.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let field = self.trailers.as_ref().and_then(|trailers| trailers.get(name));
        field.or_else(|| self.head.get(name)).map(|value| value.to_str().unwrap())
    }

    pub(super) fn status(&self) -> &str {
        self.field("grpc-status").unwrap_or("none")
    }

    pub(super) fn is_replay(&self) -> bool {
        self.head.contains_key("idempotent-replayed")
    }

    /// What the details say, as far as it is text.
    pub(super) fn details(&self) -> String {
        use base64::Engine as _;
        let details = self.field("grpc-status-details-bin").unwrap();
        let bytes = base64::engine::general_purpose::STANDARD_NO_PAD.decode(details).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(super) fn says(&self, status: &str, reason: &str) -> bool {
        let refused = self.body.is_empty() && self.trailers.is_none();
        refused && self.status() == status && self.details().contains(reason)
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

/// A service behind the layer.
pub(super) struct Shop {
    service:
        semel_tower::Idempotency<tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>>,
    pub(super) store: SqliteStore,
    pub(super) executions: Arc<AtomicU32>,
    _directory: tempfile::TempDir,
}

impl Shop {
    /// A service that answers so.
    pub(super) async fn answering<F>(
        layer: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
        answer: impl Fn(u32, Request<Body>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response<Body>, BoxError>> + Send + 'static,
    {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path().join("semel.db")).await.unwrap();
        let executions = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&executions);
        let service = service_fn(move |request: Request<Body>| -> Answering {
            let number = counted.fetch_add(1, SeqCst) + 1;
            Box::pin(answer(number, request))
        });
        let layer = layer(IdempotencyLayer::new(store.clone()));
        let service = layer.layer(tower::util::BoxCloneSyncService::new(service));
        Self { service, store, executions, _directory: directory }
    }

    /// A service that echoes its message, and says how it went with these trailers.
    pub(super) async fn with_trailers(trailers: &'static [(&'static str, &'static str)]) -> Self {
        Self::answering(
            |layer| layer,
            move |number, request| async move {
                assert_eq!(request.headers()["grpc-accept-encoding"], "identity");
                request.into_body().collect().await?;
                Ok(answer(&[&format!("effect {number}")], trailers).await)
            },
        )
        .await
    }

    pub(super) async fn begin(&self, request: Request<Body>) -> Response<Body> {
        self.service.clone().ready().await.unwrap().call(request).await.unwrap()
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Ended {
        Ended::of(self.begin(request).await).await
    }

    /// The usual call.
    pub(super) async fn pay(&self) -> Ended {
        self.send(call(framed("10.00"))).await
    }

    pub(super) fn executions(&self) -> u32 {
        self.executions.load(SeqCst)
    }

    pub(super) async fn records(&self) -> Vec<Record> {
        let page = self.store.list(Filter::default(), None, 1000).await.unwrap();
        let ids = page.records.iter().map(|record| record.operation_id).collect();
        self.store.find(ids).await.unwrap().items.into_iter().flatten().collect()
    }
}

/// Completes a payment in the store's own transaction, and answers something else.
pub(super) async fn complete_inside(
    store: SqliteStore,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let operation = request.extensions().get::<Operation>().cloned().ok_or("not protected")?;
    let completed = operation.complete_with(&store, |_| -> Result<Reply, std::io::Error> {
        Ok(Reply::grpc(b"stored").trailer("grpc-message".parse().unwrap(), "fine".parse().unwrap()))
    });
    completed.await.map_err(|error| error.to_string())?;
    Ok(answer(&["what the handler says"], &[("grpc-status", "0")]).await)
}
