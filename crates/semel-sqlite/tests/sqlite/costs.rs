//! What a request costs at the disk: commits as the store counts them, and syncs as the kernel is asked for them.

use crate::fixture::Place;
use bytes::Bytes;
use semel::fingerprint::{Command as Asked, Recipe};
use semel::{
    Body, Decision, Engine, EngineOptions, Finish, Incoming, Outcome, Policy, RecordKey, StoredResponse,
};
use semel_sqlite::SqliteStore;
use semel_testing::shim;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Where syncs are counted, in the process that runs under the shim.
const SYNCS: &str = "SHIM_SYNCS";

const TOGETHER: u64 = 64;

/// The same test goes through both halves: it starts itself again under the shim, and there it counts.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the shim is written for Linux and glibc")]
fn a_request_costs_two_commits_and_a_retry_none() {
    match std::env::var_os(SYNCS) {
        None => shim::run_again("costs::a_request_costs_two_commits_and_a_retry_none", "count_syncs", SYNCS),
        Some(syncs) => {
            // On one thread, so that who comes together comes together in every run.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(count(syncs.into()));
        }
    }
}

/// What it has cost so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cost {
    /// Transactions that wrote.
    commits: u64,
    /// Transactions that found nothing to write.
    looks: u64,
    syncs: u64,
}

struct Shop {
    store: SqliteStore,
    engine: Engine,
    recipe: Arc<Recipe>,
    syncs: PathBuf,
}

impl Shop {
    fn cost(&self) -> Cost {
        let stats = self.store.stats();
        let syncs = std::fs::metadata(&self.syncs).map_or(0, |log| log.len());
        Cost { commits: stats.commits, looks: stats.empty, syncs }
    }

    /// What was spent since `before`.
    fn spent(&self, before: Cost) -> Cost {
        let now = self.cost();
        Cost {
            commits: now.commits - before.commits,
            looks: now.looks - before.looks,
            syncs: now.syncs - before.syncs,
        }
    }

    async fn ask(&self, key: &str, amount: &str) -> Decision {
        let subject = Asked::new(Arc::clone(&self.recipe), None, &amount).unwrap();
        let key = RecordKey::new("acc_1", "create_payment", key);
        let incoming = Incoming { key, subject: &subject, policy: Arc::new(Policy::default()) };
        self.engine.begin(incoming).await.unwrap()
    }

    async fn carry_out(&self, key: &str) {
        let Decision::Execute(ticket) = self.ask(key, "10.00").await else { panic!("{key} is new") };
        let response = StoredResponse {
            status: 201,
            headers: vec![("content-type".into(), Bytes::from_static(b"application/json"))],
            body: Body::Stored(Bytes::from_static(b"{\"id\":\"pay_1\"}")),
            schema_version: None,
        };
        let finish = ticket.finish(Outcome::Completed { response: Some(response), resource: None }).await;
        assert!(matches!(finish, Ok(Finish::Stored)), "{finish:?}");
    }
}

async fn count(syncs: PathBuf) {
    let place = Place::new();
    let store = place.open().await;
    let options = EngineOptions { store_timeout: Duration::from_secs(60), ..EngineOptions::default() };
    let engine = Engine::with_options(Arc::new(store.clone()), options);
    let recipe = Arc::new(Recipe::builder().command("create_payment/1").build().unwrap());
    let shop = Arc::new(Shop { store, engine, recipe, syncs });
    // The first request brings the recipe along, and begins a log.
    shop.carry_out("the-very-first").await;
    assert!(shop.cost().syncs > 0, "the shim counts");

    let before = shop.cost();
    shop.carry_out("alone").await;
    assert_eq!(shop.spent(before), Cost { commits: 2, looks: 0, syncs: 2 }, "reserve and complete");

    let nothing_written = Cost { commits: 0, looks: 1, syncs: 0 };
    let before = shop.cost();
    assert!(matches!(shop.ask("alone", "10.00").await, Decision::Replay(_)));
    assert_eq!(shop.spent(before), nothing_written, "a replay");
    let before = shop.cost();
    assert!(matches!(shop.ask("alone", "11.00").await, Decision::KeyReused { .. }));
    assert_eq!(shop.spent(before), nothing_written, "another request under the same key");
    let Decision::Execute(ticket) = shop.ask("under way", "10.00").await else { panic!("it is new") };
    let before = shop.cost();
    assert!(matches!(shop.ask("under way", "10.00").await, Decision::InProgress { .. }));
    assert_eq!(shop.spent(before), nothing_written, "work under way");
    let before = shop.cost();
    ticket.finish(Outcome::Released).await.unwrap();
    assert_eq!(shop.spent(before), Cost { commits: 1, looks: 0, syncs: 1 }, "a release");

    let before = shop.cost();
    let mut together = JoinSet::new();
    for number in 0..TOGETHER {
        let shop = Arc::clone(&shop);
        together.spawn(async move { shop.carry_out(&format!("together-{number}")).await });
    }
    together.join_all().await;
    let spent = shop.spent(before);
    // Both lanes of each kind of call at the most, where one by one they would take 2 each.
    assert!((2..=4).contains(&spent.commits), "{TOGETHER} operations at once: {spent:?}");
    assert_eq!(spent.syncs, spent.commits, "one sync each");
}
