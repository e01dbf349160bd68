use super::*;
use http::{HeaderValue, StatusCode};

fn route(operation: Option<String>, pattern: &str) -> Route {
    Route {
        operation,
        key_scope: RouteKeyScope::default(),
        pattern: Pattern::parse(pattern).unwrap(),
        protection: ValidProtection::default(),
        keep_headers: Vec::new(),
        fingerprint: FingerprintConfig::default(),
        reconcile: None,
    }
}

fn routes(patterns: &[&str]) -> Routes {
    let named = |pattern: &&str| route(Some(pattern.replace([' ', '/'], "_")), pattern);
    Routes::declared(patterns.iter().map(named).collect())
}

fn unnamed(patterns: &[&str]) -> Routes {
    Routes::declared(patterns.iter().map(|pattern| route(None, pattern)).collect())
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
fn the_most_specific_route_is_taken_and_the_query_does_not_matter() {
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
fn what_nothing_else_matches_is_the_catch_alls() {
    let routes = routes(&[
        "POST /**",
        "POST /payments",
        "POST /payments/**",
        "POST /{area}/all",
        "DELETE /payments/{id}",
    ]);
    for (method, target, operation) in [
        ("POST", "/", Some("POST__**")),
        ("POST", "/other/1/2", Some("POST__**")),
        ("POST", "/payments", Some("POST__payments")),
        ("POST", "/payments/1/refunds", Some("POST__payments_**")),
        ("DELETE", "/payments/1", Some("DELETE__payments_{id}")),
        ("DELETE", "/payments", None),
        ("PATCH", "/payments", None),
        ("GET", "/", None),
    ] {
        assert_eq!(selected(&routes, method, target).as_deref(), operation, "{method} {target}");
        assert_eq!(routes.ambiguity(&request(method, target)), None, "{method} {target}");
    }
}

#[test]
fn without_a_name_method_and_path_are_the_operation_and_the_pattern_is_its_label() {
    let routes = Routes::declared(vec![
        route(None, "PUT /payments/{id}"),
        route(None, "PUT /**"),
        route(Some("create_payment".into()), "POST /payments"),
    ]);
    assert_eq!(selected(&routes, "PUT", "/payments/7?x=y").as_deref(), Some("PUT /payments/7"));
    assert_eq!(selected(&routes, "PUT", "/refunds/7").as_deref(), Some("PUT /refunds/7"));
    for (operation, label) in [
        ("PUT /payments/7", Some("PUT /payments/{id}")),
        ("PUT /refunds/7", Some("PUT /**")),
        ("create_payment", Some("create_payment")),
        // It has a name, and this is not it.
        ("POST /payments", None),
        ("PATCH /payments", None),
        ("refund", None),
    ] {
        assert_eq!(routes.of_operation(operation).map(Route::label), label, "{operation}");
        assert_eq!(routes.metric_label(operation), label.unwrap_or(operation));
    }
}

#[test]
fn where_the_path_names_the_operation_there_is_one_way_to_write_it() {
    for routes in [
        routes(&["POST /**", "POST /payments"]),
        unnamed(&["POST /{a}", "POST /{a}/{b}", "POST /{a}/{b}/{c}"]),
    ] {
        for target in ["/x//y", "/x/../y", "/x;v=1", "/%78", "/x/%2e%2e/y", "/x/y%2Fz"] {
            let ambiguity = routes.ambiguity(&request("POST", target));
            assert_eq!(ambiguity, Some(AmbiguousRequest::Path), "{target}");
        }
        for target in ["/x", "/x/y", "/X/caf%C3%A9/1"] {
            assert_eq!(routes.ambiguity(&request("POST", target)), None, "{target}");
        }
    }
    let caught = routes(&["POST /**", "POST /payments"]);
    for target in ["/payments/", "/Payments", "/payments/.", "//payments"] {
        assert_eq!(caught.ambiguity(&request("POST", target)), Some(AmbiguousRequest::Path), "{target}");
    }
    assert_eq!(caught.ambiguity(&request("post", "/x")), Some(AmbiguousRequest::Method));
    // Nothing is promised of what brings no key and needs none, unless it may be another route's.
    let optional = route(None, "POST /**");
    let protection = optional.protection.clone().with_key(KeyRequirement::Optional);
    let optional = Routes::declared(vec![Route { protection, ..optional }, route(None, "POST /payments")]);
    assert_eq!(optional.ambiguity(&request("POST", "/x//y")), None);
    assert_eq!(optional.ambiguity(&request("POST", "/payments;v=1")), Some(AmbiguousRequest::Path));
    let mut keyed = request("POST", "/x//y");
    keyed.headers.insert("idempotency-key", HeaderValue::from_static("k"));
    assert_eq!(optional.ambiguity(&keyed), Some(AmbiguousRequest::Path));
}

/// For sets of patterns that a file may declare together, drawn at random: of those that match a path one is more specific than all the
/// others, and that one is taken.
#[test]
fn of_all_routes_that_match_one_is_the_most_specific() {
    let mut state = 1_u64;
    let mut draw = move |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut nested = 0;
    for _ in 0..2000 {
        let mut patterns: Vec<Pattern> = Vec::new();
        for _ in 0..6 {
            let mut path = String::new();
            for number in 0..draw(4) {
                path.push_str(&match draw(4) {
                    0 => format!("/{{x{number}}}"),
                    1 => "/a".to_owned(),
                    2 => "/b".to_owned(),
                    _ => "/**".to_owned(),
                });
                if path.ends_with("**") {
                    break;
                }
            }
            let pattern =
                Pattern::parse(&format!("POST {}", if path.is_empty() { "/" } else { &path })).unwrap();
            let fits = |other: &Pattern| matches!(pattern.overlap(other), Overlap::Apart | Overlap::Nested);
            if patterns.iter().all(fits) {
                patterns.push(pattern);
            }
        }
        let all: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
        let routes = routes(&all);
        for path in [
            "/", "/a", "/b", "/c", "/a/", "/a/a", "/a/b", "/b/a", "/b/c", "/c/c", "/a/b/c", "/c/b/a",
            "/a/a/a/a",
        ] {
            let matching: Vec<_> = patterns.iter().filter(|pattern| pattern.matches(path)).collect();
            let most_specific: Vec<_> = matching
                .iter()
                .filter(|one| {
                    let is_first = |other: &&&Pattern| **other == **one || one.by_specificity(other).is_lt();
                    matching.iter().all(|other| is_first(&other))
                })
                .collect();
            assert_eq!(most_specific.len(), usize::from(!matching.is_empty()), "{path}: {all:?}");
            let expected = most_specific.first().map(|pattern| pattern.as_str().replace([' ', '/'], "_"));
            assert_eq!(selected(&routes, "POST", path), expected, "{path}: {all:?}");
            nested += usize::from(matching.len() > 1);
        }
    }
    assert!(nested > 1000, "{nested}");
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
