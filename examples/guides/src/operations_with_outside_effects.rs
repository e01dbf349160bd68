//! docs/guides/operations-with-outside-effects.md

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use semel::Identity;
use semel::PhaseError;
use semel::{Found, Inquiry, queryable};
use semel_http::{Client, Endpoint};
use semel_tower::OUTCOME;
use semel_tower::Reply;
use semel_tower::{CompleteError, PhasesError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::error::Error;

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    account: String,
    cents: i64,
}

fn layer(store: semel_sqlite::SqliteStore) -> Result<semel_tower::IdempotencyLayer, BoxError> {
    use semel::{Policy, Stale};
    use semel_tower::{IdempotencyLayer, Protection};
    use std::sync::Arc;

    let policy = Policy { stale: Stale::Resume, ..Policy::default() };
    let protection = Protection { policy: Arc::new(policy), ..Protection::default() };
    let layer = IdempotencyLayer::new(store).protect_writes(protection)?;
    Ok(layer)
}

type BoxError = Box<dyn Error + Send + Sync>;

/// What the bank said for certain. It is stored with the operation, as JSON.
#[derive(Serialize, Deserialize)]
enum Verdict {
    Charged { id: String },
    Declined { code: String },
}

#[derive(Clone)]
struct Bank {
    client: Client,
    endpoint: Endpoint,
}

impl Bank {
    /// A decline is an answer. A time-out, a broken connection or a 500 is not: the bank may have charged all the same.
    async fn charge(&self, identity: Identity, order: &Order) -> Result<Verdict, BoxError> {
        let request = self.endpoint.post("/charges").header("Idempotency-Key", identity.into_key());
        let response = self.client.send(request.body(serde_json::to_vec(order)?.into())?).await?;
        match response.status().as_u16() {
            201 | 402 => Ok(serde_json::from_slice(response.body())?),
            status => Err(format!("the bank answered {status}").into()),
        }
    }
}

/// The bank's own statement that it has no such charge.
#[derive(Deserialize)]
struct Denial {
    key: String,
    attempt: u32,
}

impl Denial {
    fn is_about(&self, inquiry: &Inquiry) -> bool {
        self.key == inquiry.key && self.attempt == inquiry.up_to_attempt
    }
}

impl Bank {
    async fn find(&self, inquiry: Inquiry) -> Result<Found<Verdict>, BoxError> {
        let path = format!("/charges/{}?up_to_attempt={}", inquiry.key, inquiry.up_to_attempt);
        let response = self.client.send(self.endpoint.get(&path).body(Bytes::new())?).await?;
        let denial = serde_json::from_slice::<Denial>(response.body());
        match response.status().as_u16() {
            200 => Ok(Found::Happened(serde_json::from_slice(response.body())?)),
            // Only because this bank refuses these attempts from now on, and because the answer is its own and names the call.
            // Any proxy on the way can answer 404, and that is `Found::Unclear`.
            404 if denial.is_ok_and(|denial| denial.is_about(&inquiry)) => Ok(Found::NeverWill),
            _ => Ok(Found::Unclear),
        }
    }
}

mod on_postgres {
    use super::{Bank, Order, PaymentError, Verdict, reply};

    use axum::Json;
    use axum::extract::State;
    use semel::Deduplicated;
    use semel_postgres::PgStore;
    use semel_tower::{Operation, Replayable};

    #[derive(Clone)]
    struct App {
        store: PgStore,
        bank: Bank,
    }

    async fn create_payment(
        operation: Operation,
        State(app): State<App>,
        Json(order): Json<Order>,
    ) -> Result<Replayable, PaymentError> {
        let mut phases = operation.phases()?;

        // Local: the row and the recovery point are one commit.
        let payment: i64 = app
            .store
            .phase(&mut phases, "payment_created", async |tx| payments::insert(tx, &order).await)
            .await?;

        // Foreign: "sent" is committed, then the one call is made with no transaction open, then its result is committed.
        let verdict: Verdict = phases
            .foreign("charged", Deduplicated, async |identity| app.bank.charge(identity, &order).await)
            .await?;

        // The end: what became of the payment, and the answer that every retry gets, are one commit.
        let mut tx = app.store.pool().begin().await?;
        payments::confirm(&mut tx, payment, &verdict).await?;
        Ok(operation.complete_in(tx, reply(payment, &verdict)?).await?)
    }

    mod payments {
        use super::{Order, Verdict};
        use sqlx::PgConnection;

        pub(super) async fn insert(tx: &mut PgConnection, order: &Order) -> sqlx::Result<i64> {
            let insert = "INSERT INTO payments (account, cents) VALUES ($1, $2) RETURNING id";
            sqlx::query_scalar(insert).bind(&order.account).bind(order.cents).fetch_one(tx).await
        }

        pub(super) async fn confirm(
            tx: &mut PgConnection,
            payment: i64,
            verdict: &Verdict,
        ) -> sqlx::Result<()> {
            let update = "UPDATE payments SET paid = $2 WHERE id = $1";
            let paid = matches!(verdict, Verdict::Charged { .. });
            sqlx::query(update).bind(payment).bind(paid).execute(tx).await.map(drop)
        }
    }
}

mod on_sqlite {
    use super::{Bank, BoxError, Order, PaymentError, Verdict, queryable, reply};
    use axum::Json;
    use axum::extract::State;
    use semel::Deduplicated;
    use semel_sqlite::SqliteStore;
    use semel_tower::{Operation, Replayable};

    #[derive(Clone)]
    struct App {
        store: SqliteStore,
        bank: Bank,
    }

    async fn create_payment(
        operation: Operation,
        State(app): State<App>,
        Json(order): Json<Order>,
    ) -> Result<Replayable, PaymentError> {
        let mut phases = operation.phases()?;

        let row = order.clone();
        let payment: i64 =
            app.store.phase(&mut phases, "payment_created", move |tx| payments::insert(tx, &row)).await?;

        let verdict: Verdict = phases
            .foreign("charged", Deduplicated, async |identity| app.bank.charge(identity, &order).await)
            .await?;

        let completed = operation.complete_with(&app.store, move |tx| {
            payments::confirm(tx, payment, &verdict)?;
            Ok::<_, BoxError>(reply(payment, &verdict)?)
        });
        Ok(completed.await?)
    }

    async fn create_payment_at_a_bank_that_can_be_asked(
        operation: Operation,
        State(app): State<App>,
        Json(order): Json<Order>,
    ) -> Result<Verdict, PaymentError> {
        let mut phases = operation.phases()?;
        let ask = queryable(|inquiry| app.bank.find(inquiry));
        let verdict: Verdict =
            phases.foreign("charged", ask, async |identity| app.bank.charge(identity, &order).await).await?;
        Ok(verdict)
    }

    mod payments {
        use super::{Order, Verdict};
        use rusqlite::Connection;

        pub(super) fn insert(tx: &Connection, order: &Order) -> rusqlite::Result<i64> {
            let insert = "INSERT INTO payments (account, cents) VALUES (?1, ?2) RETURNING id";
            tx.query_row(insert, (&order.account, order.cents), |row| row.get(0))
        }

        pub(super) fn confirm(tx: &Connection, payment: i64, verdict: &Verdict) -> rusqlite::Result<()> {
            let paid = matches!(verdict, Verdict::Charged { .. });
            tx.execute("UPDATE payments SET paid = ?2 WHERE id = ?1", (payment, paid)).map(drop)
        }
    }
}

fn reply(payment: i64, verdict: &Verdict) -> Result<Reply, serde_json::Error> {
    let reply = match verdict {
        Verdict::Charged { id } => Reply::json(StatusCode::CREATED, &json!({ "id": payment, "charge": id }))?,
        Verdict::Declined { code } => {
            Reply::json(StatusCode::PAYMENT_REQUIRED, &json!({ "code": code }))?.failed()
        }
    };
    Ok(reply.resource("payment", payment.to_string()))
}

enum PaymentError {
    /// A phase was interrupted. Whatever is answered here, the layer knows what it means.
    Interrupted(BoxError),
    /// Our own database failed, and rolled back. The next attempt resumes after the last recovery point.
    Database(BoxError),
}

impl<E: Into<BoxError>> From<PhaseError<E>> for PaymentError
where
    PhaseError<E>: Error + Send + Sync + 'static,
{
    fn from(error: PhaseError<E>) -> Self {
        match error {
            PhaseError::Application(error) => Self::Database(error.into()),
            error => Self::Interrupted(error.into()),
        }
    }
}

impl IntoResponse for PaymentError {
    fn into_response(self) -> Response {
        match self {
            Self::Interrupted(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            // Nothing was committed: a retry may execute.
            Self::Database(_) => (StatusCode::SERVICE_UNAVAILABLE, [(OUTCOME, "retryable")]).into_response(),
        }
    }
}

impl From<PhasesError> for PaymentError {
    fn from(error: PhasesError) -> Self {
        Self::Interrupted(error.into())
    }
}

impl From<sqlx::Error> for PaymentError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<serde_json::Error> for PaymentError {
    fn from(error: serde_json::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<CompleteError> for PaymentError {
    fn from(error: CompleteError) -> Self {
        Self::Database(error.into())
    }
}

impl From<CompleteError<BoxError>> for PaymentError {
    fn from(error: CompleteError<BoxError>) -> Self {
        match error {
            CompleteError::Application(error) => Self::Database(error),
            error => Self::Interrupted(format!("{error:?}").into()),
        }
    }
}
