//! A proxy between store and emulator, which does to requests and answers what a network and a service may do.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use semel::clock::Clock;
use semel_conformance::Hands;
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Endpoint, Options, Resend};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// What happens to a request.
#[derive(Clone)]
pub(crate) enum Fault {
    /// It is done, and the connection is cut in place of the answer.
    CutAfter,
    /// It is not done, and refused with this error.
    Refused(&'static str),
    /// It is not done, and the service says that it failed.
    FailedBefore,
    /// It is done, and the service says that it failed.
    FailedAfter,
    /// It is sent twice, one after the other, and the second one's answer is returned.
    Twice,
    /// It is done only once this is told, and the connection is cut at once: it arrives after whatever is sent meanwhile.
    Late(Arc<Notify>, Arc<Notify>),
    /// An index answers that nothing is in it.
    NothingYet,
    /// An index answers what it answered to this before.
    Stale(Value),
    /// Answered, without a word of what time it is.
    Undated,
}

struct Rule {
    operation: &'static str,
    containing: String,
    fault: Fault,
    times: usize,
}

struct Shared {
    client: Client,
    endpoint: Endpoint,
    clock: Option<Driven>,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<(String, Value, Value)>>,
    counts_units: AtomicBool,
}

/// The proxy. It ends with this value.
pub(crate) struct Proxy {
    url: String,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Proxy {
    /// In front of the emulator, whose answers it dates by `clock`, if there is one.
    pub(crate) async fn start(emulator: &str, clock: Option<Driven>) -> Self {
        let endpoint = Endpoint::parse(emulator).expect("the emulator has a URL");
        let options = Options {
            longest_answer: 64 * 1024 * 1024,
            deadline: Duration::from_secs(60),
            resend: Resend::Never,
            ..Options::default()
        };
        let client = Client::new(&endpoint, ClientTlsFiles::default(), options).expect("a client");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (rules, seen, counts_units) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { client, endpoint, clock, rules, seen, counts_units });
        let accepting = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let _set = stream.set_nodelay(true);
                    let shared = Arc::clone(&shared);
                    tokio::spawn(async move {
                        let service = service_fn(move |request| answer(Arc::clone(&shared), request));
                        let http = hyper::server::conn::http1::Builder::new();
                        let _closed = http.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            }
        });
        Self { url, shared, accepting: accepting.abort_handle() }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Has this happen to the next requests of this operation whose text contains `containing`.
    pub(crate) fn next(&self, operation: &'static str, containing: &str, fault: Fault, times: usize) {
        let rule = Rule { operation, containing: containing.into(), fault, times };
        self.shared.rules.lock().expect("nobody panics with it").push(rule);
    }

    /// Asks the emulator, past all faults.
    pub(crate) async fn ask(&self, operation: &str, request: &Value) -> Value {
        let authorization = "AWS4-HMAC-SHA256 Credential=test/20261119/local/dynamodb/aws4_request, \
                             SignedHeaders=host;x-amz-date;x-amz-target, Signature=00";
        let head = self.shared.endpoint.post("/").header("content-type", "application/x-amz-json-1.0");
        let head = head.header("x-amz-date", "20261119T000000Z").header("authorization", authorization);
        let head = head.header("x-amz-target", format!("DynamoDB_20120810.{operation}"));
        let request = head.body(Bytes::from(request.to_string())).expect("a request");
        let answer = self.shared.client.send(request).await.expect("the emulator answers");
        serde_json::from_slice(answer.body()).expect("a document")
    }

    /// The requests of this operation so far, with their answers.
    pub(crate) fn seen(&self, operation: &str) -> Vec<(Value, Value)> {
        let seen = self.shared.seen.lock().expect("nobody panics with it");
        let of = seen.iter().filter(|(name, ..)| name == operation);
        of.map(|(_, request, answer)| (request.clone(), answer.clone())).collect()
    }

    /// Asks what every request consumes, from now on.
    pub(crate) fn count_units(&self) {
        self.shared.counts_units.store(true, Ordering::SeqCst);
    }

    /// What all requests have consumed, reads and writes together.
    pub(crate) fn units(&self) -> f64 {
        let seen = self.shared.seen.lock().expect("nobody panics with it");
        let of = |answer: &Value| match &answer["ConsumedCapacity"] {
            Value::Array(tables) => tables.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum(),
            table => table["CapacityUnits"].as_f64().unwrap_or(0.0),
        };
        seen.iter().map(|(.., answer)| of(answer)).sum()
    }

    /// The names of all requests so far.
    pub(crate) fn operations(&self) -> BTreeSet<String> {
        let seen = self.shared.seen.lock().expect("nobody panics with it");
        seen.iter().map(|(operation, ..)| operation.clone()).collect()
    }

    pub(crate) fn forget(&self) {
        self.shared.seen.lock().expect("nobody panics with it").clear();
    }
}

impl Shared {
    fn fault(&self, operation: &str, text: &str) -> Option<Fault> {
        let mut rules = self.rules.lock().expect("nobody panics with it");
        let fits = |rule: &&mut Rule| {
            rule.times > 0 && rule.operation == operation && text.contains(&rule.containing)
        };
        let rule = rules.iter_mut().find(fits)?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    async fn forward(&self, head: &http::request::Parts, body: &Bytes) -> Response<Bytes> {
        let mut request = self.endpoint.post("/");
        for (name, value) in &head.headers {
            if !["host", "content-length", "connection"].contains(&name.as_str()) {
                request = request.header(name, value);
            }
        }
        let request = request.body(body.clone()).expect("a request");
        self.client.send(request).await.expect("the emulator answers")
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let cut = || Err(std::io::Error::other("cut"));
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return cut() };
    let mut body = body.to_bytes();
    let target = head.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let operation = target.and_then(|target| target.rsplit('.').next()).unwrap_or_default().to_owned();
    let mut asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    if shared.counts_units.load(Ordering::SeqCst) {
        asked["ReturnConsumedCapacity"] = "TOTAL".into();
        body = Bytes::from(asked.to_string());
    }
    let fault = shared.fault(&operation, &String::from_utf8_lossy(&body));
    let made = |status: StatusCode, document: &Value| {
        let made = Response::builder().status(status).header("x-amzn-requestid", "of-the-proxy");
        made.body(Bytes::from(document.to_string())).expect("an answer")
    };
    let answer = match &fault {
        Some(Fault::CutAfter) => {
            shared.forward(&head, &body).await;
            return cut();
        }
        Some(Fault::Late(when, done)) => {
            let (shared, when, done) = (Arc::clone(&shared), Arc::clone(when), Arc::clone(done));
            tokio::spawn(async move {
                when.notified().await;
                shared.forward(&head, &body).await;
                done.notify_one();
            });
            return cut();
        }
        Some(Fault::Refused(code)) => {
            let document = json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "by the proxy" });
            made(StatusCode::BAD_REQUEST, &document)
        }
        Some(Fault::FailedBefore) => {
            made(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "__type": "InternalServerError" }))
        }
        Some(Fault::FailedAfter) => {
            shared.forward(&head, &body).await;
            made(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "__type": "InternalServerError" }))
        }
        Some(Fault::Twice) => {
            shared.forward(&head, &body).await;
            shared.forward(&head, &body).await
        }
        Some(Fault::NothingYet) => {
            made(StatusCode::OK, &json!({ "Items": [], "Count": 0, "ScannedCount": 0 }))
        }
        Some(Fault::Stale(document)) => made(StatusCode::OK, document),
        Some(Fault::Undated) | None => shared.forward(&head, &body).await,
    };
    let told: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    shared.seen.lock().expect("nobody panics with it").push((operation, asked, told));
    let mut answer = answer.map(Full::new);
    answer.headers_mut().remove("transfer-encoding");
    answer.headers_mut().remove("content-length");
    if let Some(clock) = &shared.clock {
        answer.headers_mut().insert("date", clock.date().parse().expect("a date"));
    }
    if matches!(fault, Some(Fault::Undated)) {
        answer.headers_mut().remove("x-amzn-requestid");
    }
    Ok(answer)
}

/// The service's clock and the steady clock of all instances, moved together but for jumps. Its dates have milliseconds, so that rules that compare
/// times to the millisecond hold to the millisecond: the clock tolerance of these tests is zero. What whole seconds leave open is for the tests of
/// the estimate.
#[derive(Clone)]
pub(crate) struct Driven {
    service: Arc<Mutex<i64>>,
    steady: Arc<Mutex<Duration>>,
}

impl Driven {
    pub(crate) fn new() -> Self {
        let service = Arc::new(Mutex::new(1_800_000_000_000));
        Self { service, steady: Arc::new(Mutex::new(Duration::from_secs(86_400))) }
    }

    fn date(&self) -> String {
        let millis = *self.service.lock().expect("nobody panics with it");
        let moment = jiff::Timestamp::from_millisecond(millis).expect("tests stay within the calendar");
        moment.strftime("%a, %d %b %Y %H:%M:%S.%3f GMT").to_string()
    }

    fn move_service(&self, by: Duration, back: bool) {
        let millis = i64::try_from(by.as_millis()).expect("tests move a clock by years at most");
        *self.service.lock().expect("nobody panics with it") += if back { -millis } else { millis };
    }

    /// The same service, and a steady clock of its own.
    pub(crate) fn another(&self) -> Self {
        Self { service: Arc::clone(&self.service), steady: Arc::new(Mutex::new(self.monotonic())) }
    }
}

impl Hands for Driven {
    fn forward(&self, by: Duration) {
        self.move_service(by, false);
        *self.steady.lock().expect("nobody panics with it") += by;
    }

    fn jump(&self, by: Duration) {
        self.move_service(by, false);
    }

    fn come_back(&self, by: Duration) {
        self.move_service(by, true);
    }

    fn back(&self, by: Duration) {
        self.move_service(by, true);
    }
}

impl Clock for Driven {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Duration {
        *self.steady.lock().expect("nobody panics with it")
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}

/// A table of its own, for a store that is reached by way of a proxy.
pub(crate) struct Table {
    pub(crate) proxy: Proxy,
    pub(crate) clock: Driven,
    pub(crate) name: String,
}

impl Table {
    pub(crate) async fn new() -> Self {
        let clock = Driven::new();
        let emulator = semel_testing::servers::Server::DynamoDb.url();
        let proxy = Proxy::start(&emulator, Some(clock.clone())).await;
        let name = format!("semel-{}", uuid::Uuid::new_v4().simple());
        let table = Self { proxy, clock, name };
        table.options(&table.clock).migrate(&table.url()).await.expect("the table can be created");
        table
    }

    pub(crate) fn url(&self) -> String {
        format!("dynamodb://{}?region=local&endpoint={}", self.name, self.proxy.url())
    }

    pub(crate) fn options(&self, clock: &Driven) -> semel_dynamodb::DynamoOptions {
        let credentials = semel_dynamodb::Credentials::new("test", "test", None);
        let options = semel_dynamodb::DynamoOptions::new().credentials(credentials);
        // Machines that run tests are busy: nothing here is to depend on how fast it answers.
        options.clock(clock.clone()).timeout(Duration::from_secs(20))
    }

    pub(crate) async fn open(&self) -> semel_dynamodb::DynamoStore {
        self.options(&self.clock).open(&self.url()).await.expect("the table opens")
    }
}
