//! How often a request asks the store: each call is a round trip, and those that write are a commit.

use crate::support::{Answer, Ask, Call, Shop};

/// What the store was asked for on account of this request, call by call with the size of its batch; and the answer.
async fn calls_for(shop: &Shop, ask: &Ask) -> (Answer, Vec<(Call, usize)>) {
    let before = shop.store.asked_for().len();
    let answer = shop.send(ask).await;
    (answer, shop.store.asked_for().split_off(before))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_asks_the_store_twice_and_its_retries_once() {
    let shop = Shop::open().await;
    // The first request brings recipe and secret along.
    shop.send(&Ask::payment().key("key-of-the-very-first")).await;

    let (answer, calls) = calls_for(&shop, &Ask::payment()).await;
    assert_eq!((answer.status, calls), (201, vec![(Call::Create, 1), (Call::Swap, 1)]), "new");

    let (answer, calls) = calls_for(&shop, &Ask::payment()).await;
    assert_eq!((answer.is_replay(), calls), (true, vec![(Call::Create, 1)]), "a replay");

    let differs = Ask::payment().json(r#"{"amount":"11.00"}"#);
    let (answer, calls) = calls_for(&shop, &differs).await;
    assert_eq!((answer.status, calls), (422, vec![(Call::Create, 1)]), "another request under the same key");

    let released = Ask::payment().key("key-of-a-refused-one").status(400);
    let (answer, calls) = calls_for(&shop, &released).await;
    assert_eq!((answer.status, calls), (400, vec![(Call::Create, 1), (Call::Remove, 1)]), "released");

    let (answer, calls) = calls_for(&shop, &Ask::new("POST", "/payments")).await;
    assert_eq!((answer.status, calls), (400, vec![]), "without a key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_work_under_way_asks_the_store_once() {
    let shop = Shop::open().await;
    let first = Ask::payment().held();
    let line = first.begin(&shop.server).await;
    shop.till.gate.reached().await;
    let (answer, calls) = calls_for(&shop, &Ask::payment()).await;
    assert_eq!((answer.status, calls), (409, vec![(Call::Create, 1)]));
    shop.till.gate.open_for_good();
    assert_eq!(Answer::read(line).await.status, 201);
}
