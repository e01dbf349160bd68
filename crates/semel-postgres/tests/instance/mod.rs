//! One instance of a service with one operation: an engine on a PostgreSQL store.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use bytes::Bytes;
use semel::fingerprint::{Command, Recipe};
use semel::{
    BeginError, Body, Decision, Engine, EngineOptions, Finish, FinishError, Incoming, Outcome, Policy,
    RecordKey, StoreError, StoredResponse, Ticket,
};
use semel_postgres::{PgOptions, PgStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// An instance. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Instance {
    pub(crate) engine: Engine,
    pub(crate) store: PgStore,
    recipe: Arc<Recipe>,
}

/// What a request asks for, but for the key.
pub(crate) type Request = BTreeMap<&'static str, &'static str>;

pub(crate) fn request() -> Request {
    Request::from([("amount", "10.00"), ("trace", "one")])
}

impl Instance {
    pub(crate) async fn open(url: &str) -> Self {
        Self::open_with(PgOptions::new(), url).await
    }

    pub(crate) async fn open_with(options: PgOptions, url: &str) -> Self {
        let recipe = Recipe::builder().command("create_payment/1").build().unwrap();
        Self::deployed(options, url, recipe).await
    }

    /// An instance whose rules of what makes two requests the same are these.
    pub(crate) async fn deployed(options: PgOptions, url: &str, recipe: Recipe) -> Self {
        let store = options.connect(url).await.expect("the database opens");
        let options = EngineOptions { store_timeout: Duration::from_secs(2), ..EngineOptions::default() };
        let engine = Engine::with_options(Arc::new(store.clone()), options);
        Self { engine, store, recipe: Arc::new(recipe) }
    }

    pub(crate) async fn ask(&self, name: &str) -> Result<Decision, BeginError> {
        self.ask_for(name, &request()).await
    }

    pub(crate) async fn ask_for(&self, name: &str, request: &Request) -> Result<Decision, BeginError> {
        let subject = Command::new(self.recipe.clone(), None, request).unwrap();
        let key = RecordKey::new("acme", "create_payment", name);
        self.engine.begin(Incoming { key, subject: &subject, policy: Arc::new(Policy::default()) }).await
    }

    /// The request, which has to be the one that executes.
    pub(crate) async fn execute(&self, name: &str) -> Ticket {
        match self.ask(name).await {
            Ok(Decision::Execute(ticket)) => ticket,
            other => panic!("{name} was to execute, and got {other:?}"),
        }
    }

    /// Carries it out from beginning to end; the answer.
    pub(crate) async fn carry_out(&self, name: &str) -> StoredResponse {
        let ticket = self.execute(name).await;
        let answer = answer(&ticket);
        let finish = finish(ticket, answer.clone()).await;
        assert!(matches!(finish, Ok(Finish::Stored)), "{finish:?}");
        answer
    }
}

/// An answer that no other attempt could give.
pub(crate) fn answer(ticket: &Ticket) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("content-type".into(), Bytes::from_static(b"text/plain"))],
        body: Body::Stored(Bytes::from(format!("{:?}", ticket.claim()))),
        schema_version: None,
    }
}

pub(crate) async fn finish(ticket: Ticket, answer: StoredResponse) -> Result<Finish, FinishError> {
    ticket.finish(Outcome::Completed { response: Some(answer), resource: None }).await
}

/// What a decision replays.
pub(crate) fn replayed(decision: Result<Decision, BeginError>) -> StoredResponse {
    match decision {
        Ok(Decision::Replay(record)) => record.response.expect("what is replayed has an answer"),
        other => panic!("it was to be replayed, and got {other:?}"),
    }
}

/// Whether nothing could be decided, because the store is unavailable.
pub(crate) fn refused(decision: &Result<Decision, BeginError>) -> bool {
    matches!(decision, Err(BeginError::Store(StoreError::Unavailable(_) | StoreError::Lost(_))))
}
