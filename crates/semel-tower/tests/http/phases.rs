//! A handler with an effect outside: what became of its call is what the client is told, whatever the handler makes of it.

use crate::support::{Answer, Ask, Call, Fault, Gate, KEY, Shop};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use semel::{
    AtMostOnce, Deduplicated, Found, Identity, Interruption, PhaseError, Policy, Stale, State as RecordState,
    queryable,
};
use semel_sqlite::{SqliteOptions, SqliteStore};
use semel_tower::{Operation, OutcomeClass, PhasesError, Protection, Replayable, Reply};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Somebody outside, who charges cards.
struct Bank {
    ledger: Mutex<Ledger>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Ledger {
    calls: Vec<(String, u32)>,
    charged: Option<String>,
    refused_up_to: u32,
    /// The next call: whether it is carried out before the line goes dead.
    silent: Option<bool>,
    held: bool,
}

#[derive(Clone, Copy, Debug)]
struct Silence;

impl Bank {
    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    async fn charge(&self, identity: Identity) -> Result<String, Silence> {
        let attempt = identity.attempt();
        let held = {
            let mut ledger = self.ledger();
            ledger.calls.push((identity.into_key(), attempt));
            std::mem::take(&mut ledger.held)
        };
        if held {
            self.gate.pass().await;
        }
        let mut ledger = self.ledger();
        let silent = ledger.silent.take();
        if silent == Some(false) || attempt <= ledger.refused_up_to {
            return Err(Silence);
        }
        let charge = ledger.charged.get_or_insert_with(|| format!("ch_by_attempt_{attempt}")).clone();
        if silent.is_some() { Err(Silence) } else { Ok(charge) }
    }

    fn find(&self, up_to_attempt: u32) -> Found<String> {
        let mut ledger = self.ledger();
        ledger.refused_up_to = up_to_attempt;
        ledger.charged.clone().map_or(Found::NeverWill, Found::Happened)
    }
}

#[derive(Clone)]
struct Desk {
    store: SqliteStore,
    bank: Arc<Bank>,
}

/// What the handler is told to make of an error: an answer that says nothing of what the phases know.
async fn pay(State(desk): State<Desk>, operation: Operation, headers: HeaderMap) -> Response {
    let told = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let promise = told("x-promise").unwrap_or_default();
    match work(&desk, &operation, &promise).await {
        Ok(replayable) => {
            assert!(matches!(operation.phases(), Err(PhasesError::Finished)));
            replayable.into_response()
        }
        Err(trouble) => {
            if told("x-declares").is_some() {
                operation.declare_outcome(OutcomeClass::Failed);
            }
            let status: u16 = told("x-status").map_or(500, |status| status.parse().unwrap());
            let mut response = (StatusCode::from_u16(status).unwrap(), trouble).into_response();
            if let Some(outcome) = headers.get("x-outcome") {
                response.headers_mut().insert(semel_tower::OUTCOME, outcome.clone());
            }
            response
        }
    }
}

async fn work(desk: &Desk, operation: &Operation, promise: &str) -> Result<Replayable, String> {
    let mut phases = operation.phases().map_err(|error| error.to_string())?;
    let payment: i64 = desk
        .store
        .phase(&mut phases, "created", |tx| {
            tx.execute("INSERT INTO payments DEFAULT VALUES", [])?;
            Ok::<_, rusqlite::Error>(tx.last_insert_rowid())
        })
        .await
        .map_err(|error| error.to_string())?;
    let call = async |identity| desk.bank.charge(identity).await;
    let charged: Result<String, PhaseError<Silence>> = match promise {
        "at-most-once" => phases.foreign("charged", AtMostOnce, call).await,
        "queryable" => {
            let ask = queryable(async |inquiry: semel::Inquiry| Ok(desk.bank.find(inquiry.up_to_attempt)));
            phases.foreign("charged", ask, call).await
        }
        _ => phases.foreign("charged", Deduplicated, call).await,
    };
    let charge = charged.map_err(|error| error.to_string())?;
    operation
        .complete_with(&desk.store, move |tx| {
            tx.execute("UPDATE payments SET charge = ?1 WHERE id = ?2", (&charge, payment))?;
            let document = serde_json::json!({ "id": payment, "charge": charge });
            Ok::<_, rusqlite::Error>(Reply::json(StatusCode::CREATED, &document).unwrap())
        })
        .await
        .map_err(|error| error.to_string())
}

struct Till {
    shop: Shop,
    bank: Arc<Bank>,
}

impl Till {
    async fn open() -> Self {
        Self::with_timeout(Protection::default().timeout).await
    }

    async fn with_timeout(timeout: Duration) -> Self {
        let policy = Arc::new(Policy { stale: Stale::Resume, ..Policy::default() });
        let protection = Protection { policy, timeout, ..Protection::default() };
        let (bank, routes) = Self::routes();
        Self::of(Shop::built(|layer| layer.protect_writes(protection).unwrap(), routes).await, bank)
    }

    /// A till that does not wait long for its store.
    async fn impatient() -> Self {
        let (bank, routes) = Self::routes();
        Self::of(Shop::impatient_on(SqliteOptions::new(), routes).await, bank)
    }

    fn routes() -> (Arc<Bank>, impl FnOnce(&SqliteStore) -> Router) {
        let bank = Arc::new(Bank { ledger: Mutex::default(), gate: Gate::new() });
        let charging = Arc::clone(&bank);
        let routes = |store: &SqliteStore| {
            Router::new()
                .route("/charges", post(pay))
                .with_state(Desk { store: store.clone(), bank: charging })
        };
        (bank, routes)
    }

    fn of(shop: Shop, bank: Arc<Bank>) -> Self {
        let table = "CREATE TABLE payments (id INTEGER PRIMARY KEY, charge TEXT)";
        shop.connection().execute_batch(table).unwrap();
        Self { shop, bank }
    }

    async fn send(&self, ask: &Ask) -> Answer {
        self.shop.send(ask).await
    }

    /// Which attempts called the bank.
    fn called_by(&self) -> Vec<u32> {
        let ledger = self.bank.ledger();
        assert!(ledger.calls.iter().all(|(key, _)| *key == ledger.calls[0].0), "one effect, one identity");
        ledger.calls.iter().map(|(_, attempt)| *attempt).collect()
    }

    fn payments(&self) -> u32 {
        self.shop.connection().query_row("SELECT count(*) FROM payments", [], |row| row.get(0)).unwrap()
    }
}

fn ask(promise: &str) -> Ask {
    Ask::new("POST", "/charges").key(KEY).json(r#"{"amount":"10.00"}"#).header("x-promise", promise)
}

fn unknown(answer: &Answer, status: u16) {
    assert_eq!((answer.status, answer.code().as_str()), (status, "idempotency_outcome_unknown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_made_once_and_its_answer_replayed() {
    for promise in ["deduplicated", "queryable", "at-most-once"] {
        let till = Till::open().await;
        let first = till.send(&ask(promise)).await;
        assert_eq!((first.status, first.text()), (201, r#"{"charge":"ch_by_attempt_1","id":1}"#));
        let replay = till.send(&ask(promise)).await;
        assert_eq!((replay.status, &replay.body, replay.is_replay()), (201, &first.body, true));
        assert_eq!((till.called_by(), till.payments()), (vec![1], 1));
        let id = first.operation_id();
        assert_eq!(till.bank.ledger().calls[0].0, format!("{id}:charged"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_answer_is_unknown_whatever_status_the_handler_makes_of_it() {
    for promise in ["deduplicated", "at-most-once"] {
        for status in [200, 400, 402, 500, 503] {
            let till = Till::open().await;
            till.bank.ledger().silent = Some(true);
            let first = till.send(&ask(promise).status(status)).await;
            unknown(&first, 504);
            assert_eq!(first.json()["upstream_status"], status);
            let retry = till.send(&ask(promise)).await;
            unknown(&retry, 409);
            assert_eq!((till.called_by(), till.payments()), (vec![1], 1));
            let record = till.shop.record().await;
            assert_eq!(
                (record.state, record.recovery_point.as_deref()),
                (RecordState::Unknown, Some("charged:sent"))
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_bank_says_will_never_be_carried_out_is_left_to_the_retry() {
    let till = Till::open().await;
    till.bank.ledger().silent = Some(false);
    let first = till.send(&ask("queryable").status(502)).await;
    assert_eq!(
        (first.status, first.text()),
        (502, "the outside call of the phase failed or was not answered"),
        "the handler's own answer"
    );
    assert_eq!(till.shop.record().await.state, RecordState::FailedRetryable);
    let retry = till.send(&ask("queryable")).await;
    assert_eq!((retry.status, retry.text()), (201, r#"{"charge":"ch_by_attempt_2","id":1}"#));
    assert_eq!(retry.operation_id(), first.operation_id());
    assert_eq!((till.called_by(), till.payments()), (vec![1, 2], 1));

    // Where the bank has done it, there is nothing to retry.
    let till = Till::open().await;
    till.bank.ledger().silent = Some(true);
    let first = till.send(&ask("queryable")).await;
    assert_eq!((first.status, first.text()), (201, r#"{"charge":"ch_by_attempt_1","id":1}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_between_two_effects_is_left_to_the_retry_which_goes_on() {
    let till = Till::open().await;
    till.shop.store.next(Call::Swap, [Fault::Unavailable]);
    let first = till.send(&ask("at-most-once").status(503)).await;
    assert_eq!((first.status, till.shop.record().await.state), (503, RecordState::FailedRetryable));
    assert!(till.called_by().is_empty());
    assert_eq!(till.payments(), 1, "what was committed stays");
    let retry = till.send(&ask("at-most-once")).await;
    assert_eq!((retry.status, retry.text()), (201, r#"{"charge":"ch_by_attempt_2","id":1}"#));
    assert_eq!((till.called_by(), till.payments()), (vec![2], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_cannot_be_stored_is_unknown() {
    let till = Till::impatient().await;
    till.shop.store.next(Call::Swap, [Fault::None]);
    till.shop.store.always(Call::Swap, Fault::Unavailable);
    let first = till.send(&ask("deduplicated")).await;
    unknown(&first, 504);
    till.shop.store.heal();
    till.shop.engine.drained().await;
    unknown(&till.send(&ask("deduplicated")).await, 409);
    assert_eq!(till.called_by(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_says_what_became_of_it_is_believed() {
    // It knows of the bank what the phases cannot know.
    let till = Till::open().await;
    till.bank.ledger().silent = Some(false);
    let first = till.send(&ask("at-most-once").status(402).header("x-outcome", "failed")).await;
    assert_eq!((first.status, first.header("semel-outcome")), (402, None));
    let replay = till.send(&ask("at-most-once")).await;
    assert_eq!((replay.status, replay.is_replay(), till.called_by()), (402, true, vec![1]));

    let till = Till::open().await;
    till.bank.ledger().silent = Some(false);
    assert_eq!(till.send(&ask("at-most-once").status(402).header("x-declares", "failed")).await.status, 402);
    assert!(till.send(&ask("at-most-once")).await.is_replay());

    // With a bank that deduplicates, it may leave an unanswered call to the retry.
    let till = Till::open().await;
    till.bank.ledger().silent = Some(true);
    let first = till.send(&ask("deduplicated").status(503).header("x-outcome", "retryable")).await;
    assert_eq!((first.status, till.shop.record().await.state), (503, RecordState::FailedRetryable));
    let retry = till.send(&ask("deduplicated")).await;
    assert_eq!(
        (retry.status, retry.text()),
        (201, r#"{"charge":"ch_by_attempt_1","id":1}"#),
        "as the bank has it"
    );
    assert_eq!((till.called_by(), till.payments()), (vec![1, 2], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_takes_too_long_still_counts_once_it_is_answered() {
    let till = Till::with_timeout(Duration::from_millis(50)).await;
    till.bank.ledger().held = true;
    unknown(&till.send(&ask("at-most-once")).await, 504);
    till.bank.gate.open();
    till.shop.engine.drained().await;
    let retry = till.send(&ask("at-most-once")).await;
    assert_eq!((retry.status, retry.is_replay(), till.called_by()), (201, true, vec![1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_hangs_in_its_call_is_taken_over_as_promised() {
    for promise in ["deduplicated", "queryable", "at-most-once"] {
        let till = Till::open().await;
        till.bank.ledger().held = true;
        let line = ask(promise).begin(&till.shop.server).await;
        till.bank.gate.reached().await;
        till.shop.clock.advance(Policy::default().lease);
        let second = till.send(&ask(promise)).await;
        if promise == "at-most-once" {
            unknown(&second, 504);
            assert_eq!(till.called_by(), [1]);
        } else {
            assert_eq!((second.status, second.text()), (201, r#"{"charge":"ch_by_attempt_2","id":1}"#));
            assert_eq!(till.called_by(), [1, 2]);
        }
        till.bank.gate.open();
        let late = Answer::read(line).await;
        if promise == "at-most-once" {
            unknown(&late, 504);
        } else {
            assert_eq!((late.status, &late.body, late.is_replay()), (201, &second.body, true), "{promise}");
        }
        assert_eq!(till.payments(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_has_one_set_of_phases() {
    async fn twice(operation: Operation) -> StatusCode {
        let phases = operation.phases().unwrap();
        assert!(matches!(operation.phases(), Err(PhasesError::OutOfStep(_))));
        drop(phases);
        let ticket = operation.take_ticket().unwrap();
        assert_eq!(ticket.interruption(), Some(Interruption::InDoubt));
        ticket.finish(semel::Outcome::Completed { response: None, resource: None }).await.unwrap();
        StatusCode::NO_CONTENT
    }
    let shop = Shop::built(|layer| layer, |_| Router::new().route("/twice", post(twice))).await;
    assert_eq!(shop.send(&Ask::new("POST", "/twice").key(KEY)).await.status, 204);
}
