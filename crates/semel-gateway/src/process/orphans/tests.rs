use super::*;
use semel::transition::{Reservation, reserve};
use semel::{
    EngineOptions, Fingerprint, ManualClock, MemoryStore, OperationId, Owner, Policy, RecipeId, RecordKey,
    Store, When,
};
use std::path::Path;
use std::sync::Arc;

const HOUR: Duration = Duration::from_secs(3600);

struct Shop {
    engine: Engine,
    clock: ManualClock,
    store: MemoryStore,
}

impl Shop {
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_000_000_000_000));
        let store = MemoryStore::with_clock(clock.clone());
        let engine = Engine::with_options(Arc::new(store.clone()), EngineOptions::default());
        Self { engine, clock, store }
    }

    /// Records of an operation, completed, or in doubt.
    async fn holds(&self, operation: &str, scope: KeyScope, count: u32, state: State) {
        let draft = |number: u32| {
            let key = format!("{operation}-{number}-{:?}", self.clock.now());
            let mut draft = reserve(
                Reservation {
                    key: RecordKey::new("acme", operation, key).in_scope(scope),
                    operation_id: OperationId::random(),
                    fingerprint: Fingerprint([7; 32]),
                    recipe: RecipeId([9; 16]),
                    owner: Owner::random(),
                },
                &Policy::default(),
            );
            draft.state = state;
            if state == State::Completed {
                draft.times.completed = Some(When::NOW);
                draft.times.expires = Some(When::In(24 * HOUR));
                draft.times.purge = Some(When::In(200 * HOUR));
            }
            draft
        };
        self.store.create((0..count).map(draft).collect()).await.unwrap();
    }

    /// Puts a configuration in force, or says why that cannot be.
    async fn takes(&self, routes: &str, newest: usize) -> Result<(), String> {
        let text = format!("upstream = \"http://127.0.0.1:1\"\n{routes}");
        let config = Config::from_toml(&text, Path::new("semel.toml")).unwrap();
        let checked = check_newest(&self.engine, &config, newest).await.map_err(|error| error.to_string())?;
        checked.keep(&self.engine).await;
        Ok(())
    }
}

fn route(operation: &str, more: &str) -> String {
    format!("[[route]]\noperation = \"{operation}\"\nmatch = \"POST /payments\"\n{more}\n")
}

#[tokio::test]
async fn no_more_than_the_newest_records_are_looked_at_and_what_may_be_behind_them_counts_as_live() {
    let shop = Shop::new();
    shop.takes(&route("pay", ""), 10).await.unwrap();
    shop.holds("pay", KeyScope::Operation, 3, State::Completed).await;
    let error = shop.takes(&route("create_payment", ""), 10).await.unwrap_err();
    assert!(error.contains("pay has 3 live keys: add formerly = [\"pay\"]"), "{error}");
    shop.holds("other", KeyScope::Operation, 20, State::Completed).await;
    let error = shop.takes(&route("create_payment", ""), 10).await.unwrap_err();
    assert!(error.contains("pay may have live keys (the newest 10 records have none)"), "{error}");
    // What loses nothing is not counted.
    shop.takes(&route("pay", "retention = \"2d\""), 0).await.unwrap();
    shop.takes(&route("create_payment", "formerly = [\"pay\"]"), 10).await.unwrap();
}

#[tokio::test]
async fn a_former_name_can_go_once_its_last_key_is_over_however_many_records_there_are() {
    let shop = Shop::new();
    shop.takes(&route("pay", ""), 10).await.unwrap();
    shop.holds("pay", KeyScope::Operation, 1, State::Unknown).await;
    shop.takes(&route("create_payment", "formerly = [\"pay\"]"), 10).await.unwrap();
    shop.holds("create_payment", KeyScope::Operation, 20, State::Completed).await;
    let gone = route("create_payment", "");
    let is_refused =
        async || shop.takes(&gone, 10).await.is_err_and(|error| error.contains("pay may have live keys"));
    assert!(is_refused().await, "its keys live on for a day");
    shop.clock.advance(23 * HOUR);
    assert!(is_refused().await);
    shop.clock.advance(2 * HOUR);
    assert!(is_refused().await, "one is in doubt");
    let doubted = Filter { state: Some(State::Unknown), ..Filter::default() };
    let page = shop.store.list(doubted, None, 1).await.unwrap();
    shop.store.remove(vec![page.records[0].expected()]).await.unwrap();
    shop.takes(&gone, 10).await.unwrap();
}

#[tokio::test]
async fn paths_that_get_a_name_are_told_by_pattern_and_those_that_had_one_are_not() {
    let shop = Shop::new();
    let before = "[[route]]\nmatch = \"POST /carts/{id}\"\n[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n";
    shop.takes(before, 10).await.unwrap();
    for number in 0..3 {
        shop.holds(&format!("POST /carts/{number}"), KeyScope::Operation, 2, State::Completed).await;
    }
    let named = "[[route]]\noperation = \"cart\"\nmatch = \"POST /carts/{id}\"\n\
                 [[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n";
    let advice = "POST /carts/{id} has 6 live keys: add formerly = [\"POST /carts/{id}\"]";
    assert!(shop.takes(named, 10).await.unwrap_err().contains(advice));
    shop.holds("pay", KeyScope::Operation, 20, State::Completed).await;
    let error = shop.takes(named, 10).await.unwrap_err();
    assert!(
        error.contains("POST /carts/{id} may have live keys") && !error.contains("POST /payments"),
        "{error}"
    );
    let told = named.replacen("\n[[route]]", "\nformerly = [\"POST /carts/{id}\"]\n[[route]]", 1);
    shop.takes(&told, 10).await.unwrap();
    // By path again, as a scope: nothing is lost.
    let by_path = told.replacen(
        "\n[[route]]",
        "\nkey.scope = \"path\"\nkey.former_scope = \"operation\"\n[[route]]",
        1,
    );
    shop.takes(&by_path, 10).await.unwrap();
}

#[tokio::test]
async fn every_change_of_scope_wants_the_former_one() {
    let scopes = ["operation", "tenant", "path"];
    for before in scopes {
        for after in scopes.into_iter().filter(|after| *after != before) {
            let shop = Shop::new();
            shop.takes(&route("pay", &format!("key.scope = \"{before}\"")), 100).await.unwrap();
            let (operation, scope) = match before {
                "path" => ("POST /payments", KeyScope::Operation),
                "tenant" => ("pay", KeyScope::Tenant),
                _ => ("pay", KeyScope::Operation),
            };
            shop.holds(operation, scope, 2, State::Completed).await;
            let changed = route("pay", &format!("key.scope = \"{after}\""));
            let error = shop.takes(&changed, 100).await.unwrap_err();
            assert!(error.contains("has 2 live keys"), "{before} to {after}: {error}");
            let told = route("pay", &format!("key.scope = \"{after}\"\nkey.former_scope = \"{before}\""));
            shop.takes(&told, 100).await.unwrap_or_else(|error| panic!("{before} to {after}: {error}"));
        }
    }
}
