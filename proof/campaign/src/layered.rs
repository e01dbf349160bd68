//! A service with Semel's layer and no gateway, whose one effect is a row in the completing transaction: `complete_with` in SQLite, `complete_in` in
//! PostgreSQL. Whoever takes over may therefore run it again (`Stale::Rerun`).

use crate::config::LEASE;
use crate::outcome::Outcome;
use crate::plan::{BRIEF, Window};
use crate::starts::Notebook;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use semel::{Engine, EngineOptions, Policy, Stale};
use semel_postgres::PgStore;
use semel_sqlite::SqliteStore;
use semel_tower::{CompleteError, IdempotencyLayer, Operation, Protection, Replayable, Reply};
use semel_worker::{Asking, Finding, OperationRules, Question, Worker, WorkerOptions};
use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgPoolOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How such a service is started.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    store: String,
    #[arg(long)]
    starts: PathBuf,
    #[arg(long)]
    look_at: Option<String>,
}

const TIMEOUT: Duration = Duration::from_millis(1_500);
const TABLE: &str = "CREATE TABLE IF NOT EXISTS campaign_payments (reference TEXT NOT NULL, operation_id TEXT NOT NULL, attempt BIGINT NOT NULL)";

/// The store, and with it the service's own table.
#[derive(Clone)]
enum Database {
    Sqlite(SqliteStore),
    Postgres(PgStore),
}

struct Service {
    database: Database,
    notebook: Notebook,
}

pub(crate) async fn serve(arguments: Arguments) -> Outcome<()> {
    let Arguments { listen, store, starts, look_at } = arguments;
    let database = Database::open(&store).await?;
    let engine = match database.clone() {
        Database::Sqlite(store) => Engine::with_options(Arc::new(store), EngineOptions::default()),
        Database::Postgres(store) => Engine::with_options(Arc::new(store), EngineOptions::default()),
    };
    let service = Arc::new(Service { database, notebook: Notebook::open(&starts, look_at.as_deref())? });
    let mut routes = Router::new();
    for window in [Window::Day, Window::Brief] {
        let protection = Protection {
            policy: Arc::clone(&rules(window, &service).policy),
            timeout: TIMEOUT,
            ..Protection::default()
        };
        let layer = IdempotencyLayer::with_engine(engine.clone())
            .tenant(|request| Some(request.headers.get("x-account-id")?.to_str().ok()?.to_owned()))
            .protect_writes(protection)?;
        routes = routes.merge(Router::new().route(window.path(), post(pay)).layer(layer));
    }
    let by_window = [Window::Day, Window::Brief].map(|window| rules(window, &service));
    let worker = Worker::new(engine.clone(), WorkerOptions::default()).other_operations(move |operation| {
        let brief = operation.ends_with(Window::Brief.path());
        Some(by_window[usize::from(brief)].clone())
    });
    tokio::spawn(worker.run(std::future::pending()));
    let mut ending = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(listen).await?;
    let ended = async move {
        ending.recv().await;
    };
    axum::serve(listener, routes.with_state(service)).with_graceful_shutdown(ended).await?;
    engine.drained().await;
    Ok(())
}

/// Requests and worker go by the same rules.
fn rules(window: Window, service: &Arc<Service>) -> OperationRules {
    let service = Arc::clone(service);
    // The row and the completion are one commit: where the completion is not, there is no row, and whoever settles that fences the owner.
    let asking = Asking::new(move |question: Question| {
        let noted = service.notebook.sealed(&question.operation_id.to_string(), i64::from(question.attempt));
        let finding = if noted.is_ok() { Finding::Absent } else { Finding::Unclear("not_noted".to_owned()) };
        async { finding }
    });
    let asking = Asking { every: Duration::from_millis(200), attempts: 60, ..asking };
    let retention = match window {
        Window::Day => Duration::from_secs(24 * 60 * 60),
        Window::Brief => BRIEF,
    };
    let policy = Policy {
        lease: LEASE,
        retention,
        body_retention: retention,
        stale: Stale::Rerun,
        settling: asking.settling(),
        ..Policy::default()
    };
    OperationRules::new(policy).asking(asking)
}

/// What becomes of a request, by chance.
enum Fate {
    Paid,
    Declined,
    /// Told to come again before anything is done.
    ComeAgain,
    /// The row was written, and the transaction given up.
    GivenUp,
    /// Longer than anybody waits; then it is paid.
    Slow,
    Panic,
}

impl Fate {
    fn draw() -> Self {
        match fastrand::u32(0..100) {
            0 => Self::ComeAgain,
            1 | 2 => Self::GivenUp,
            3..6 => Self::Declined,
            6 => Self::Slow,
            7 => Self::Panic,
            _ => Self::Paid,
        }
    }
}

async fn pay(
    operation: Operation,
    State(service): State<Arc<Service>>,
    Json(command): Json<Value>,
) -> Response {
    let (id, attempt) = (operation.id().to_string(), i64::from(operation.attempt()));
    let reference = command["reference"].as_str().unwrap_or_default().to_owned();
    if service.notebook.start(&id, attempt, &reference).await.is_err() {
        return StatusCode::GATEWAY_TIMEOUT.into_response();
    }
    let fate = Fate::draw();
    match fate {
        Fate::Slow => tokio::time::sleep(TIMEOUT + Duration::from_millis(fastrand::u64(0..1_500))).await,
        #[expect(clippy::panic, reason = "a handler that breaks down is what is tried here")]
        Fate::Panic => panic!("on purpose"),
        _ => {}
    }
    let nothing = |code: &str| match (service.notebook.nothing(&id, attempt), code) {
        (Ok(()), "come_again") => {
            (StatusCode::TOO_MANY_REQUESTS, Json(json!({ "code": code }))).into_response()
        }
        (Ok(()), _) => {
            let document = Json(json!({ "code": code }));
            (StatusCode::SERVICE_UNAVAILABLE, [("semel-outcome", "retryable")], document).into_response()
        }
        (Err(_), _) => StatusCode::GATEWAY_TIMEOUT.into_response(),
    };
    if matches!(fate, Fate::ComeAgain) {
        return nothing("come_again");
    }
    match service.database.complete(&operation, &reference, &fate).await {
        Ok(replayable) => replayable.into_response(),
        Err(CompleteError::Unknown | CompleteError::Finished) => StatusCode::GATEWAY_TIMEOUT.into_response(),
        // Nothing was written.
        Err(_) => nothing("nothing_done"),
    }
}

type Trouble = Box<dyn std::error::Error + Send + Sync>;

fn reply(reference: &str, operation_id: &str, fate: &Fate) -> Result<Reply, Trouble> {
    if matches!(fate, Fate::Declined) {
        let declined = json!({ "code": "card_declined", "reference": reference });
        return Ok(Reply::json(StatusCode::PAYMENT_REQUIRED, &declined)?.failed());
    }
    Ok(Reply::json(StatusCode::CREATED, &json!({ "charge": operation_id, "reference": reference }))?)
}

/// The application begins transactions of its own in the store's pool, and gives up on each, often before the server has answered. sqlx gives such a
/// connection back with the transaction open.
async fn give_up_on_transactions(pool: PgPool) {
    loop {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(10..50))).await;
        let patience = Duration::from_micros(fastrand::u64(0..2_000));
        drop(tokio::time::timeout(patience, pool.begin()).await);
    }
}

impl Database {
    async fn open(store: &str) -> Outcome<Self> {
        let Some(path) = store.strip_prefix("sqlite:") else {
            let pool = PgPoolOptions::new().max_connections(16).connect(store).await?;
            let store = PgStore::new(pool).await?;
            let mut tx = semel_postgres::begin(store.pool()).await?;
            // Instances that start at the same moment would otherwise trip over each other.
            sqlx::query("SELECT pg_advisory_xact_lock(6120082)").execute(&mut *tx).await?;
            sqlx::query(TABLE).execute(&mut *tx).await?;
            tx.commit().await?;
            tokio::spawn(give_up_on_transactions(store.pool().clone()));
            return Ok(Self::Postgres(store));
        };
        let store = SqliteStore::open(path).await?;
        store.transaction(|tx| tx.execute_batch(TABLE)).await?;
        Ok(Self::Sqlite(store))
    }

    /// The row and the completion in one commit.
    async fn complete(
        &self,
        operation: &Operation,
        reference: &str,
        fate: &Fate,
    ) -> Result<Replayable, CompleteError<Trouble>> {
        let (id, attempt) = (operation.id().to_string(), i64::from(operation.attempt()));
        let reply = reply(reference, &id, fate).map_err(CompleteError::Application)?;
        let (pays, gives_up) = (!matches!(fate, Fate::Declined), matches!(fate, Fate::GivenUp));
        let row = (reference.to_owned(), id, attempt);
        match self {
            Self::Sqlite(store) => {
                let work = move |tx: &semel_sqlite::Transaction<'_>| {
                    if pays {
                        tx.execute("INSERT INTO campaign_payments VALUES (?1, ?2, ?3)", row)?;
                    }
                    if gives_up { Err("given up".into()) } else { Ok(reply) }
                };
                operation.complete_with(store, work).await
            }
            Self::Postgres(store) => {
                let failed = |error: sqlx::Error| CompleteError::Application(error.into());
                let mut tx = semel_postgres::begin(store.pool()).await.map_err(failed)?;
                if pays {
                    let insert = sqlx::query("INSERT INTO campaign_payments VALUES ($1, $2, $3)");
                    let insert = insert.bind(row.0).bind(row.1).bind(row.2);
                    insert.execute(&mut *tx).await.map_err(failed)?;
                }
                if gives_up {
                    tx.rollback().await.map_err(failed)?;
                    return Err(CompleteError::Application("given up".into()));
                }
                operation.complete_in(tx, reply).await.map_err(|error| match error {
                    CompleteError::Refused(refusal) => CompleteError::Refused(refusal),
                    CompleteError::Store(error) => CompleteError::Store(error),
                    CompleteError::Finished => CompleteError::Finished,
                    _ => CompleteError::Unknown,
                })
            }
        }
    }
}
