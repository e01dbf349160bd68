//! An operation that had another name before: its keys are found under both.

use crate::support::{LEASE, Shop, completed, key, replayed, retryable, ticket};
use http::{HeaderMap, Method};
use semel::fingerprint::{HttpRequest, Recipe, RecipeUnavailable, RequestSubject, Subject};
use semel::{
    BeginError, Decision, Expired, Filter, Fingerprint, Incoming, Outcome, Policy, RecordKey, State,
    Store as _,
};
use semel_testing::store::{Call, Fault, Gate};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const FORMER: &str = "pay";
static RECIPE: LazyLock<Recipe> = LazyLock::new(Recipe::default);
static HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
static METHOD: Method = Method::POST;

fn request(operation: &'static str, body: &'static str) -> RequestSubject<'static> {
    let request = HttpRequest {
        operation,
        method: &METHOD,
        path: "/payments",
        query: None,
        host: None,
        headers: &HEADERS,
        body: body.as_bytes(),
    };
    RequestSubject { recipe: &RECIPE, secret: None, request }
}

/// A request by today's name.
struct Renamed(RequestSubject<'static>);

impl Subject for Renamed {
    fn recipe(&self) -> &Recipe {
        self.0.recipe()
    }

    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        self.0.fingerprint_under(recipe)
    }

    fn fingerprint_as(&self, operation: &str, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        self.0.fingerprint_as(operation, recipe)
    }

    fn former_operations(&self) -> Vec<Arc<str>> {
        vec!["pay_before_that".into(), FORMER.into()]
    }
}

/// The request as an instance with the old name has it.
async fn before(shop: &Shop) -> Decision {
    let key = RecordKey { operation: FORMER.into(), ..key() };
    let subject = request(FORMER, "10.00");
    let incoming = Incoming { key, subject: &subject, policy: Arc::clone(&shop.policy) };
    shop.engine.begin(incoming).await.unwrap()
}

async fn try_after(shop: &Shop, body: &'static str) -> Result<Decision, BeginError> {
    let subject = Renamed(request("create_payment", body));
    let incoming = Incoming { key: key(), subject: &subject, policy: Arc::clone(&shop.policy) };
    shop.engine.begin(incoming).await
}

/// The request as it is now.
async fn after(shop: &Shop) -> Decision {
    try_after(shop, "10.00").await.unwrap()
}

/// Without an observer, which would be told of two operations.
fn shop(policy: Policy) -> Shop {
    Shop::with(policy).elsewhere()
}

fn short() -> Policy {
    Policy {
        retention: 10 * MINUTE,
        body_retention: 10 * MINUTE,
        tombstone: 20 * MINUTE,
        ..Policy::default()
    }
}

async fn operations(shop: &Shop) -> Vec<String> {
    let page = shop.memory.list(Filter::default(), None, 10).await.unwrap();
    page.records.iter().map(|record| record.key.operation.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn whatever_became_of_it_under_the_old_name_holds_under_the_new_one() {
    let shop = shop(short());
    let first = ticket(before(&shop).await);
    let id = first.operation_id();
    assert!(
        matches!(after(&shop).await, Decision::InProgress { operation_id: Some(found), .. } if found == id)
    );
    first.finish(retryable()).await.unwrap();
    let second = ticket(after(&shop).await);
    assert_eq!(
        (second.operation_id(), second.attempt()),
        (id, 2),
        "the retry goes on where the first attempt ended"
    );
    second.finish(completed("once")).await.unwrap();
    assert_eq!(replayed(after(&shop).await), "once");
    let misused = try_after(&shop, "99.00").await.unwrap();
    assert!(matches!(misused, Decision::KeyReused { operation_id, .. } if operation_id == id), "{misused:?}");
    assert_eq!(operations(&shop).await, [FORMER]);
    shop.clock.advance(10 * MINUTE);
    assert!(matches!(after(&shop).await, Decision::Expired { operation_id, .. } if operation_id == id));
    shop.clock.advance(20 * MINUTE);
    let second = ticket(after(&shop).await);
    assert_ne!(second.operation_id(), id, "what is forgotten is new, under the new name");
    second.finish(completed("twice")).await.unwrap();
    assert_eq!(replayed(after(&shop).await), "twice");
    assert!(operations(&shop).await.contains(&"create_payment".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn doubt_under_the_old_name_is_doubt_under_the_new_one() {
    let shop = shop(short());
    let owner = ticket(before(&shop).await);
    owner.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    shop.clock.advance(LEASE);
    assert!(matches!(after(&shop).await, Decision::Unknown { .. }));
    assert_eq!(operations(&shop).await, [FORMER]);
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_under_the_old_name_is_new_work_where_the_rules_say_so() {
    let shop = shop(Policy { expired: Expired::New, ..short() });
    ticket(before(&shop).await).finish(completed("once")).await.unwrap();
    shop.clock.advance(10 * MINUTE);
    assert_eq!(ticket(after(&shop).await).attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_begins_under_the_old_name_while_a_record_is_made_wins_and_the_record_is_taken_back() {
    for lost in [false, true] {
        let shop = shop(short());
        // The recipe is known, so that the next write is the reservation.
        ticket(try_after(&shop, "other").await.unwrap()).finish(Outcome::Released).await.unwrap();
        shop.memory
            .remove(
                shop.memory
                    .read(vec![key()])
                    .await
                    .unwrap()
                    .items
                    .iter()
                    .flatten()
                    .map(|record| record.expected())
                    .collect(),
            )
            .await
            .unwrap();
        let gate = Gate::new();
        let faults = [Fault::HeldAnswer(gate.clone())];
        shop.store.next(Call::Create, faults);
        let asking = tokio::spawn({
            let shop = shop.clone();
            async move { try_after(&shop, "10.00").await }
        });
        gate.reached().await;
        let elsewhere = shop.elsewhere();
        let owner = ticket(before(&elsewhere).await);
        if lost {
            shop.store.next(Call::Remove, [Fault::Unavailable]);
        }
        gate.open();
        let decided = asking.await.unwrap();
        if lost {
            assert!(matches!(decided, Err(BeginError::Store(_))), "nothing is executed: {decided:?}");
        } else {
            let id = owner.operation_id();
            assert!(
                matches!(decided, Ok(Decision::InProgress { operation_id: Some(found), .. }) if found == id),
                "{decided:?}"
            );
            assert_eq!(operations(&shop).await, [FORMER]);
        }
        owner.finish(completed("once")).await.unwrap();
        assert_eq!(replayed(after(&shop).await), "once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_about_the_old_name_lets_nothing_execute() {
    let shop = shop(short());
    shop.store.next(Call::Read, [Fault::Unavailable]);
    assert!(matches!(try_after(&shop, "10.00").await, Err(BeginError::Store(_))));
    assert_eq!(shop.state().await, None);
    // Nor after the record was made: both names are looked at before, and the first again.
    shop.store.next(Call::Read, [Fault::None, Fault::None, Fault::Unavailable]);
    assert!(matches!(try_after(&shop, "10.00").await, Err(BeginError::Store(_))));
    assert_ne!(shop.state().await, Some(State::InProgress), "the record was taken back");
    assert_eq!(ticket(after(&shop).await).attempt(), 1);
}
