//! What is said of an outcome that is unknown: to the client, when to come back; to the operator, why.

use crate::support::logs::Logs;
use crate::support::{Ask, Shop};
use semel::Policy;
use semel_tower::Protection;
use std::time::Duration;

fn impatient() -> Protection {
    Protection { timeout: Duration::from_millis(50), ..Protection::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_own_retry_after_is_passed_on() {
    for (said, told) in [
        ("1", "1"),
        ("120", "120"),
        ("Sun, 06 Nov 2044 08:49:37 GMT", "Sun, 06 Nov 2044 08:49:37 GMT"),
        // What no client could read, or what would have it in a busy loop.
        ("soon", "2"),
        ("-1", "2"),
        ("0", "2"),
        ("", "2"),
        ("99999999999", "2"),
    ] {
        let shop = Shop::open().await;
        let first = shop.send(&Ask::payment().status(503).answered_with("retry-after", said)).await;
        assert_eq!((first.status, first.all("retry-after")), (504, vec![told]), "{said:?}");
    }
    let shop = Shop::open().await;
    let twice =
        Ask::payment().status(503).answered_with("retry-after", "7").answered_with("retry-after", "9");
    assert_eq!(shop.send(&twice).await.all("retry-after"), ["2"]);
    // Where the service's answer itself goes out, so does all that it says.
    let shop = Shop::open().await;
    let refused = shop.send(&Ask::payment().status(429).answered_with("retry-after", "17")).await;
    assert_eq!((refused.status, refused.all("retry-after")), (429, vec!["17"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_one_it_grows_with_the_age_of_the_doubt() {
    let shop = Shop::open().await;
    let first = shop.send(&Ask::payment().status(503)).await;
    assert_eq!((first.status, first.header("retry-after")), (504, Some("2")));
    let told = async || {
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
        retry.header("retry-after").unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(told().await, 2);
    // Nobody is at work any more once the lease is over: from then on it is a matter of evidence.
    shop.clock.advance(Policy::default().lease);
    assert_eq!(told().await, 2);
    shop.clock.advance(Duration::from_secs(20));
    let some_time = told().await;
    assert!((20..60).contains(&some_time), "{some_time}");
    shop.clock.advance(Duration::from_secs(3600));
    assert_eq!(told().await, 60);
}

/// The line about a doubt, which is the only one, and says neither key nor body.
fn the_line(logs: &Logs, shop: &str, cause: &str) -> String {
    let lines = logs.take();
    let [line] = lines.as_slice() else { panic!("{shop}: one line, and not {lines:#?}") };
    assert!(line.starts_with("WARN ") && line.contains("message=outcome unknown"), "{line}");
    assert!(line.contains(&format!(" cause={cause} ")) && line.contains(" dead_letter=true"), "{line}");
    assert!(line.contains(" attempt=1") && line.contains(" operation_id="), "{line}");
    assert!(!line.contains("key-0123") && !line.contains("10.00") && !line.contains("effect"), "{line}");
    line.clone()
}

#[tokio::test]
async fn every_doubt_is_logged_once_with_its_cause() {
    let logs = Logs::watch();
    for status in [408, 502, 503, 504] {
        let shop = Shop::open().await;
        let first = shop.send(&Ask::payment().status(status)).await;
        let line = the_line(&logs, "a status", &format!("status_{status}"));
        assert!(line.contains(first.operation_id()), "{line}");
        shop.send(&Ask::payment()).await;
        assert_eq!(logs.take(), [""; 0], "a retry is told, and nothing is new");
    }

    let shop = Shop::open().await;
    let word = Ask::payment().answered_with("semel-outcome", "perhaps");
    assert_eq!(shop.send(&word).await.status, 504);
    assert!(the_line(&logs, "a word", "status_201").contains("detail=the service's Semel-Outcome"));

    let shop = Shop::open().await;
    assert_eq!(shop.send(&Ask::payment().header("x-panic", "1")).await.status, 504);
    the_line(&logs, "a panic", "panicked");

    let shop = Shop::protected(impatient()).await;
    assert_eq!(shop.send(&Ask::payment().held()).await.status, 504);
    the_line(&logs, "a time-out", "timeout");
    shop.till.gate.open();
    shop.engine.drained().await;
    assert_eq!(logs.take(), [""; 0], "the late outcome ends it");

    let shop = Shop::open().await;
    let line = Ask::payment().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    shop.clock.advance(Policy::default().lease);
    assert_eq!(shop.send(&Ask::payment()).await.status, 409);
    the_line(&logs, "a lease", "lease_over");
    shop.till.gate.open();
    crate::support::Answer::read(line).await;
}
