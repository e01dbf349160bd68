//! Two regions with one store: a gateway beside the primary, and one 80 ms away from it.

use crate::support::{Database, Gateway, PAYMENTS, Passing, Service, Way, payment, send_until_settled};
use std::time::Duration;

const AWAY: Passing = Passing::Far(Duration::from_millis(80));

/// With a time limit that a call from far away keeps.
const SETTINGS: &str = r#"store_timeout = "2s""#;

#[tokio::test]
async fn a_region_that_is_cut_off_fails_closed_and_the_other_one_serves() {
    let (service, database) = (Service::start(), Database::new().await);
    let (near, far) = (Way::to(&database).await, Way::to(&database).await);
    far.becomes(AWAY);
    let here = Gateway::configured(&service, &near.url, SETTINGS, PAYMENTS).await;
    let there = Gateway::configured(&service, &far.url, SETTINGS, PAYMENTS).await;
    // What each does once, and connections, are behind them.
    for (gateway, name) in [(&here, "first-here"), (&there, "first-there")] {
        assert_eq!(send_until_settled(gateway.address, &payment(name)).await.status, 201);
    }

    // Every key is one key, wherever it comes from.
    let everywhere = payment("everywhere");
    let first = there.send(&everywhere).await;
    assert!(first.status == 201 && !first.is_replay(), "{first:?}");
    let again = here.send(&everywhere).await;
    assert!(again.status == 201 && again.is_replay(), "{again:?}");
    assert_eq!(again.json(), first.json());

    far.becomes(Passing::Silent);
    let cut = payment("cut-off");
    for ask in [&everywhere, &cut] {
        let refused = there.send(ask).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "idempotency_store_unavailable"));
    }
    // Where the primary is, all goes on: replays of the other region's operations too.
    assert!(here.send(&everywhere).await.is_replay());
    let executed = service.executed();
    let moved = here.send(&cut).await;
    assert!(moved.status == 201 && !moved.is_replay(), "{moved:?}");
    assert_eq!(service.executed(), executed + 1);

    far.becomes(AWAY);
    let back = send_until_settled(there.address, &cut).await;
    assert!(back.status == 201 && back.is_replay(), "{back:?}");
    assert_eq!(back.json(), moved.json());
    assert_eq!(service.executed(), executed + 1);
}

#[tokio::test]
async fn a_new_operation_takes_two_round_trips_to_the_primary_and_so_does_a_replay() {
    let (service, database) = (Service::start(), Database::new().await);
    let way = Way::to(&database).await;
    let gateway = Gateway::configured(&service, &way.url, SETTINGS, PAYMENTS).await;
    let warm = payment("warming-up");
    assert_eq!(gateway.send(&warm).await.status, 201);
    assert!(gateway.send(&warm).await.is_replay());
    // What is done beside the requests may come in between: the fewest of several count.
    let mut fewest = (usize::MAX, usize::MAX);
    for number in 0..10 {
        let ask = payment(&format!("counted-{number}"));
        let before = way.statements();
        assert_eq!(gateway.send(&ask).await.status, 201);
        let between = way.statements();
        assert!(gateway.send(&ask).await.is_replay());
        fewest = (fewest.0.min(between - before), fewest.1.min(way.statements() - between));
    }
    assert_eq!(fewest, (2, 2), "reserve and complete; reserve and read");
}
