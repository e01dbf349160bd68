use super::*;
use http::{HeaderValue, StatusCode};

fn routes(patterns: &[&str]) -> Routes {
    let route = |pattern: &&str| Route {
        operation: pattern.replace([' ', '/'], "_"),
        pattern: Pattern::parse(pattern).unwrap(),
        protection: ValidProtection::default(),
        keep_headers: Vec::new(),
        fingerprint: FingerprintConfig::default(),
        reconcile: None,
    };
    Routes::declared(patterns.iter().map(route).collect())
}

fn request(method: &str, target: &str) -> Parts {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    http::Request::builder().method(method).uri(target).body(()).unwrap().into_parts().0
}

fn selected(routes: &Routes, method: &str, target: &str) -> Option<String> {
    routes.select(&request(method, target)).map(|(operation, _)| operation)
}

const PAYMENTS: &[&str] = &[
    "POST /payments",
    "POST /payments/{id}/{part}",
    "POST /payments/{id}/refunds",
    "POST /payments/all/refunds",
    "PATCH /payments/{id}",
];

#[test]
fn the_most_exact_route_is_taken_and_the_query_does_not_matter() {
    let routes = routes(PAYMENTS);
    for (method, target, operation) in [
        ("POST", "/payments", Some("POST__payments")),
        ("POST", "/payments?x=/refunds", Some("POST__payments")),
        ("POST", "http://host/payments", Some("POST__payments")),
        ("POST", "/payments/1/refunds", Some("POST__payments_{id}_refunds")),
        ("POST", "/payments/all/refunds", Some("POST__payments_all_refunds")),
        ("POST", "/payments/1/notes", Some("POST__payments_{id}_{part}")),
        ("PATCH", "/payments/1", Some("PATCH__payments_{id}")),
        ("PATCH", "/payments", None),
        ("POST", "/refunds", None),
        ("POST", "/", None),
        ("GET", "/payments", None),
        ("PUT", "/payments", None),
        ("DELETE", "/payments", None),
        ("HEAD", "/payments", None),
        ("OPTIONS", "*", None),
    ] {
        assert_eq!(selected(&routes, method, target).as_deref(), operation, "{method} {target}");
        assert_eq!(routes.ambiguity(&request(method, target)), None, "{method} {target}");
    }
}

#[test]
fn another_spelling_of_a_protected_path_is_found_out() {
    let routes = routes(&["POST /payments", "PATCH /payments/{id}", "POST /Invoices/"]);
    for (method, target) in [
        ("POST", "/payments/"),
        ("POST", "//payments"),
        ("POST", "/./payments"),
        ("POST", "/x/../payments"),
        ("POST", "/x/%2e%2e/payments?a=b"),
        ("POST", "/x/..;/payments"),
        ("POST", "/%70ayments"),
        ("POST", "/Payments"),
        ("POST", "/payments;jsessionid=1"),
        ("POST", "/invoices"),
        ("POST", "/Invoices"),
        ("PATCH", "/payments%2F1"),
        ("PATCH", "/payments/1/"),
        ("PATCH", "/PAYMENTS/a%2Fb"),
    ] {
        assert_eq!(selected(&routes, method, target), None, "{method} {target}");
        assert_eq!(
            routes.ambiguity(&request(method, target)),
            Some(AmbiguousRequest::Path),
            "{method} {target}"
        );
    }
    for (method, target) in [
        ("POST", "/paymentsx/"),
        ("POST", "/payments/1/"),
        ("POST", "/x//y"),
        ("POST", "/.well-known/x"),
        ("GET", "/payments/"),
        ("PUT", "//payments"),
        ("DELETE", "/Payments"),
    ] {
        assert_eq!(routes.ambiguity(&request(method, target)), None, "{method} {target}");
    }
    assert_eq!(routes.ambiguity(&request("post", "/payments")), Some(AmbiguousRequest::Method));
    assert_eq!(routes.ambiguity(&request("Post", "/other")), None);
}

#[test]
fn a_method_in_a_header_is_no_way_around_protection() {
    let routes = routes(&["POST /payments", "PATCH /payments/{id}"]);
    let meaning = |method, target, name: &'static str, meant: &'static str| {
        let mut parts = request(method, target);
        parts.headers.append(name, meant.parse().unwrap());
        routes.ambiguity(&parts)
    };
    for (method, target, name, meant) in [
        ("POST", "/payments/1", "x-http-method-override", "PATCH"),
        ("POST", "/payments/1/", "x-http-method-override", "patch"),
        ("GET", "/payments", "x-method-override", "POST"),
        // Under the key of one payment, two things.
        ("POST", "/payments", "x-http-method", "DELETE"),
        ("POST", "/payments", "x-http-method-override", "(none)"),
    ] {
        let ambiguity = meaning(method, target, name, meant);
        assert_eq!(ambiguity, Some(AmbiguousRequest::Override), "{method} {target} {name}: {meant}");
    }
    let mut several = request("DELETE", "/payments/1");
    for meant in ["PUT", "POST", "PATCH"] {
        several.headers.append("x-http-method-override", meant.parse().unwrap());
    }
    assert_eq!(routes.ambiguity(&several), Some(AmbiguousRequest::Override), "of several, any");
    for (method, target, meant) in
        [("POST", "/payments", "POST"), ("POST", "/other", "PATCH"), ("PUT", "/payments", "DELETE")]
    {
        assert_eq!(
            meaning(method, target, "x-http-method-override", meant),
            None,
            "{method} {target} {meant}"
        );
    }
}

#[test]
fn without_routes_every_post_and_patch_is_an_operation_of_its_own_name() {
    let routes = Routes::unconfigured(false);
    assert_eq!(selected(&routes, "POST", "/a/../b?c=d").as_deref(), Some("POST /a/../b"));
    assert_eq!(selected(&routes, "PATCH", "/a").as_deref(), Some("PATCH /a"));
    for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "post"] {
        assert_eq!(selected(&routes, method, "/a"), None);
    }
    assert_eq!(routes.ambiguity(&request("POST", "//a/../b/")), None, "without a key it passes");
    let mut keyed = request("POST", "//a/../b/");
    keyed.headers.insert("idempotency-key", HeaderValue::from_static("k"));
    assert_eq!(routes.ambiguity(&keyed), Some(AmbiguousRequest::Path));
    assert_eq!(Routes::unconfigured(true).ambiguity(&request("POST", "//a")), Some(AmbiguousRequest::Path));
    assert_eq!(routes.ambiguity(&request("patch", "/a")), Some(AmbiguousRequest::Method));
    assert_eq!(routes.metric_label("POST /a"), "unconfigured");
    let key_of = |routes: &Routes| routes.select(&request("POST", "/a")).unwrap().1.key;
    assert_eq!(key_of(&routes), KeyRequirement::Optional);
    assert_eq!(key_of(&Routes::unconfigured(true)), KeyRequirement::Required);
}

#[test]
fn what_is_refused_is_told_so_in_a_problem_document() {
    let response = AmbiguousRequest::Path.into_response();
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (StatusCode::BAD_REQUEST, &HeaderValue::from_static("application/problem+json"))
    );
    let document: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!((&document["status"], &document["type"]), (&400.into(), &"about:blank".into()));
}
