//! A stop that leaves nothing in doubt.

use crate::support::{Ask, Front, Service, Setting};
use semel::State;
use semel_gateway::Stopped;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_ends_and_nothing_new_begins() {
    let service = Service::start();
    let mut front = Front::before(&service).await;
    let mut idle = front.connect().await;
    assert_eq!(idle.send(&Ask::new("GET /").field("X-Status: 200")).await.status, 200);
    let (mut passing, mut protected, mut gone) =
        (front.connect().await, front.connect().await, front.connect().await);
    passing.write(Ask::new("GET /").field("X-Wait: go").bytes()).await;
    protected.write(Ask::payment().field("X-Wait: go").bytes()).await;
    gone.write(Ask::payment().key("key-of-one-who-has-gone").field("X-Wait: go").bytes()).await;
    service.has_executed(4).await;
    drop(gone);
    front.stop();
    assert_eq!(idle.rest().await, b"", "an idle connection is closed at once");
    assert!(tokio::net::TcpStream::connect(front.address).await.is_err(), "nobody listens");
    service.let_go("go");
    for client in [&mut passing, &mut protected] {
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (201, Some("close")));
        assert_eq!(client.rest().await, b"");
    }
    let store = front.store.clone();
    assert_eq!(front.stopped().await, Stopped::Drained);
    let records = semel::Store::list(&store, semel::Filter::default(), None, 10).await.unwrap().records;
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.state == State::Completed), "{records:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_on_its_way_to_a_reservation_is_waited_for_though_its_client_has_gone() {
    let service = Service::start();
    let (go_on, goes_on) = tokio::sync::watch::channel(false);
    let mut front = Setting { slow: Some(goes_on), ..Setting::default() }.before(&service).await;
    let mut client = front.connect().await;
    client.write(Ask::payment().bytes()).await;
    while go_on.receiver_count() < 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    client.stream.set_zero_linger().unwrap();
    drop(client);
    front.stop();
    let store = front.store.clone();
    let stopped = tokio::spawn(front.stopped());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!stopped.is_finished(), "it would be cut off between its reservation and its execution");
    go_on.send(true).unwrap();
    assert_eq!(stopped.await.unwrap(), Stopped::Drained);
    let records = semel::Store::list(&store, semel::Filter::default(), None, 10).await.unwrap().records;
    assert_eq!(records.iter().map(|record| record.state).collect::<Vec<_>>(), [State::Completed]);
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_under_load_leaves_no_doubt() {
    let service = Service::start();
    let mut front = Front::before(&service).await;
    let address = front.address;
    let clients: Vec<_> = (0..16)
        .map(|client| {
            tokio::spawn(async move {
                let mut answered = 0;
                for number in 0.. {
                    let ask = Ask::payment().key(&format!("key-under-load-{client:03}-{number:06}"));
                    let Some(answer) = crate::support::try_send(address, &ask).await else { break };
                    assert_eq!(answer.status, 201, "{answer:?}");
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    service.has_executed(100).await;
    front.stop();
    let store = front.store.clone();
    assert_eq!(front.stopped().await, Stopped::Drained);
    let mut answered = 0;
    for client in clients {
        answered += client.await.unwrap();
    }
    let records = semel::Store::list(&store, semel::Filter::default(), None, 100_000).await.unwrap().records;
    assert!(records.iter().all(|record| record.state == State::Completed));
    assert_eq!(records.len(), service.executed(), "what is remembered was executed, and once");
    assert!(answered >= 80 && answered <= records.len(), "{answered} of {}", records.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_only_so_long() {
    let service = Service::start();
    for forced in [true, false] {
        let setting = Setting::default().limits(|limits| {
            limits.drain = if forced { Duration::from_secs(600) } else { Duration::from_millis(200) };
        });
        let mut front = setting.before(&service).await;
        let mut client = front.connect().await;
        let before = service.executed();
        client.write(Ask::payment().field("X-Wait: never").bytes()).await;
        service.has_executed(before + 1).await;
        front.stop();
        if forced {
            front.force();
        }
        assert_eq!(front.stopped().await, Stopped::CutOff { operations: 1 });
    }
}
