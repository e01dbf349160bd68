//! A service that counts what it is made to do, behind a gateway as a file has it.

use super::serve;
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use semel_gateway::{Config, GatewayProcess};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// No answer takes longer; a test that waits for one that never comes fails.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Shop {
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    executions: Arc<AtomicUsize>,
}

/// What a client sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// The values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.all("idempotent-replayed") == ["true"]
    }

    /// The problem's code, and whether it says that the same may be sent again.
    pub(crate) fn problem(&self) -> (String, bool) {
        let problem: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        (problem["code"].as_str().unwrap().to_owned(), problem["retryable"].as_bool().unwrap())
    }

    /// 401, and nothing else can be learnt from it.
    #[track_caller]
    pub(crate) fn is_refused(&self) {
        assert_eq!(self.status, 401, "{self:?}");
        assert_eq!(self.problem(), ("idempotency_scope_unresolved".into(), false));
    }

    /// 503: nobody can say whose request it is.
    #[track_caller]
    pub(crate) fn is_undecided(&self) {
        assert_eq!(self.status, 503, "{self:?}");
        assert_eq!(self.problem(), ("idempotency_scope_unresolved".into(), true));
        assert_eq!(self.all("retry-after"), ["1"]);
    }

    /// What was executed, as the number of the execution.
    #[track_caller]
    pub(crate) fn executed(&self) -> usize {
        assert_eq!(self.status, 201, "{self:?}");
        self.body.parse().unwrap()
    }
}

impl Shop {
    /// Opens behind a gateway with this `[scope]`.
    pub(crate) async fn open(scope: &str) -> Self {
        Self::on("memory:", scope).await
    }

    /// The same on this store.
    pub(crate) async fn on(store: &str, sections: &str) -> Self {
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
        let service = serve(service).await;
        let toml = format!(
            "upstream = \"http://{service}\"\nlisten = \"127.0.0.1:0\"\nstore = \"{store}\"\nstore_timeout = \"20s\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{sections}"
        );
        let config =
            Config::from_toml(&toml, Path::new("semel.toml")).unwrap_or_else(|errors| panic!("{errors}"));
        let running = GatewayProcess::start(config).await.unwrap();
        let (address, admin) = (running.address(), running.admin_address());
        tokio::spawn(running.serve(std::future::pending(), std::future::pending()));
        Self { address, admin, executions }
    }

    /// Pays under a key, with these fields.
    pub(crate) async fn pay(&self, key: &str, fields: &[(&str, &str)]) -> Answer {
        self.pay_at("/payments", key, fields).await
    }

    pub(crate) async fn pay_at(&self, target: &str, key: &str, fields: &[(&str, &str)]) -> Answer {
        let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "POST {target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nIdempotency-Key: {key}\r\n{fields}\
             Content-Length: 2\r\n\r\n{{}}"
        );
        exchange(self.address, &request).await
    }

    /// A counter of the gateway's, over all operations.
    pub(crate) async fn counter(&self, name: &str) -> u64 {
        let request = "GET /metrics HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n";
        let metrics = exchange(self.admin, request).await.body;
        let name = format!("api_idempotency_{name}_total{{");
        let lines = metrics.lines().filter(|line| line.starts_with(&name));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// Pays with a bearer token.
    pub(crate) async fn pay_with(&self, key: &str, token: &str) -> Answer {
        self.pay(key, &[("Authorization", &format!("Bearer {token}"))]).await
    }

    /// How often the service was made to do anything.
    pub(crate) fn executions(&self) -> usize {
        self.executions.load(Ordering::SeqCst)
    }
}

/// Sends a request over a connection of its own, and reads to the end.
async fn exchange(address: SocketAddr, request: &str) -> Answer {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = tokio::time::timeout(PATIENCE, exchange).await.expect("every request is answered");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer { status: head[9..12].parse().unwrap(), head: head.to_owned(), body: body.to_owned() }
}
