//! Requests that a service may take for a protected operation, or for another caller's, though the gateway would not: refused before
//! anything is executed.

use crate::support::configured::Configured;
use crate::support::{Ask, KEY, Service};

const ROUTES: &str = "
[[route]]
operation = \"create_payment\"
match = \"POST /payments\"
[[route]]
operation = \"change_payment\"
match = \"PATCH /payments/{id}\"
[[route]]
operation = \"add_part\"
match = \"POST /payments/{id}/{part}\"
[[route]]
operation = \"refund_all\"
match = \"POST /payments/all/refunds\"
";

/// Nobody on this machine is believed.
const NO_TRUST: &str = "[scope]\ntrusted_peers = [\"192.0.2.1\"]\n";

fn keyed(line: &str) -> Ask {
    Ask::new(line).key(KEY).body("{}")
}

/// A problem document that says 400, and nothing was executed.
async fn is_refused(gateway: &Configured, service: &Service, ask: &Ask) {
    let before = service.executed();
    let answer = gateway.send(ask).await;
    let head = ask.head();
    assert_eq!(answer.status, 400, "{head}");
    assert_eq!(answer.code(), "", "{head}");
    assert_eq!(service.executed(), before, "{head}");
}

async fn is_executed(gateway: &Configured, service: &Service, ask: &Ask) {
    let before = service.executed();
    let answer = gateway.send(ask).await;
    assert_eq!((answer.status, service.executed()), (201, before + 1), "{}", ask.head());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_routes_a_path_has_one_spelling() {
    let service = Service::start();
    let gateway = Configured::before(&service, "").await;
    is_executed(&gateway, &service, &keyed("POST /payments")).await;
    for path in [
        "//payments",
        "/payments//",
        "/./payments",
        "/x/../payments",
        "/x/%2e%2E/payments",
        "/x/..;/payments",
        "/%70ayments",
        "/payments;v=1",
        "/payments%3Bv=1",
        "/payments%2F1",
        "/payments%5C1",
        "/payments\\",
        "/payments.",
        "/payments%20",
        "/payments%3Fx",
        "/payments%23x",
        "/payments%2570",
        "/pa%2Dyments",
        "/caf%c3%a9",
        "/caf\u{e9}",
        "/payments%",
        "/payments%zz",
        "/payments|",
    ] {
        for method in ["POST", "PATCH"] {
            is_refused(&gateway, &service, &keyed(&format!("{method} {path}"))).await;
        }
        is_executed(&gateway, &service, &Ask::new(&format!("PUT {path}")).key(KEY).body("{}")).await;
        is_executed(&gateway, &service, &Ask::new(&format!("POST {path}")).body("{}")).await;
    }
    for path in [
        "/",
        "/payments/",
        "/Payments/pay_01H",
        "/v1.0/x.json",
        "/.well-known/x",
        "/caf%C3%A9",
        "/a%20b",
        "/100%25",
        "/arn%3Aaws%3Asns/publish",
        "/things:batch@x,y=(1)!*'$&+",
        "/...",
    ] {
        is_executed(&gateway, &service, &keyed(&format!("POST {path}"))).await;
        assert!(gateway.send(&keyed(&format!("POST {path}"))).await.is_replay(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_nobody_writes_so_is_refused_whatever_it_is_for() {
    let service = Service::start();
    for sections in ["", ROUTES] {
        let gateway = Configured::before(&service, sections).await;
        for path in [
            "/payments%0A",
            "/payments%0a",
            "/payments%00",
            "/payments%7F",
            "/payments%C2%85",
            "/payments%E2%80%A8",
            "/pay%FFments",
            "/pay%C0%AFments",
            "/payments%250A",
            "/payments%25250A",
            "/payments/a%0D%0Ab/refunds",
            "/other/%01",
        ] {
            for method in ["POST", "PATCH", "GET", "DELETE"] {
                is_refused(&gateway, &service, &Ask::new(&format!("{method} {path}"))).await;
            }
        }
        is_executed(&gateway, &service, &Ask::new("GET /search/100%25ab?x=%0A%FF")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_route_is_not_reached_under_another_spelling() {
    let service = Service::start();
    let gateway = Configured::before(&service, ROUTES).await;
    for line in [
        "POST //payments",
        "POST /payments/",
        "POST /payments.",
        "POST /payments%20",
        "POST /payments%2520",
        "POST /%2570ayments",
        "POST /payments%3Fx=1",
        "POST /payment\u{17f}",
        "POST /payment%C5%BF",
        "PATCH /payments%252F1",
        // What one route matches, and the service may take for another.
        "POST /payments/ALL/refunds",
        "POST /payments/%61ll/refunds",
        "POST /payments/all%20/refunds",
        "POST /payments/x/..%2Fall%2Frefunds",
        "POST /payments/x/..%2F..%2Fpayments",
    ] {
        is_refused(&gateway, &service, &keyed(line)).await;
        is_refused(&gateway, &service, &Ask::new(line).body("{}")).await;
    }
    for line in
        ["POST /payments/A%2Fb/refunds", "POST /payments/1/REFUNDS", "POST /other//x;y", "GET //payments"]
    {
        is_executed(&gateway, &service, &keyed(line).key(&format!("{KEY}-{}", line.len()))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_method_is_no_way_around_protection() {
    let service = Service::start();
    for sections in ["", ROUTES] {
        let gateway = Configured::before(&service, sections).await;
        for field in [
            "X-HTTP-Method-Override: PATCH",
            "X-HTTP-Method: patch",
            "X-Method-Override: PATCH",
            "X_HTTP_Method_Override: PATCH",
            "X.HTTP.Method.Override: PATCH",
            "X-HTTP_Method: PATCH",
        ] {
            is_refused(&gateway, &service, &keyed("POST /payments/1").field(field)).await;
            is_refused(&gateway, &service, &keyed("PUT /payments/1").field(field)).await;
        }
        for query in [
            "_method=PATCH",
            "a=b&_method=patch",
            "a=b;_method=patch",
            "%5Fmethod=PATCH",
            "_%6Dethod=%50ATCH",
            "_method[]=PATCH",
            "_method%5B0%5D=PATCH",
            ".method=PATCH",
            "_METHOD=PATCH",
            "_method%00=PATCH",
            "X-HTTP-Method-Override=PATCH",
        ] {
            is_refused(&gateway, &service, &keyed(&format!("POST /payments/1?{query}"))).await;
            is_refused(&gateway, &service, &keyed(&format!("PUT /payments/1?{query}"))).await;
        }
        is_refused(&gateway, &service, &keyed("POST /payments").field("X-HTTP-Method-Override: DELETE"))
            .await;
        is_refused(&gateway, &service, &keyed("POST /payments?_method=DELETE")).await;
        for ask in [
            keyed("POST /payments?method=PATCH&_methods=x").field("X-HTTP-Method-Override: post"),
            keyed("PUT /payments/1?_method=DELETE"),
        ] {
            is_executed(&gateway, &service, &ask).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_target_in_a_header_is_dropped_or_refused() {
    let service = Service::start();
    for field in
        ["X-Original-URL: /payments", "X-Rewrite-URL: /payments", "X-Original-URL: http://a//payments?x"]
    {
        // From peers that are not trusted it does not get through.
        for sections in [NO_TRUST.to_owned(), format!("{NO_TRUST}{ROUTES}")] {
            let gateway = Configured::before(&service, &sections).await;
            for line in ["POST /health", "POST /payments"] {
                let answer = gateway.send(&keyed(line).field(field)).await;
                assert_eq!(answer.status, 201, "{line} {field}");
                let name = field.split(':').next().unwrap();
                assert!(answer.told(name).is_empty(), "{line} {field}");
            }
        }
        // From trusted ones it must not name another operation.
        for sections in ["", ROUTES] {
            let gateway = Configured::before(&service, sections).await;
            is_refused(&gateway, &service, &keyed("POST /health").field(field)).await;
            is_refused(&gateway, &service, &keyed("POST /payments/all/refunds").field(field)).await;
        }
    }
    let gateway = Configured::before(&service, ROUTES).await;
    for field in ["X-Original-URL: /payments", "X-Original-URL: /api/payments?x"] {
        let answer =
            gateway.send(&keyed("POST /payments").key(&format!("{KEY}-{}", field.len())).field(field)).await;
        assert_eq!(
            (answer.status, answer.told("x-original-url").len()),
            (201, 1),
            "a proxy that rewrites says so"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_spelt_as_it_is_documented() {
    let service = Service::start();
    let gateway = Configured::before(&service, "").await;
    for field in ["Idempotency_Key", "idempotency.key", "Idempotency~Key"] {
        let ask = Ask::new("POST /payments").body("{}").field(&format!("{field}: {KEY}"));
        is_refused(&gateway, &service, &ask).await;
        is_refused(&gateway, &service, &ask.key(KEY)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_drops_what_says_whose_request_it_is() {
    let service = Service::start();
    let by_header = "[scope]\ntenant = [\"header:x-account-id\", \"credential\"]\n";
    for (sections, field) in [
        (by_header, "X-Account-Id: ann"),
        (by_header, "Authorization: Bearer a"),
        ("", "Authorization: Bearer a"),
        ("", "X-Api-Key: a"),
        ("", "Host: shop.example"),
        ("", "Content-Type: application/json"),
        ("", "X-Forwarded-For: 203.0.113.9"),
    ] {
        let gateway = Configured::before(&service, sections).await;
        let (name, _) = field.split_once(':').unwrap();
        let ask = keyed("POST /payments").without("Host").field(field);
        let ask = if name == "Host" { ask } else { ask.field("Host: shop.example") };
        is_executed(&gateway, &service, &ask).await;
        for named in [name.to_owned(), name.to_lowercase(), name.replace('-', "_")] {
            is_refused(&gateway, &service, &ask.clone().field(&format!("Connection: close, {named}"))).await;
        }
        is_refused(&gateway, &service, &Ask::new("GET /").field(&format!("Connection: {name}"))).await;
    }
    for sections in ["", ROUTES] {
        let gateway = Configured::before(&service, sections).await;
        for named in ["Idempotency-Key", "idempotency-key", "idempotency_key"] {
            let ask = keyed("POST /payments").field(&format!("Connection: close, {named}"));
            is_refused(&gateway, &service, &ask).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_that_a_stranger_claims_do_not_reach_the_service() {
    let service = Service::start();
    let fields = [
        "X-Real-IP: 203.0.113.9",
        "True-Client-IP: 203.0.113.9",
        "CF-Connecting-IP: 203.0.113.9",
        "X-Client-IP: 203.0.113.9",
        "Client-IP: 203.0.113.9",
        "X-Forwarded-Prefix: /admin",
        "X-Forwarded-Uri: /admin",
        "X-Forwarded-Method: PUT",
        "X-Forwarded-Ssl: on",
        "X-Original-Method: PUT",
        "X-Original-Host: a",
    ];
    let names: Vec<&str> = fields.iter().map(|field| field.split_once(':').unwrap().0).collect();
    let all =
        |line: &str| fields.iter().fold(Ask::new(line).key(KEY).body("{}"), |ask, field| ask.field(field));
    let strict = Configured::before(&service, NO_TRUST).await;
    let trusting = Configured::before(&service, "").await;
    for line in ["POST /payments", "PUT /other"] {
        let answer = strict.send(&all(line)).await;
        for name in &names {
            assert!(answer.told(name).is_empty(), "{line} {name}");
        }
        assert_eq!(answer.told("x-forwarded-for"), ["127.0.0.1"]);
        let answer = trusting.send(&all(line)).await;
        for name in &names {
            assert_eq!(answer.told(name).len(), 1, "{line} {name}");
        }
        // Spelled with underscores, which CGI cannot tell apart, none of them pass.
        for gateway in [&strict, &trusting] {
            let spelt =
                fields.iter().fold(Ask::new("PUT /other"), |ask, field| ask.field(&field.replace('-', "_")));
            let answer = gateway.send(&spelt).await;
            for name in &names {
                assert!(answer.told(&name.replace('-', "_")).is_empty(), "{line} {name}");
            }
        }
    }
}
