//! Keys that name one request across all operations of a tenant, and keys whose scope was another one before.

use crate::support::{LEASE, Shop, completed, key, replayed, ticket};
use http::{HeaderMap, Method};
use semel::fingerprint::{HttpRequest, Recipe, RecipeUnavailable, RequestSubject, Subject};
use semel::{
    Decision, Expired, Fingerprint, Incoming, KeyScope, Outcome, Policy, RecordKey, State, Store as _,
};
use semel_testing::store::{Call, Fault, Gate};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
static RECIPE: LazyLock<Recipe> = LazyLock::new(Recipe::default);
static HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
static METHOD: Method = Method::POST;

/// A request, and where its keys may be known.
struct Asked {
    operation: &'static str,
    body: &'static str,
    scope: KeyScope,
    former_scope: Option<KeyScope>,
    former_name: Option<&'static str>,
    /// The fingerprint has no operation in it.
    blind: bool,
}

const PAY: Asked = Asked {
    operation: "pay",
    body: "10.00",
    scope: KeyScope::Tenant,
    former_scope: None,
    former_name: None,
    blind: false,
};
const REFUND: Asked = Asked { operation: "refund", ..PAY };

impl Asked {
    fn request<'a>(&'a self, operation: &'a str) -> RequestSubject<'a> {
        let request = HttpRequest {
            operation: if self.blind { "" } else { operation },
            method: &METHOD,
            path: "/payments",
            query: None,
            host: None,
            headers: &HEADERS,
            body: self.body.as_bytes(),
        };
        RequestSubject { recipe: &RECIPE, secret: None, request }
    }
}

impl Subject for Asked {
    fn recipe(&self) -> &Recipe {
        &RECIPE
    }

    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        self.request(self.operation).fingerprint_under(recipe)
    }

    fn fingerprint_as(&self, operation: &str, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        self.request(operation).fingerprint_under(recipe)
    }

    fn former_operations(&self) -> Vec<Arc<str>> {
        self.former_name.into_iter().map(Arc::from).collect()
    }

    fn former_scope(&self) -> Option<KeyScope> {
        self.former_scope
    }
}

async fn ask(shop: &Shop, asked: &Asked) -> Decision {
    let key = RecordKey { operation: asked.operation.into(), ..key() }.in_scope(asked.scope);
    let incoming = Incoming { key, subject: asked, policy: Arc::clone(&shop.policy) };
    shop.engine.begin(incoming).await.unwrap()
}

fn shop() -> Shop {
    shop_with(Policy {
        retention: 10 * MINUTE,
        body_retention: 10 * MINUTE,
        tombstone: 20 * MINUTE,
        ..Policy::default()
    })
}

/// Without an observer, which would be told of two operations.
fn shop_with(policy: Policy) -> Shop {
    Shop::with(policy).elsewhere()
}

fn is_reused(decision: &Decision) -> bool {
    matches!(decision, Decision::KeyReused { .. })
}

#[tokio::test(start_paused = true)]
async fn another_operation_under_the_key_is_refused_in_every_state() {
    for blind in [false, true] {
        let (pay, refund) = (Asked { blind, ..PAY }, Asked { blind, ..REFUND });
        let shop = shop();
        let owner = ticket(ask(&shop, &pay).await);
        assert!(is_reused(&ask(&shop, &refund).await), "in progress");
        shop.clock.advance(LEASE);
        assert!(is_reused(&ask(&shop, &refund).await), "and it does not judge the other one's lease");
        owner.finish(completed("paid")).await.unwrap();
        assert!(is_reused(&ask(&shop, &refund).await), "completed");
        assert_eq!(replayed(ask(&shop, &pay).await), "paid");
        shop.clock.advance(10 * MINUTE);
        assert!(is_reused(&ask(&shop, &refund).await), "expired");
        shop.clock.advance(20 * MINUTE);
        ticket(ask(&shop, &refund).await).finish(completed("refunded")).await.unwrap();
        assert!(is_reused(&ask(&shop, &pay).await), "the key is the refund's now");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_forgets_at_once_does_not_forget_for_another_one() {
    let shop = shop();
    ticket(ask(&shop, &PAY).await).finish(completed("paid")).await.unwrap();
    shop.clock.advance(10 * MINUTE);
    let forgetful = Policy { expired: Expired::New, ..Policy::clone(&shop.policy) };
    let forgetful = Shop { policy: Arc::new(forgetful), ..shop.clone() };
    assert!(is_reused(&ask(&forgetful, &REFUND).await));
    assert!(matches!(ask(&shop, &PAY).await, Decision::Expired { .. }));
}

#[tokio::test(start_paused = true)]
async fn of_two_operations_at_once_one_executes_and_the_other_is_refused() {
    let shop = shop();
    let gate = Gate::new();
    // The recipe is known, so that the next write is the reservation.
    ticket(ask(&shop, &PAY).await).finish(Outcome::Released).await.unwrap();
    shop.store.next(Call::Create, [Fault::HeldAnswer(gate.clone())]);
    let paying = tokio::spawn({
        let shop = shop.clone();
        async move { ask(&shop, &PAY).await }
    });
    // Its reservation is made, and it does not know yet.
    gate.reached().await;
    let elsewhere = shop.elsewhere();
    assert!(is_reused(&ask(&elsewhere, &REFUND).await));
    gate.open();
    ticket(paying.await.unwrap()).finish(completed("paid")).await.unwrap();
    assert!(is_reused(&ask(&elsewhere, &REFUND).await));
}

#[tokio::test(start_paused = true)]
async fn a_former_name_is_the_operations_own_across_operations() {
    let shop = shop();
    ticket(ask(&shop, &PAY).await).finish(completed("paid")).await.unwrap();
    let renamed = Asked { operation: "create_payment", former_name: Some("pay"), ..PAY };
    assert_eq!(replayed(ask(&shop, &renamed).await), "paid");
    assert!(is_reused(&ask(&shop, &Asked { body: "99.00", ..renamed }).await));
    assert!(
        is_reused(&ask(&shop, &Asked { operation: "create_payment", ..PAY }).await),
        "without its former name"
    );
}

#[tokio::test(start_paused = true)]
async fn keys_of_the_former_scope_are_found_in_both_directions() {
    for (before, after) in [(KeyScope::Operation, KeyScope::Tenant), (KeyScope::Tenant, KeyScope::Operation)]
    {
        for former_name in [None, Some("pay")] {
            let shop = shop();
            let old = Asked { scope: before, ..PAY };
            let operation = former_name.map_or("pay", |_| "create_payment");
            let new = Asked { operation, former_name, scope: after, former_scope: Some(before), ..PAY };
            let owner = ticket(ask(&shop, &old).await);
            assert!(matches!(ask(&shop, &new).await, Decision::InProgress { operation_id: Some(_), .. }));
            owner.finish(completed("paid")).await.unwrap();
            assert_eq!(replayed(ask(&shop, &new).await), "paid", "{before} to {after}, {former_name:?}");
            assert!(is_reused(&ask(&shop, &Asked { body: "99.00", ..new }).await));
            let without = Asked { operation, former_name, scope: after, ..PAY };
            ticket(ask(&shop, &without).await).finish(Outcome::Released).await.unwrap();
            shop.clock.advance(30 * MINUTE);
            let ticket = ticket(ask(&shop, &new).await);
            assert_eq!(ticket.attempt(), 1, "what is forgotten is new");
            ticket.finish(completed("again")).await.unwrap();
            let records = shop.memory.list(Default::default(), None, 10).await.unwrap().records;
            assert!(
                records.iter().any(|record| record.key.scope == after && record.state == State::Completed)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_operations_key_of_the_former_scope_was_no_key_of_this_one() {
    let shop = shop();
    ticket(ask(&shop, &REFUND).await).finish(completed("refunded")).await.unwrap();
    let pay = Asked { scope: KeyScope::Operation, former_scope: Some(KeyScope::Tenant), ..PAY };
    ticket(ask(&shop, &pay).await).finish(completed("paid")).await.unwrap();
    assert_eq!(replayed(ask(&shop, &pay).await), "paid");
}

#[tokio::test(start_paused = true)]
async fn what_begins_in_the_former_scope_while_a_record_is_made_wins() {
    let shop = shop();
    let old = Asked { scope: KeyScope::Operation, ..PAY };
    let new = Asked { former_scope: Some(KeyScope::Operation), ..PAY };
    ticket(ask(&shop, &Asked { body: "other", ..PAY }).await).finish(Outcome::Released).await.unwrap();
    let gate = Gate::new();
    shop.store.next(Call::Create, [Fault::HeldAnswer(gate.clone())]);
    let asking = tokio::spawn({
        let shop = shop.clone();
        async move { ask(&shop, &new).await }
    });
    gate.reached().await;
    let elsewhere = shop.elsewhere();
    let owner = ticket(ask(&elsewhere, &old).await);
    gate.open();
    let decided = asking.await.unwrap();
    let id = owner.operation_id();
    assert!(
        matches!(decided, Decision::InProgress { operation_id: Some(found), .. } if found == id),
        "{decided:?}"
    );
    owner.finish(completed("paid")).await.unwrap();
    assert_eq!(replayed(ask(&elsewhere, &old).await), "paid");
}
