//! The layer around a plain hyper service: no axum, and a service that can fail.

use crate::support::logs::Logs;
use crate::support::{Ask, KEY, Server};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use semel_sqlite::SqliteStore;
use semel_tower::{Body, BoxError, IdempotencyLayer, Operation};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tower::ServiceBuilder;

async fn serve(store: SqliteStore, executions: Arc<AtomicU32>) -> Server {
    let service = ServiceBuilder::new()
        .map_request(|request: Request<hyper::body::Incoming>| request.map(Body::stream))
        .layer(IdempotencyLayer::new(store))
        .service_fn(move |request: Request<Body>| {
            let number = executions.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                if request.headers().contains_key("x-fail") {
                    return Err(BoxError::from("as told"));
                }
                let operation = request.extensions().get::<Operation>().cloned();
                if let Some(operation) = &operation {
                    assert_eq!(request.headers()["semel-operation-id"], operation.id().to_string());
                    operation.declare_resource("payment", "pay_1");
                }
                let body = request.into_body().collect().await?.to_bytes();
                let answer = [format!("{number} {}: ", operation.is_some()).as_bytes(), &body].concat();
                Ok(Response::new(Full::new(Bytes::from(answer))))
            }
        });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Server::accepting(listener, |listener| async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_hyper_service_is_protected() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("semel.db")).await.unwrap();
    let executions = Arc::new(AtomicU32::new(0));
    let server = serve(store, Arc::clone(&executions)).await;

    let first = Ask::payment().send(&server).await;
    assert_eq!((first.status, first.text()), (200, r#"1 true: {"amount":"10.00"}"#));
    let replay = Ask::payment().send(&server).await;
    assert_eq!((replay.status, &replay.body, replay.is_replay()), (200, &first.body, true));
    assert_eq!(Ask::payment().json("{}").send(&server).await.status, 422);
    assert_eq!(Ask::payment().without("idempotency-key").send(&server).await.status, 400);
    let got = Ask::new("GET", "/payments").key(KEY).send(&server).await;
    assert_eq!((got.status, got.text()), (200, "2 false: "));
    let elsewhere = Ask::new("POST", "/refunds").key(KEY).send(&server).await;
    assert_eq!(elsewhere.text(), "3 true: ", "without routes, the path is the operation");

    let failing = Ask::payment().key("key-of-a-failing-one").header("x-fail", "1");
    let failed = failing.send(&server).await;
    assert_eq!((failed.status, failed.code().as_str()), (504, "idempotency_outcome_unknown"));
    let retry = failing.send(&server).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!(executions.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_service_that_fails_is_logged_once_with_its_error() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("semel.db")).await.unwrap();
    let server = serve(store, Arc::default()).await;
    let logs = Logs::watch();
    let failed = Ask::payment().header("x-fail", "1").send(&server).await;
    assert_eq!(failed.status, 504);
    let lines = logs.take();
    let [line] = lines.as_slice() else { panic!("{lines:#?}") };
    for part in ["outcome unknown", " cause=service_error", " detail=as told", failed.operation_id()] {
        assert!(line.contains(part), "{line}");
    }
}
