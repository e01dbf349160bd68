//! Keys in other headers, and in bodies.

use crate::support::configured::Configured;
use crate::support::http2::Http2;
use crate::support::{Ask, KEY, Service};
use http::Request;

const KEYS: &str = "[key]\nfrom = [\"header:x-key\", \"json:/idempotency_key\"]\n\
                    [[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n\
                    [[route]]\noperation = \"drop\"\nmatch = \"DELETE /payments/{id}\"\n[route.key]\nfrom = [\"header:idempotency-key\"]\n";

fn json(body: &str) -> Ask {
    Ask::new("POST /payments").field("Content-Type: application/json").body(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_is_one_payment_wherever_it_is_and_by_whichever_protocol() {
    let service = Service::start();
    let gateway = Configured::before(&service, KEYS).await;
    let body = format!("{{\"amount\":\"10.00\",\"idempotency_key\":\"{KEY}\"}}");
    let first = gateway.send(&json(&body)).await;
    assert_eq!((first.status, first.is_replay()), (201, false), "{:?}", first.body);
    let both = gateway.send(&json(&body).field(&format!("X-Key: \"{KEY}\""))).await;
    assert_eq!((both.status, both.is_replay()), (201, true));
    let client = Http2::connect(gateway.address).await;
    let request = Request::post("http://shop.example/payments")
        .header("content-type", "application/json")
        .body(body.replace("10.00", r"\u00310.00").leak() as &'static str)
        .unwrap();
    let by_http2 = client.send(request).await;
    assert_eq!((by_http2.status, by_http2.is_replay(), &by_http2.body), (201, true, &first.body));
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_is_refused_in_the_profiles_format_and_reaches_nobody() {
    let service = Service::start();
    let gateway = Configured::of_profile(&service, "stripe", KEYS).await;
    for body in ["{\"idempotency_key\":\"0123456789abcdef\"", "[]", "{\"idempotency_key\":7}"] {
        let answer = gateway.send(&json(body)).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.json()["error"]["message"].is_string(), "{body}");
    }
    for field in ["x_key: 0123456789abcdef", "Connection: x-key", "Idempotency_Key: 0123456789abcdef"] {
        let answer = gateway.send(&json("{\"idempotency_key\":\"0123456789abcdef\"}").field(field)).await;
        assert_eq!(answer.status, 400, "{field}");
    }
    assert_eq!(service.executed(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_without_a_body_is_protected_by_its_header() {
    let service = Service::start();
    let gateway = Configured::before(&service, KEYS).await;
    let delete = Ask::new("DELETE /payments/7").key(KEY);
    let first = gateway.send(&delete).await;
    let again = gateway.send(&delete).await;
    assert_eq!((first.is_replay(), again.is_replay(), first.status), (false, true, again.status));
    assert_eq!(service.executed(), 1);
    assert_eq!(gateway.send(&Ask::new("DELETE /payments/7")).await.code(), "idempotency_key_missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_cancels_nothing_wherever_its_key_is() {
    let service = Service::start();
    let gateway = Configured::before(&service, KEYS).await;
    let ask = json(&format!("{{\"idempotency_key\":\"{KEY}\"}}"));
    let mut client = gateway.connect().await;
    client.write(ask.clone().field("X-Wait: go").bytes()).await;
    service.has_executed(1).await;
    drop(client);
    service.let_go("go");
    loop {
        let retry = gateway.send(&ask.clone().field("X-Wait: go")).await;
        if retry.status != 409 {
            assert_eq!((retry.status, retry.is_replay()), (201, true));
            break;
        }
    }
    assert_eq!(service.executed(), 1);
}
