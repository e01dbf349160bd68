//! Whatever the gateway refuses, it refuses in the format of the profile in force.

use crate::support::configured::Configured;
use crate::support::{Ask, Service};
use serde_json::json;

/// Refusals of every layer, none of which is about idempotency.
async fn refusals(gateway: &Configured) -> Vec<(u16, serde_json::Value)> {
    let mut refusals = Vec::new();
    for ask in [
        Ask::new("POST /a%00b").field("Idempotency-Key: 0123456789abcdef"),
        Ask::new("POST /a").field("Idempotency_Key: 0123456789abcdef"),
        Ask::new("post /a").field("Idempotency-Key: 0123456789abcdef"),
        Ask::new("CONNECT host:443"),
        Ask::new("POST /large").body("x".repeat(2000)),
        Ask::new("GET /x").field("X-Hang-Up: 1"),
    ] {
        let answer = gateway.send(&ask).await;
        refusals.push((answer.status, answer.json()));
    }
    refusals
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_every_layer_take_the_profiles_format() {
    let service = Service::start();
    let limits = "[limits]\npass_through_body = \"1KiB\"";
    let ietf = refusals(&Configured::before(&service, limits).await).await;
    for (status, document) in &ietf {
        assert_eq!(document["status"], *status, "{document}");
        assert_eq!(document["type"], "about:blank");
    }
    for (profile, rest) in [
        ("stripe", ""),
        ("acp", ""),
        ("ucp", ""),
        ("adcp", ""),
        ("mybank", "[profiles.mybank]\nbody = '{\"oops\": \"{detail}\", \"status\": \"{status:number}\"}'"),
    ] {
        let gateway = Configured::of_profile(&service, profile, &format!("{limits}\n{rest}")).await;
        let refused = refusals(&gateway).await;
        for ((status, plain), (own_status, document)) in ietf.iter().zip(&refused) {
            assert_eq!(status, own_status);
            let detail = &plain["detail"];
            match profile {
                "stripe" => assert_eq!(&document["error"]["message"], detail, "{document}"),
                "acp" => assert_eq!(&document["message"], detail, "{document}"),
                "ucp" => assert_eq!(&document["content"], detail, "{document}"),
                "adcp" => assert_eq!(&document["errors"][0]["message"], detail, "{document}"),
                _ => assert_eq!(document, &json!({"oops": detail, "status": status})),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_be_reached_is_told_in_the_profiles_format() {
    let mut gone = Service::start();
    gone.kill();
    let gateway = Configured::of_profile(&gone, "stripe", "").await;
    for ask in [Ask::new("GET /"), Ask::new("POST /p").field("Idempotency-Key: k").body("{}")] {
        let answer = gateway.send(&ask).await;
        assert_eq!((answer.status, answer.header("stripe-should-retry")), (502, Some("true")), "{answer:?}");
        assert_eq!(answer.json()["error"]["type"], "api_error");
    }
}
