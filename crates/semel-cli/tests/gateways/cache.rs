//! Gateways with Redis in front of their store, and beside one without.

use crate::support::{Database, Gateway, PAYMENTS, Service, Way, payment};
use semel_testing::servers::{Redis, Server, free_port};
use std::time::Duration;

/// What is done beside the requests would be counted with them. The time-out is one for a machine that does other things as well.
fn sections(url: &str) -> String {
    format!("[worker]\nin_gateway = false\n[cache]\nurl = \"{url}\"\ntimeout = \"1s\"\n{PAYMENTS}")
}

async fn metric(gateway: &Gateway, name: &str) -> u64 {
    let scraped = gateway.asked("/metrics").await;
    let text = String::from_utf8_lossy(&scraped.body);
    let line = text.lines().find(|line| line.starts_with(name) && line[name.len()..].starts_with(' '));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    value.unwrap_or_else(|| panic!("{name} is missing from {text}")) as u64
}

async fn until_used(gateway: &Gateway, used: bool) {
    while (metric(gateway, "api_idempotency_cache_breaker_open").await == 0) != used {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

const REPLAYS: &str = "api_idempotency_cache_lookups_total{result=\"replay\"}";

#[tokio::test]
async fn a_replay_takes_no_statement() {
    let (service, database) = (Service::start(), Database::new().await);
    let way = Way::to(&database).await;
    let gateway = Gateway::configured(&service, &way.url, "", &sections(&Server::Redis.url())).await;
    until_used(&gateway, true).await;
    let first = payment("very-first");
    assert_eq!(gateway.send(&first).await.status, 201);
    // Its time is looked at twice a second, beside the requests: of many replays most take no statement, whatever the machine does.
    let (mut without, mut before) = (0, way.statements());
    for _ in 0..200 {
        let replay = gateway.send(&first).await;
        assert!(replay.status == 201 && replay.is_replay(), "{replay:?}");
        let now = way.statements();
        without += usize::from(now == before);
        before = now;
    }
    assert!(without >= 150, "{without} of 200");
    assert!(metric(&gateway, REPLAYS).await >= 150);
    assert_eq!(service.executed(), 1);
}

#[tokio::test]
async fn gateways_with_and_without_a_cache_give_the_same_answers() {
    let (service, database) = (Service::start(), Database::new().await);
    let way = Way::to(&database).await;
    let with = Gateway::configured(&service, &way.url, "", &sections(&Server::Redis.url())).await;
    let without = Gateway::configured(&service, &way.url, "", PAYMENTS).await;
    until_used(&with, true).await;
    for (number, (one, other)) in [(&with, &without), (&without, &with)].into_iter().enumerate() {
        let ask = payment(&format!("payment-{number}"));
        let first = one.send(&ask).await;
        for gateway in [one, other, one, other] {
            let replay = gateway.send(&ask).await;
            assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
        }
        let differs = ask.clone().body(r#"{"note":"b0dy-of-another"}"#);
        for gateway in [one, other] {
            assert_eq!(gateway.send(&differs).await.status, 422);
        }
    }
    assert_eq!(service.executed(), 2);
}

#[tokio::test]
async fn a_redis_that_cannot_be_reached_is_no_reason_not_to_start_and_is_used_once_it_is_there() {
    let (service, database) = (Service::start(), Database::new().await);
    let way = Way::to(&database).await;
    let nowhere = format!("redis://127.0.0.1:{}", free_port().unwrap());
    let gateway = Gateway::configured(&service, &way.url, "", &sections(&nowhere)).await;
    let ask = payment("payment-in-vain");
    assert_eq!(gateway.send(&ask).await.status, 201);
    assert!(gateway.send(&ask).await.is_replay());
    until_used(&gateway, false).await;
    assert_eq!(metric(&gateway, REPLAYS).await, 0);

    let mut redis = Redis::start().unwrap();
    let gateway = Gateway::configured(&service, &way.url, "", &sections(&redis.url())).await;
    until_used(&gateway, true).await;
    let ask = payment("payment-in-time");
    let first = gateway.send(&ask).await;
    redis.kill().unwrap();
    for _ in 0..3 {
        let replay = gateway.send(&ask).await;
        assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
    }
    until_used(&gateway, false).await;
    redis.start_again().unwrap();
    until_used(&gateway, true).await;
    assert!(gateway.send(&ask).await.is_replay());
    assert_eq!(service.executed(), 2);
}
