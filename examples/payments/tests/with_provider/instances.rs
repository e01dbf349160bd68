//! Two instances on one database: one effect for each key, whichever instance gets the request.

use crate::harness::{Answer, Service, key, payment};
use crate::support::{Database, Kind, Process, ProviderAt, Start, until_settled};
use payments::ProviderPromise;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const KEYS: usize = 100;
const EACH: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_keys_fifty_requests_each_through_two_instances_make_a_hundred_charges() {
    // One that would charge twice, were it asked twice.
    let provider = ProviderAt::start(ProviderPromise::Neither).await;
    let database = Database::new(Kind::Postgres).await;
    let url = provider.url();
    let start = Start {
        database: &database.url,
        provider: &url,
        promise: ProviderPromise::Neither,
        lease: Duration::from_secs(60),
        fail_point: None,
        more: &[],
    };
    let (one, other) = (Process::start(start).await, Process::start(start).await);
    let instances = [one.service, other.service];

    // Ten keys at a time: all their requests are under way at once, on connections of their own.
    let places = Arc::new(Semaphore::new(10));
    let mut keys = JoinSet::new();
    for which in 0..KEYS {
        let places = Arc::clone(&places);
        keys.spawn(async move {
            let _place = places.acquire().await;
            let mut requests = JoinSet::new();
            for number in 0..EACH {
                requests.spawn(ask(instances[number % 2], which));
            }
            let answers = requests.join_all().await;
            let mut at_last = Vec::new();
            for service in instances {
                let body = payment("10.00", &format!("invoice-{which}"));
                at_last.push(until_settled(service, "/payments", &key(&which.to_string()), &body).await);
            }
            (which, answers, at_last)
        });
    }
    let keys = keys.join_all().await;

    assert_eq!(provider.summary().await["charges"], KEYS);
    assert_eq!(provider.summary().await["identities_charged_twice"], 0);
    for (which, answers, at_last) in keys {
        assert_eq!(answers.len(), EACH);
        let (paid, others): (Vec<_>, Vec<_>) =
            answers.into_iter().chain(at_last).partition(|answer| answer.status == 201);
        for other in &others {
            let told: Value = other.json();
            // A machine that is busy enough answers that nothing was done, and nothing was.
            let codes = ["idempotency_key_in_progress", "idempotency_store_unavailable"];
            assert!(told["code"].as_str().is_some_and(|code| codes.contains(&code)), "{told}");
        }
        assert_eq!(paid.iter().filter(|answer| !answer.replayed()).count(), 1, "{which}: one executed");
        assert!(paid.last().is_some_and(Answer::replayed), "{which}: and now it is replayed");
        for answer in &paid {
            assert_eq!(answer.kept(), paid[0].kept(), "{which}: all heard the same");
        }
    }
}

async fn ask(service: Service, which: usize) -> Answer {
    service.pay(&key(&which.to_string()), &payment("10.00", &format!("invoice-{which}"))).await
}
