//! Every route of the admin API, asked by everybody.

use crate::support::{AdminApi, Ask, Opening, TOKEN, get, problem};
use semel_gateway::Secret;
use semel_gateway::identity::{Directory, ProxyIdentity, ProxyRoles, Role, TenantPattern, Tenants, User};
use semel_gateway::tenant::Network;
use std::collections::BTreeSet;

pub(crate) fn user(name: &str, role: Role, tenants: Tenants) -> User {
    User { name: name.into(), token: Secret::new(format!("token-of-{name}")).unwrap(), role, tenants }
}

/// One user of each role, and a proxy on this machine.
pub(crate) fn people() -> Directory {
    let elsewhere = Tenants::Only(vec![TenantPattern::parse("acct_*").unwrap()]);
    Directory {
        token: None,
        users: vec![
            user("reader", Role::Reader, Tenants::All),
            user("operator", Role::Operator, Tenants::All),
            user("boss", Role::Admin, Tenants::All),
            user("limited", Role::Operator, elsewhere),
        ],
        proxy: Some(ProxyIdentity {
            header: "x-forwarded-user".parse().unwrap(),
            roles: Some(ProxyRoles {
                header: "x-forwarded-groups".parse().unwrap(),
                groups: vec![(Role::Reader, "support".into()), (Role::Operator, "oncall".into())],
            }),
            trusted_peers: vec![Network::parse("127.0.0.1").unwrap()],
        }),
    }
}

async fn admin() -> AdminApi {
    AdminApi::with(Opening { people: people(), ..Opening::default() }).await
}

pub(crate) fn by(name: &str, ask: Ask) -> Ask {
    let token = if name == "admin" { TOKEN.to_owned() } else { format!("token-of-{name}") };
    ask.header("Authorization", format!("Bearer {token}"))
}

const MISSING: &str = "0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4";

/// Every route and the least role that may use it; `None`: everybody, without a token.
const ROUTES: [(&str, &str, Option<Role>); 21] = [
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    // On this machine.
    ("GET", "/metrics", None),
    ("GET", "/v1/openapi.json", None),
    ("POST", "/v1/webhooks/{source}", None),
    ("GET", "/v1/whoami", Some(Role::Reader)),
    ("GET", "/v1/operations", Some(Role::Reader)),
    ("GET", "/v1/operations/{id}", Some(Role::Reader)),
    ("GET", "/v1/outbox", Some(Role::Reader)),
    ("GET", "/v1/outbox/{id}", Some(Role::Reader)),
    ("GET", "/v1/clock", Some(Role::Reader)),
    ("GET", "/v1/audit", Some(Role::Reader)),
    ("GET", "/v1/audit/export", Some(Role::Reader)),
    ("GET", "/v1/stats", Some(Role::Reader)),
    ("POST", "/v1/operations/{id}/resolve", Some(Role::Operator)),
    ("POST", "/v1/operations/{id}/poll", Some(Role::Operator)),
    ("POST", "/v1/outbox/{id}/requeue", Some(Role::Operator)),
    ("POST", "/v1/resolutions", Some(Role::Admin)),
    ("POST", "/v1/outbox/{id}/drop", Some(Role::Admin)),
    ("POST", "/v1/reload", Some(Role::Admin)),
    ("POST", "/v1/clock/accept", Some(Role::Admin)),
];

#[tokio::test]
async fn every_route_asks_for_its_role() {
    let admin = admin().await;
    let described = get("/v1/openapi.json").send(&admin.admin).await.json();
    let paths = described["paths"].as_object().unwrap().iter();
    let described: BTreeSet<(String, String)> = paths
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let listed = ROUTES.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert_eq!(described, listed, "a route is missing in this test, or gone");

    for (method, path, least) in ROUTES {
        let path = path.replace("{id}", MISSING).replace("{source}", "bank");
        let ask = || Ask::new(method, &path).line("Host: localhost");
        let without = ask().send(&admin.admin).await;
        assert_eq!(without.status == 401, least.is_some(), "{method} {path} without a token: {without:?}");
        for (name, role) in [
            ("reader", Role::Reader),
            ("operator", Role::Operator),
            ("boss", Role::Admin),
            ("admin", Role::Admin),
        ] {
            let answer = by(name, ask()).send(&admin.admin).await;
            assert_ne!(answer.status, 401, "{method} {path} by {name}");
            let refused = answer.status == 403 && problem(&answer) == "admin_forbidden";
            assert_eq!(
                refused,
                least.is_some_and(|least| role < least),
                "{method} {path} by {name}: {answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_history_names_whoever_was_authenticated_and_not_what_they_claim() {
    let admin = admin().await;
    let groups = |ask: Ask, name: &str, groups: &str| {
        ask.header("X-Forwarded-User", name).header("X-Forwarded-Groups", groups)
    };
    let body = r#"{"outcome":"completed","reason":"seen at the bank","operator":"somebody else"}"#;
    for (number, actor) in ["token:operator", "token:admin", "proxy:ada@example.com"].into_iter().enumerate()
    {
        let id = admin.doubtful(&format!("key-0123456789abcde{number}")).await;
        let ask = crate::support::resolve(id, body);
        let ask = match actor {
            "token:operator" => by("operator", ask),
            "token:admin" => by("admin", ask),
            _ => groups(ask, "ada@example.com", "support, oncall"),
        };
        let answer = ask.send(&admin.admin).await;
        assert_eq!(answer.status, 200, "{actor}: {answer:?}");
        let history = answer.json()["history"].as_array().unwrap().clone();
        assert_eq!(history.last().unwrap()["actor"], format!("operator:{actor}"));
    }
    let answer = groups(get("/v1/whoami"), "ada@example.com", "support").send(&admin.admin).await.json();
    assert_eq!((&answer["actor"], &answer["role"]), (&"proxy:ada@example.com".into(), &"reader".into()));
    let answer = groups(get("/v1/whoami"), "eve@example.com", "sales").send(&admin.admin).await;
    assert_eq!((answer.status, problem(&answer)), (403, "admin_forbidden".into()));
}

#[tokio::test]
async fn other_tenants_are_not_there_for_whoever_is_limited() {
    let admin = admin().await;
    // Of the one tenant that callers without credentials have.
    let id = admin.doubtful("key-0123456789abcdef").await;
    let show = format!("/v1/operations/{id}");
    let operations = by("limited", get("/v1/operations")).send(&admin.admin).await.json();
    assert_eq!(operations["operations"].as_array().unwrap().len(), 0);
    let tenant = by("operator", get(&show)).send(&admin.admin).await.json()["tenant"].clone();
    let named = format!("/v1/operations?tenant={}", tenant.as_str().unwrap());
    assert_eq!(
        by("limited", get(&named)).send(&admin.admin).await.json()["operations"].as_array().unwrap().len(),
        0
    );
    let body = r#"{"outcome":"completed","reason":"seen"}"#;
    for ask in [get(&show), crate::support::resolve(id, body)] {
        let answer = by("limited", ask).send(&admin.admin).await;
        assert_eq!((answer.status, problem(&answer)), (404, "admin_no_such_operation".into()));
    }
    let stats = by("limited", get("/v1/stats")).send(&admin.admin).await.json();
    assert_eq!(stats["unknown"], 0, "counts are of their tenants too: {stats}");
    let stats = by("operator", get("/v1/stats")).send(&admin.admin).await.json();
    assert_eq!(stats["unknown"], 1);
    let answer = by("limited", get("/v1/outbox")).send(&admin.admin).await;
    assert_eq!(answer.status, 403);
}

#[tokio::test]
async fn a_reader_sees_the_beginning_of_keys_alone() {
    let admin = admin().await;
    let id = admin.doubtful("key-0123456789abcdef").await;
    let full = format!("/v1/operations/{id}?full_key=true");
    let answer = by("reader", get(&full)).send(&admin.admin).await;
    assert_eq!((answer.status, problem(&answer)), (403, "admin_forbidden".into()));
    let shown = by("reader", get(&format!("/v1/operations/{id}"))).send(&admin.admin).await.json();
    assert_eq!(shown["key"], "key-0123…");
    let shown = by("operator", get(&full)).send(&admin.admin).await.json();
    assert_eq!(shown["key"], "key-0123456789abcdef");
}

#[tokio::test]
async fn operations_are_selected_by_error_and_resource() {
    let admin = admin().await;
    for number in 0..3 {
        admin.doubtful(&format!("key-0123456789abcde{number}")).await;
    }
    let of = async |query: &str| {
        let answer = by("reader", get(&format!("/v1/operations?{query}"))).send(&admin.admin).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let error = of("limit=1").await["operations"][0]["last_error"].as_str().unwrap().to_owned();
    assert_eq!(of(&format!("error={error}")).await["operations"].as_array().unwrap().len(), 3);
    assert_eq!(of("error=another").await["operations"].as_array().unwrap().len(), 0);
    assert_eq!(of("resource=payment%2Fpay_1").await["operations"].as_array().unwrap().len(), 0);
    // Page by page nothing is left out and nothing comes twice.
    let (mut seen, mut cursor) = (BTreeSet::new(), String::new());
    for _ in 0..3 {
        let page = of(&format!("error={error}&limit=1&cursor={cursor}")).await;
        seen.insert(page["operations"][0]["operation_id"].as_str().unwrap().to_owned());
        cursor = page["next_cursor"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!((seen.len(), cursor.as_str()), (3, ""));
}
