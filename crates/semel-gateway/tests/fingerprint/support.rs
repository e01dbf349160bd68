//! A service that counts what it is made to do, behind a whole gateway, and a client that writes its requests byte by byte.

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use semel_gateway::{Config, GatewayProcess, StartError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// No answer takes longer; a test that waits for one that never comes fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The service, and the directory that its gateways' store is in.
pub(crate) struct Shop {
    service: SocketAddr,
    executions: Arc<AtomicUsize>,
    directory: TempDir,
}

/// One gateway in front of a shop.
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// What a client sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) body: String,
}

impl Answer {
    /// The number of the execution that it is the answer of.
    #[track_caller]
    pub(crate) fn execution(&self) -> usize {
        assert_eq!(self.status, 201, "{self:?}");
        self.body.parse().unwrap()
    }

    #[track_caller]
    pub(crate) fn is_replay_of(&self, first: &Self) {
        assert_eq!((self.execution(), self.replayed), (first.execution(), true));
    }

    /// Refused: the key belongs to another request.
    #[track_caller]
    pub(crate) fn is_another_request(&self) {
        assert_eq!(self.status, 422, "{self:?}");
        assert!(self.body.contains("idempotency_key_reused_with_different_payload"), "{self:?}");
    }
}

/// A request but for its key.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) target: &'static str,
    pub(crate) host: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Ask {
    pub(crate) fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let fields = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Self { target: "/payments", host: "shop.example".into(), fields, body: body.into() }
    }

    pub(crate) fn json() -> Self {
        Self::new("application/json", r#"{"amount":10}"#)
    }

    pub(crate) fn host(mut self, host: &str) -> Self {
        self.host = host.into();
        self
    }

    pub(crate) fn target(mut self, target: &'static str) -> Self {
        self.target = target;
        self
    }

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let executions: Arc<AtomicUsize> = Arc::default();
        let service = Router::new()
            .route(
                "/payments",
                post(|State(executions): State<Arc<AtomicUsize>>| async move {
                    let number = executions.fetch_add(1, Ordering::SeqCst) + 1;
                    (http::StatusCode::CREATED, number.to_string())
                }),
            )
            .with_state(Arc::clone(&executions));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { service: address, executions, directory: tempfile::tempdir().unwrap() }
    }

    /// The file that the gateways' records are in.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("semel.db")
    }

    /// A gateway with these sections, on the shop's file.
    pub(crate) async fn door(&self, sections: &str) -> Door {
        self.door_with("", sections).await
    }

    /// The same, with these settings before all sections.
    pub(crate) async fn door_with(&self, top: &str, sections: &str) -> Door {
        let running = self.start(top, sections).await.unwrap();
        let address = running.address();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            running.serve(async { drop(stopped.await) }, std::future::pending()).await;
        });
        Door { address, serving, stop: Some(stop) }
    }

    /// The same, or why it does not start.
    pub(crate) async fn try_door(&self, sections: &str) -> Result<GatewayProcess, StartError> {
        self.start("", sections).await
    }

    async fn start(&self, top: &str, sections: &str) -> Result<GatewayProcess, StartError> {
        let toml = format!(
            "{top}upstream = \"http://{}\"\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\nstore_timeout = \"20s\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{sections}",
            self.service,
            self.file().display(),
        );
        let config =
            Config::from_toml(&toml, Path::new("semel.toml")).unwrap_or_else(|errors| panic!("{errors}"));
        GatewayProcess::start(config).await
    }

    /// How often the service was made to do anything.
    pub(crate) fn executions(&self) -> usize {
        self.executions.load(Ordering::SeqCst)
    }
}

impl Door {
    /// Sends a request under a key, over a connection of its own.
    pub(crate) async fn send(&self, key: &str, ask: &Ask) -> Answer {
        let fields: String = ask.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let (target, host, length) = (ask.target, &ask.host, ask.body.len());
        let mut request = format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nIdempotency-Key: {key}\r\n{fields}\
             Content-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(&ask.body);
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(&request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = tokio::time::timeout(PATIENCE, exchange).await.expect("every request is answered");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head[9..12].parse().unwrap(),
            replayed: head.to_ascii_lowercase().contains("idempotent-replayed: true"),
            body: body.to_owned(),
        }
    }

    /// Stops the gateway, and waits until it has ended.
    pub(crate) async fn close(mut self) {
        drop(self.stop.take());
        self.serving.await.unwrap();
    }
}
