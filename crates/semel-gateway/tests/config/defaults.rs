//! What a route is where it does not say, by its section, the defaults and the profile.

use crate::right::{UPSTREAM, right, route};
use semel::Settling;
use semel_gateway::config::show_duration;
use semel_gateway::route::Route;
use semel_tower::{KeyRequirement, OutcomeClass};
use std::time::Duration;

#[test]
fn defaults_hold_where_a_route_says_nothing() {
    let config = right(&format!(
        "{UPSTREAM}[defaults]\nkey = \"optional\"\nretention = \"48h\"\nlease = \"2m\"\nkeep_headers = [\"x-cost\"]\n\
         [defaults.outcome]\n503 = \"retryable\"\n404 = \"released\"\n[defaults.fingerprint]\nignore = [\"/trace\"]\n\
         [[route]]\nmatch = \"POST /**\"\n[[route]]\noperation = \"b\"\nmatch = \"DELETE /b\"\nkey = \"required\"\n\
         retention = \"72h\"\ntimeout = \"90s\"\n[route.outcome]\n404 = \"completed\"\n[route.fingerprint]\nheaders = [\"api-version\"]\n"
    ));
    let [all, own] = config.routes.routes() else { panic!("two routes") };
    assert_eq!((all.operation.as_deref(), all.label()), (None, "POST /**"));
    assert_eq!(
        (all.protection.key, own.protection.key),
        (KeyRequirement::Optional, KeyRequirement::Required)
    );
    let retention = |route: &Route| show_duration(route.protection.policy.retention);
    assert_eq!([retention(all), retention(own)], ["2d", "3d"]);
    assert_eq!(own.protection.timeout, Duration::from_secs(90), "below the lease of the defaults");
    assert_eq!([&all.keep_headers, &own.keep_headers], [&["x-cost"]; 2]);
    let class = |route: &Route, status| {
        route.protection.outcomes.class_of(http::StatusCode::from_u16(status).unwrap())
    };
    assert_eq!([class(all, 503), class(own, 503)], [OutcomeClass::Retryable; 2]);
    assert_eq!([class(all, 404), class(own, 404)], [OutcomeClass::Released, OutcomeClass::Completed]);
    assert_eq!(
        (&own.fingerprint.ignore, &own.fingerprint.headers),
        (&vec!["/trace".into()], &vec!["api-version".into()])
    );
}

#[test]
fn clients_of_adcp_send_their_key_in_the_body() {
    let sources = |settings: &str| {
        let config = right(&format!("{UPSTREAM}{settings}"));
        config.key_sources.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(sources("profile = \"adcp\"\n"), ["json:/idempotency_key", "header:idempotency-key"]);
    assert_eq!(sources("profile = \"adcp\"\n[key]\nfrom = [\"header:x-key\"]\n"), ["header:x-key"]);
    assert_eq!(sources("profile = \"ietf\"\n"), ["header:idempotency-key"]);
}

#[test]
fn a_route_may_have_its_key_elsewhere() {
    let config = right(&format!(
        "{UPSTREAM}[key]\nfrom = [\"header:X-Key\"]\nmin_length = 3\n[defaults.key]\nfrom = [\"json:/key\"]\nneed = \"optional\"\n\
         [[route]]\nmatch = \"POST /a\"\nkey = \"required\"\n[[route]]\nmatch = \"POST /b\"\n\
         [route.key]\nfrom = [\"header:x-b\", \"json:/b/key\"]\nmax_length = 40\n"
    ));
    let sources =
        |sources: &semel::key::KeySources| sources.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(sources(&config.key_sources), ["header:x-key"]);
    let [a, b] = config.routes.routes() else { panic!("two routes") };
    assert_eq!((a.protection.key, b.protection.key), (KeyRequirement::Required, KeyRequirement::Optional));
    assert_eq!(sources(&a.protection.key_sources), ["json:/key"]);
    assert_eq!(sources(&b.protection.key_sources), ["header:x-b", "json:/b/key"]);
    assert_eq!(a.protection.key_rules, None);
    let rules = b.protection.key_rules.unwrap();
    assert_eq!((rules.min, rules.max), (3, 40));
}

#[test]
fn defaults_without_a_route_are_the_rules_of_every_post_and_patch() {
    let config = right(&format!(
        "{UPSTREAM}[defaults]\nkey = \"required\"\nretention = \"48h\"\n[defaults.reconcile]\n\
         poll = \"http://127.0.0.1:9000/operations/{{operation_id}}\"\n"
    ));
    let all = config.routes.for_all().expect("no route is declared");
    assert_eq!(all.protection.key, KeyRequirement::Required);
    assert_eq!(show_duration(all.protection.policy.retention), "2d");
    assert!(all.reconcile.is_some() && matches!(all.protection.policy.settling, Settling::Poll { .. }));
    let optional = right(&format!("{UPSTREAM}[defaults]\nretention = \"48h\"\n"));
    assert_eq!(optional.routes.for_all().unwrap().protection.key, KeyRequirement::Optional);
}

#[test]
fn the_host_counts_unless_the_file_or_the_route_ignores_it() {
    let recipe = |common: &str, of_route: &str| {
        let config = right(&format!(
            "{UPSTREAM}[fingerprint]\n{common}[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\n[route.fingerprint]\n{of_route}"
        ));
        config.routes.routes()[0].protection.recipe.to_text().to_owned()
    };
    let (counts, ignore) = ("host = \"counts\"\n", "host = \"ignore\"\n");
    let (counted, ignored) = (r#"{"host":{},"version":2}"#, r#"{"version":2}"#);
    assert_eq!([recipe("", ""), recipe(counts, ""), recipe(ignore, counts)], [counted; 3]);
    assert_eq!([recipe(ignore, ""), recipe("", ignore), recipe(counts, ignore)], [ignored; 3]);
    let aliases = "host_aliases = [[\"B\", \"a:80\"]]\n";
    assert_eq!(recipe(aliases, ""), r#"{"host":{"aliases":[["a","b"]]},"version":2}"#);
    assert_eq!(recipe(aliases, ignore), ignored);
    let all = right(&format!("{UPSTREAM}[fingerprint]\n{ignore}"));
    assert_eq!(all.routes.for_all().unwrap().protection.recipe.to_text(), ignored);
}

#[test]
fn bodies_are_compared_by_their_bytes_under_ucp_unless_the_route_says_otherwise() {
    let recipe = |profile: &str, of_route: &str| {
        let config = right(&format!(
            "{UPSTREAM}profile = \"{profile}\"\n[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\n[route.fingerprint]\n{of_route}"
        ));
        config.routes.routes()[0].protection.recipe.to_text().to_owned()
    };
    let (bytes, meaning) = (r#"{"bytes":true,"host":{},"version":3}"#, r#"{"host":{},"version":2}"#);
    assert_eq!([recipe("ucp", ""), recipe("ietf", "bytes = true\n")], [bytes; 2]);
    assert_eq!([recipe("ietf", ""), recipe("ucp", "bytes = false\n")], [meaning; 2]);
    let all = right(&format!("{UPSTREAM}profile = \"ucp\"\n"));
    assert_eq!(all.routes.for_all().unwrap().protection.recipe.to_text(), bytes);
}

#[test]
fn a_body_is_kept_as_long_as_its_record_unless_said_otherwise() {
    let body = |settings: &str| show_duration(route(settings).protection.policy.body_retention);
    assert_eq!(body("retention = \"1h\""), "1h");
    assert_eq!(body("retention = \"72h\""), "3d");
    assert_eq!(body("retention = \"72h\"\nbody_retention = \"1h\""), "1h");
}

#[test]
fn each_profile_has_the_scope_form_and_ignored_members_of_its_protocol() {
    use semel::key::KeyForm;
    use semel_gateway::route::RouteKeyScope::{Operation, Path, Tenant};
    for (profile, scope, form, ignored) in [
        ("ietf", Operation, KeyForm::Visible, 0),
        ("stripe", Tenant, KeyForm::Visible, 0),
        ("acp", Path, KeyForm::Visible, 0),
        ("ucp", Tenant, KeyForm::Visible, 0),
        ("adcp", Tenant, KeyForm::Token, 4),
        ("iceberg", Tenant, KeyForm::Uuid7, 0),
    ] {
        let settings =
            format!("{UPSTREAM}profile = \"{profile}\"\n[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\n");
        let config = right(&settings);
        let route = &config.routes.routes()[0];
        assert_eq!((route.key_scope, config.key_rules.form), (scope, form), "{profile}");
        assert_eq!(route.fingerprint.ignore.len(), ignored, "{profile}");
        // Each of them is a setting.
        let told = "key.scope = \"operation\"\n[route.fingerprint]\nbytes = false\nignore = [\"/trace\"]\n";
        let config = right(&format!("{settings}{told}"));
        let route = &config.routes.routes()[0];
        assert_eq!(route.key_scope, Operation);
        assert_eq!(route.fingerprint.ignore, ["/trace"]);
    }
    let config = right(&format!("{UPSTREAM}profile = \"iceberg\"\n[key]\nform = \"visible\"\n"));
    assert_eq!(config.key_rules.form, KeyForm::Visible);
}

#[test]
fn a_profile_of_ones_own_may_remember_keys_for_as_long_as_it_likes() {
    right(&format!(
        "{UPSTREAM}profile = \"brief\"\n[profiles.brief]\nextends = \"acp\"\n[defaults]\nretention = \"2s\"\n"
    ));
}
