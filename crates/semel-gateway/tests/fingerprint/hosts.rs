//! Which host was asked for.

use crate::support::{Ask, Shop};

const KEY: &str = "one-key-two-hosts";

#[tokio::test]
async fn another_host_is_another_request() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    let first = door.send(KEY, &Ask::json().host("red.example")).await;
    door.send(KEY, &Ask::json().host("blue.example")).await.is_another_request();
    for same in ["red.example", "RED.example", "red.example:443"] {
        door.send(KEY, &Ask::json().host(same)).await.is_replay_of(&first);
    }
    // The target's host counts, whatever Host says.
    let whole = Ask::json().host("red.example").target("http://blue.example/payments");
    door.send(KEY, &whole).await.is_another_request();
    let whole = Ask::json().host("blue.example").target("http://red.example:80/payments");
    door.send(KEY, &whole).await.is_replay_of(&first);
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn this_machine_has_many_names_and_is_one_host() {
    let shop = Shop::open().await;
    let door = shop.door("").await;
    let first = door.send(KEY, &Ask::json().host("localhost:8080")).await;
    for same in ["127.0.0.1:8080", "127.1.2.3", "[::1]:8080", "[0:0:0:0:0:0:0:1]", "LOCALHOST"] {
        door.send(KEY, &Ask::json().host(same)).await.is_replay_of(&first);
    }
    for other in ["a.localhost", "128.0.0.1", "[::2]", "localhost.example"] {
        door.send(KEY, &Ask::json().host(other)).await.is_another_request();
    }
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn a_trusted_proxy_says_which_host_was_asked_for_and_nobody_else_does() {
    let shop = Shop::open().await;
    let trusting = shop.door("").await;
    let forwarded = |host: &str, asked: &str| Ask::json().host(host).field("X-Forwarded-Host", asked);
    let first = trusting.send(KEY, &forwarded("pod-1.internal", "red.example")).await;
    trusting.send(KEY, &forwarded("pod-2.internal", "Red.Example:443")).await.is_replay_of(&first);
    trusting.send(KEY, &Ask::json().host("red.example")).await.is_replay_of(&first);
    trusting.send(KEY, &forwarded("pod-1.internal", "blue.example")).await.is_another_request();
    trusting.send(KEY, &forwarded("pod-1.internal", "red.example, blue.example")).await.is_another_request();
    trusting.close().await;

    let strict = shop.door("[scope]\ntrusted_peers = [\"192.0.2.1\"]\n").await;
    strict.send(KEY, &forwarded("red.example", "blue.example")).await.is_replay_of(&first);
    strict.send(KEY, &forwarded("blue.example", "red.example")).await.is_another_request();
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn names_of_one_api_are_one_host_where_the_file_says_so() {
    let shop = Shop::open().await;
    let door = shop
        .door("[fingerprint]\nhost_aliases = [[\"Api.Example\", \"api.internal\"], [\"old.example\", \"new.example\"]]\n")
        .await;
    let first = door.send(KEY, &Ask::json().host("api.internal:8080")).await;
    door.send(KEY, &Ask::json().host("api.example")).await.is_replay_of(&first);
    door.send(KEY, &Ask::json().host("old.example")).await.is_another_request();
    let other = door.send("another-pair-of-names", &Ask::json().host("old.example")).await;
    door.send("another-pair-of-names", &Ask::json().host("new.example")).await.is_replay_of(&other);
    assert_eq!(shop.executions(), 2);
}

#[tokio::test]
async fn a_host_that_is_ignored_does_not_count() {
    let shop = Shop::open().await;
    let all = shop.door("[fingerprint]\nhost = \"ignore\"\n").await;
    let ignored = all.send(KEY, &Ask::json().host("red.example")).await;
    all.send(KEY, &Ask::json().host("blue.example")).await.is_replay_of(&ignored);
    all.close().await;

    let one = shop
        .door(concat!(
            "[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\nformerly = [\"POST /payments\"]\n",
            "[route.fingerprint]\nhost = \"ignore\"\n"
        ))
        .await;
    let first = one.send("ignored-on-a-route", &Ask::json().host("red.example")).await;
    one.send("ignored-on-a-route", &Ask::json().host("blue.example")).await.is_replay_of(&first);
    one.close().await;

    // A record keeps the rules that it was made with.
    let counting = shop.door("[[route]]\nmatch = \"POST /**\"\nformerly = [\"pay\"]\n").await;
    counting.send(KEY, &Ask::json().host("green.example")).await.is_replay_of(&ignored);
    assert_eq!(shop.executions(), 2);
}
