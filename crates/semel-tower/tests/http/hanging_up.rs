//! A client that hangs up cancels nothing but its own waiting.

use crate::support::{Ask, Call, Fault, Gate, Shop};
use semel::State;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_in_mid_handler_finds_the_answer_when_it_comes_back() {
    let shop = Shop::open().await;
    let line = Ask::payment().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    shop.hang_up(line).await;
    let meanwhile = shop.send(&Ask::payment()).await;
    assert_eq!((meanwhile.status, meanwhile.code().as_str()), (409, "idempotency_key_in_progress"));
    shop.till.gate.open();
    shop.engine.drained().await;
    let retry = shop.send(&Ask::payment()).await;
    assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, "effect 1", true));
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_at_the_very_moment_of_create_finds_the_answer_when_it_comes_back() {
    for held in [Fault::Held, Fault::HeldAnswer] {
        let shop = Shop::open().await;
        // The recipe is known, so that the next write is the reservation.
        shop.send(&Ask::payment().key("key-warming-up-00001")).await;
        let gate = Gate::new();
        shop.store.next(Call::Create, [held(gate.clone())]);
        let line = Ask::payment().held().begin(&shop.server).await;
        gate.reached().await;
        shop.hang_up(line).await;
        gate.open();
        shop.till.gate.reached().await;
        shop.till.gate.open();
        shop.engine.drained().await;
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, "effect 2", true));
        assert_eq!(shop.till.effects(), 2, "the one that warmed up, and this one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_while_the_outcome_is_stored_finds_it_when_it_comes_back() {
    let shop = Shop::open().await;
    let gate = Gate::new();
    shop.store.next(Call::Swap, [Fault::Held(gate.clone())]);
    let line = Ask::payment().begin(&shop.server).await;
    gate.reached().await;
    shop.hang_up(line).await;
    gate.open();
    shop.engine.drained().await;
    let retry = shop.send(&Ask::payment()).await;
    assert_eq!((retry.text(), retry.is_replay(), shop.till.effects()), ("effect 1", true, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_before_its_request_is_whole_starts_nothing() {
    use tokio::io::AsyncWriteExt as _;
    let shop = Shop::open().await;
    let mut line = tokio::net::TcpStream::connect(shop.server.address).await.unwrap();
    let half = "POST /payments HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: key-0123456789abcdef\r\nContent-Length: 100\r\n\r\nhalf";
    line.write_all(half.as_bytes()).await.unwrap();
    shop.hang_up_early(line).await;
    let first = shop.send(&Ask::payment()).await;
    assert_eq!((first.status, first.is_replay(), shop.till.requests()), (201, false, 1));
    assert_eq!(shop.record().await.state, State::Completed);
}
