//! What a right configuration comes to.

use crate::read;
use crate::tls::TLS;
use semel::key::KeySyntax;
use semel::problem::{Code, Profile};
use semel::{Expired, InFlight, OperationId, Policy, Quota, Rate, Settling, Stale, StoreResponse};
use semel_gateway::Limits;
use semel_gateway::config::{
    AllowedOrigins, Config, CorsConfig, Forget, LogFormat, WorkerConfig, show_duration,
};
use semel_gateway::route::Route;
use semel_gateway::tenant::ScopeConfig;
use semel_tower::{KeyRequirement, OutcomeClass, Protection};
use std::time::Duration;

#[track_caller]
pub(crate) fn right(toml: &str) -> Config {
    read(toml).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What may stand in place of `store` at the top.
pub(crate) const STORE: &str = r#"
[store]
url = "postgres://semel@h1,h2:5433,h3/db"
replication = "synchronous"
dangerously_accept_asynchronous_replication = false
"#;

pub(crate) const UPSTREAM: &str = "upstream = \"http://127.0.0.1:9000\"\n";

#[track_caller]
pub(crate) fn route(settings: &str) -> Route {
    let toml = format!("{UPSTREAM}[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\n{settings}");
    right(&toml).routes.routes()[0].clone()
}

/// Every setting that there is.
const ALL: &str = r#"
upstream = "http://127.0.0.1:9000"
listen   = "127.0.0.1:8090"
store    = "postgres://app:word@db/payments"
profile  = "stripe"
store_timeout = "500ms"
docs     = "https://docs.example.com/errors/"

[key]
from = ["header:x-idempotency-key", "json:/idempotency_key"]
syntax = "structured"
min_length = 20
max_length = 100
form = "token"
scope = "tenant"
former_scope = "operation"

[admin]
listen = "0.0.0.0:8091"
token  = "env:SET"

[[admin.user]]
name    = "oncall"
token   = "a-token-of-their-own"
role    = "operator"
tenants = ["acct_*"]

[admin.identity]
header        = "x-forwarded-user"
roles         = { header = "x-forwarded-groups", reader = "support", operator = "oncall" }
trusted_peers = ["10.0.0.5"]

[scope]
tenant = ["header:X-Account-Id", "jwt:sub", "forward-auth"]
replay_check = "forward-auth"
trusted_peers = ["10.0.0.0/8", "::1"]
[scope.jwt]
secret = "env:SET"
audience = ["shop", "till"]
issuer = ["https://issuer.example"]
leeway = "5s"
[scope.forward_auth]
url = "http://127.0.0.1:9200/auth?for=shop"
tenant_header = "X-Tenant"
headers = ["Cookie"]
deadline = "500ms"
cache = "10s"

[clock]
trust = "always"
max_step = "10m"
hold = "5m"

[cache]
url     = "redis://cache.internal:6380/1"
max_age = "10m"
timeout = "3ms"
guard   = false

[quota]
live_keys = 100000
new_keys_per_second = 50
burst = 200
waiters = 64
waiters_per_tenant = 8
[[quota.tenant]]
name = "acme"
live_keys = 1000000

[cors]
allow_origins = ["https://app.example", "http://localhost:3000", "capacitor://localhost"]
allow_methods = ["POST", "PURGE"]
allow_headers = ["X-Mine"]
allow_credentials = true
max_age = "1h"

[[route]]
operation = "create_payment"
formerly = ["pay", "POST /pay/{id}"]
match     = "POST /payments"
key       = "optional"
lease     = "60s"
timeout   = "40s"
retention = "72h"
body_retention = "24h"
tombstone = "30d"
expired   = "new"
in_flight = "wait:5s"
stale     = "resume"
store_response = "reference"
max_request_body = "2MiB"
max_stored_response = "64KiB"
keep_headers = ["X-Cost"]
[route.outcome]
503 = "retryable"
409 = "released"
[route.fingerprint]
ignore = ["/metadata/trace_id"]
only = ["/amount", "/currency"]
headers = ["API-Version"]
bytes = false
normalise = { "/currency" = "lowercase", "/amount" = "decimal" }
[route.fingerprint.defaults]
"/currency" = "EUR"
"/amount" = 10
[route.reconcile]
poll = "http://127.0.0.1:9000/operations/{operation_id}"
every = "10s"
attempts = 3
absence_is_proof = true

[[route]]
operation = "refund"
match     = "POST /payments/{id}/refunds"

[[webhook]]
source  = "provider"
secrets = ["env:SEMEL_WEBHOOK_SECRET", "whsec_YW5vdGhlci1zZWNyZXQtdGhhdC1pcy1pbi1jbGVhcg=="]

[fingerprint]
host = "counts"
host_aliases = [["api.example", "api.internal"]]

[worker]
in_gateway = false
forget = "soft"
audit_retention = "90d"

[outbox]
sink = "http://127.0.0.1:9100/events?tenant=7"
secret = "env:SET"
attempts = 5
retry_every = "2s"

[encryption]
keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }, { id = "2026-05", key = "c2VhbGluZy1rZXktaW4tdGhlLWNsZWFyLTMyLWJ5dGU=" }]
seal_with = "2026-11"
plain = "refused"

[limits]
min_body_rate = "2KiB"
pass_through_timeout = "15m"
header_bytes = "16KiB"
header_timeout = "5s"
body_timeout = "6s"
idle_timeout = "7s"
connections = 8
requests_in_flight = 9
body_memory = "64MiB"
pass_through_body = "10MiB"
connect_timeout = "11s"
upstream_give_up = "12m"
upstream_idle_timeout = "13s"
upstream_idle_connections = 14
drain = "15s"

[logs]
format = "json"
level = "debug"

[telemetry]
otlp = "http://127.0.0.1:4318"
service_name = "payments"
sampling = 0.25
metrics = true
metrics_every = "30s"

[console]
enabled = true
session = "4h"
runbook = { create_payment = "https://wiki.example/payments#doubt" }
[[console.link]]
name = "Bank"
url = "https://bank.example/search?q={operation_id}"
"#;

const NATS: &str = r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "nats://me:word@10.0.0.1:4222, nats://t0ken@10.0.0.2:4222"
subject = "shop.payments"
stream = "PAYMENTS"
"#;

const RABBITMQ: &str = r#"
upstream = "http://127.0.0.1:9000"
[outbox]
sink = "amqp://me:w%3Frd@10.0.0.1:5672/shop?heartbeat=5"
exchange = "payments"
"#;

/// Where files of keys are that tests of tokens use too.
pub(crate) const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scope/keys");

const JWKS: &str = r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["jwt:sub"]
[scope.jwt]
jwks = "/etc/semel/jwks.json"
audience = ["shop"]
"#;

const PUBLIC_KEY: &str = r#"
upstream = "http://127.0.0.1:9000"
[scope]
tenant = ["jwt:sub"]
[scope.jwt]
public_key = "/etc/semel/rsa-public.pem"
dangerous_any_audience = true
"#;

#[test]
fn keys_of_tokens_are_in_files_and_tokens_for_anybody_are_warned_of() {
    let of = |toml: &str| right(&toml.replace("/etc/semel", KEYS)).scope;
    let (jwks, public_key) = (of(JWKS), of(PUBLIC_KEY));
    let keys = jwks.jwt.as_ref().unwrap().keys.to_string();
    assert_eq!(keys, format!("1 key (ES256) in {KEYS}/jwks.json"));
    assert_eq!(public_key.jwt.as_ref().unwrap().keys.to_string(), "1 key (RS256)");
    let warned = |scope: &ScopeConfig| scope.words().iter().any(|words| words.contains("dangerous"));
    assert!(!warned(&jwks) && warned(&public_key));
}

#[test]
fn events_go_to_brokers_too_and_no_password_is_shown() {
    for (toml, shown) in [
        (NATS, "nats://10.0.0.1:4222, nats://10.0.0.2:4222, under shop.payments.KIND in the stream PAYMENTS"),
        (RABBITMQ, "amqp://10.0.0.1:5672/shop, to the exchange payments"),
    ] {
        let config = right(toml);
        assert_eq!(config.outbox.as_ref().unwrap().sink.to_string(), shown);
        let all = format!("{config:?}");
        assert!(!["word", "w%3Frd", "t0ken"].iter().any(|secret| all.contains(secret)), "{all}");
    }
}

#[test]
fn every_setting_is_taken() {
    let config = right(ALL);
    assert_eq!(config.upstream, "http://127.0.0.1:9000");
    assert_eq!((config.listen.port(), config.admin.listen.port()), (8090, 8091));
    assert_eq!(config.store.to_string(), "postgres://app@db/payments");
    assert_eq!(
        (config.profile.profile(), config.store_timeout),
        (Profile::Stripe, Duration::from_millis(500))
    );
    assert_eq!(config.docs.page(Code::KeyMissing), "https://docs.example.com/errors/idempotency_key_missing");
    let key = config.key_rules;
    assert_eq!((key.syntax, key.min, key.max), (KeySyntax::Structured, 20, 100));
    assert!(
        config
            .admin
            .people
            .token
            .as_ref()
            .unwrap()
            .matches(b"whsec_dGhlLWZpcnN0LXNlY3JldC1pbi10aGUtZW52aXJvbm1lbnQ=")
    );
    let sources: Vec<_> = config.scope.tenant.iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["header:x-account-id", "jwt:sub", "forward-auth"]);
    let jwt = config.scope.jwt.as_ref().unwrap();
    assert_eq!((jwt.keys.to_string().as_str(), jwt.leeway), ("1 key (HS256)", Duration::from_secs(5)));
    assert_eq!(jwt.audience, Some(vec!["shop".into(), "till".into()]));
    assert_eq!(jwt.issuer, Some(vec!["https://issuer.example".into()]));
    let asked = config.scope.forward_auth.as_ref().unwrap();
    assert_eq!(asked.url.to_string(), "http://127.0.0.1:9200/auth?for=shop");
    assert_eq!(
        (asked.tenant_header.as_str(), asked.headers.as_slice()),
        ("x-tenant", &[http::header::COOKIE][..])
    );
    assert_eq!((asked.deadline, asked.cache), (Duration::from_millis(500), Some(Duration::from_secs(10))));
    assert_eq!(
        config.scope.words(),
        [
            "a bearer token is verified with 1 key (HS256), and its claim `sub` names the tenant",
            "http://127.0.0.1:9200/auth identifies callers; without its answer nothing is executed; its answers are cached for 10s",
            "http://127.0.0.1:9200/auth is asked before every replay: a revoked credential gets none",
        ]
    );
    let peers: Vec<_> = config.scope.trusted_peers.iter().map(ToString::to_string).collect();
    assert_eq!(peers, ["10.0.0.0/8", "::1"]);
    let cache = config.cache.as_ref().unwrap();
    assert_eq!(cache.url.to_string(), "redis://cache.internal:6380/1");
    assert_eq!((cache.max_age, cache.timeout), (Duration::from_secs(600), Duration::from_millis(3)));
    assert!(!cache.guard && cache.ca.is_none());
    let rate = Some(Rate { per_second: 50, burst: 200 });
    assert_eq!(config.quota.keys.of("anybody"), Quota { live_keys: Some(100_000), new_keys: rate });
    assert_eq!(config.quota.keys.of("acme"), Quota { live_keys: Some(1_000_000), new_keys: rate });
    assert_eq!((config.quota.waiters, config.quota.waiters_per_tenant), (64, 8));
    let origins = ["https://app.example", "http://localhost:3000", "capacitor://localhost"];
    assert_eq!(
        config.cors,
        Some(CorsConfig {
            origins: AllowedOrigins::Listed(origins.map(str::to_owned).into()),
            methods: Some(vec![http::Method::POST, "PURGE".parse().unwrap()]),
            headers: Some(vec![http::HeaderName::from_static("x-mine")]),
            credentials: true,
            max_age: Duration::from_secs(60 * 60),
        })
    );
    let webhook = &config.webhooks[0];
    assert_eq!((webhook.source.as_str(), webhook.secrets.len()), ("provider", 2));
    assert_eq!(
        config.worker,
        WorkerConfig {
            in_gateway: false,
            forget: Forget::Soft,
            audit_retention: Duration::from_secs(90 * 86_400)
        }
    );
    let outbox = config.outbox.unwrap();
    assert_eq!((outbox.attempts, outbox.retry_every), (5, Duration::from_secs(2)));
    assert_eq!(outbox.sink.to_string(), "http://127.0.0.1:9100/events", "a query may hold a secret");
    assert_eq!(config.logs.format, LogFormat::Json);
    assert_eq!(config.logs.level.to_string(), "debug");
    assert_eq!(
        config.limits,
        Limits {
            header_bytes: 16 * 1024,
            header_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(6),
            min_body_rate: 2048,
            pass_through_timeout: Duration::from_secs(900),
            idle_timeout: Duration::from_secs(7),
            connections: 8,
            requests_in_flight: 9,
            pass_through_body: Some(10 << 20),
            connect_timeout: Duration::from_secs(11),
            upstream_give_up: Duration::from_secs(12 * 60),
            upstream_idle_timeout: Duration::from_secs(13),
            upstream_idle_connections: 14,
            drain: Duration::from_secs(15),
        }
    );
    assert_eq!(config.body_memory, 64 << 20);
}

#[test]
fn a_route_becomes_the_protection_of_its_operation() {
    let config = right(ALL);
    let [payment, refund] = config.routes.routes() else { panic!("two routes") };
    let protection = &payment.protection;
    assert_eq!((protection.key, protection.timeout), (KeyRequirement::Optional, Duration::from_secs(40)));
    assert_eq!((protection.max_request_body, protection.max_stored_response), (2 << 20, 64 << 10));
    assert_eq!(
        *protection.policy,
        Policy {
            lease: Duration::from_secs(60),
            retention: Duration::from_secs(72 * 60 * 60),
            body_retention: Duration::from_secs(24 * 60 * 60),
            tombstone: Duration::from_secs(30 * 24 * 60 * 60),
            expired: Expired::New,
            stale: Stale::Resume,
            in_flight: InFlight::Wait(Duration::from_secs(5)),
            settling: Settling::Poll { first: Duration::from_secs(10) },
            store_response: StoreResponse::Reference,
        }
    );
    assert_eq!(payment.keep_headers, ["x-cost"]);
    let class = |status| protection.outcomes.class_of(http::StatusCode::from_u16(status).unwrap());
    assert_eq!(
        [class(503), class(409), class(504)],
        [OutcomeClass::Retryable, OutcomeClass::Released, OutcomeClass::Unknown]
    );
    assert_eq!(
        protection.recipe.to_text(),
        r#"{"defaults":{"/amount":"10","/currency":"\"EUR\""},"headers":["api-version"],"host":{"aliases":[["api.example","api.internal"]]},"ignore":["/metadata/trace_id"],"normalise":{"/amount":"decimal","/currency":"lowercase"},"only":["/amount","/currency"],"version":3}"#
    );
    let reconcile = payment.reconcile.as_ref().unwrap();
    assert_eq!((reconcile.attempts, reconcile.absence_is_proof), (3, true));
    let id = OperationId::from_u128(1);
    let uri = reconcile.poll.for_operation(id).unwrap();
    assert_eq!(uri, format!("http://127.0.0.1:9000/operations/{id}").as_str());
    assert_eq!(refund.protection.policy.settling, Settling::Webhook, "no poll, but a webhook may tell");
}

#[test]
fn everything_but_the_upstream_has_a_default() {
    let config = right(UPSTREAM);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(
        (config.admin.listen.to_string().as_str(), config.admin.people.token),
        ("127.0.0.1:8081", None)
    );
    assert_eq!(config.store.to_string(), "sqlite:semel.db");
    assert_eq!((config.profile.profile(), config.store_timeout), (Profile::Ietf, Duration::from_secs(2)));
    assert_eq!((config.key_rules.min, config.key_rules.max), (16, 255));
    assert!(config.scope.tenant.is_empty() && config.webhooks.is_empty());
    let peers: Vec<_> = config.scope.trusted_peers.iter().map(ToString::to_string).collect();
    assert_eq!(peers, ["127.0.0.0/8", "::1"]);
    assert_eq!(config.worker, WorkerConfig::default());
    assert_eq!(config.outbox, None);
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.logs.format, LogFormat::Text);
    let all = config.routes.for_all().expect("without a route, whatever brings a key is protected");
    assert_eq!(all.protection.key, KeyRequirement::Optional);

    let (route, default) = (route(""), Protection::default());
    assert_eq!(*route.protection.policy, *default.policy);
    assert_eq!(route.protection.timeout, default.timeout);
    assert_eq!(route.protection.key, KeyRequirement::Required);
    assert_eq!(route.protection.recipe.to_text(), r#"{"host":{},"version":2}"#);
    assert_eq!(all.protection.recipe, route.protection.recipe);
}

#[test]
fn as_many_connections_are_kept_as_may_be_in_use_unless_said_otherwise() {
    let kept =
        |limits: &str| right(&format!("{UPSTREAM}[limits]\n{limits}\n")).limits.upstream_idle_connections;
    assert_eq!(kept(""), Limits::default().requests_in_flight);
    assert_eq!(kept("requests_in_flight = 5000"), 5000);
    assert_eq!(kept("upstream_idle_connections = 32\nrequests_in_flight = 5000"), 32);
    assert_eq!(kept("upstream_idle_connections = 0"), 0);
}

#[test]
fn nobody_gives_up_before_the_slowest_operation_had_its_time() {
    let slow = format!(
        "{UPSTREAM}[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\nlease = \"1h\"\ntimeout = \"30m\"\n"
    );
    let limits = right(&slow).limits;
    assert_eq!(show_duration(limits.upstream_give_up), "1h");
    assert_eq!(show_duration(limits.drain), "1805s");
    assert_eq!(right(&format!("{slow}[limits]\ndrain = \"1s\"\n")).limits.drain, Duration::from_secs(1));
}

#[test]
fn there_is_memory_for_the_largest_body() {
    assert_eq!(right(UPSTREAM).body_memory, 128 << 20);
    let large = "[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\nmax_request_body = \"200MiB\"\n";
    assert_eq!(right(&format!("{UPSTREAM}{large}")).body_memory, 200 << 20);
}

#[test]
fn the_admin_api_may_face_the_network_with_a_token() {
    let config = right(&format!("{UPSTREAM}[admin]\nlisten = \"0.0.0.0:8081\"\ntoken = \"a-token\"\n"));
    assert!(config.admin.people.token.unwrap().matches(b"a-token"));
}

#[test]
fn a_configuration_shows_no_secret() {
    let shown = format!("{:?}", right(ALL));
    for secret in ["whsec", "YW5vdGhlci1z", "app:word"] {
        assert!(!shown.contains(secret), "{secret}");
    }
}

/// Takes a character out, or puts one in, everywhere.
#[test]
fn no_slip_of_the_pen_stops_the_reader_or_shows_a_secret() {
    const SLIPS: [&str; 4] = ["\"", "=", "\n", "é"];
    let mut wrong = 0;
    for (number, (place, character)) in ALL.char_indices().enumerate() {
        let (before, after) = ALL.split_at(place);
        let left_out = format!("{before}{}", &after[character.len_utf8()..]);
        let put_in = format!("{before}{}{after}", SLIPS[number % SLIPS.len()]);
        for slip in [left_out, put_in] {
            let Err(errors) = read(&slip) else { continue };
            wrong += 1;
            let told = errors.to_string();
            for secret in ["YW5vdGhlci1z", "c2VhbGluZy1r", "word@db"] {
                assert!(!told.contains(secret), "{told}");
            }
        }
    }
    assert!(wrong > 2_000, "{wrong}");
}

#[test]
fn the_first_key_seals_and_all_open_unless_the_file_says_otherwise() {
    let hex = "ab".repeat(32);
    let keys = format!(
        "keys = [{{ id = \"a\", key = \"{hex}\" }}, {{ id = \"b\", key = \"env:SEMEL_KEY_2026_11\" }}]\n"
    );
    let keyring = |more: &str| right(&format!("{UPSTREAM}[encryption]\n{keys}{more}")).encryption.unwrap();
    assert_eq!(keyring("").seals_with(), Some("a"));
    assert_eq!(keyring("").ids().collect::<Vec<_>>(), ["a", "b"]);
    assert!(!keyring("").refuses_plain());
    assert_eq!(keyring("seal_with = \"b\"").seals_with(), Some("b"));
    assert_eq!(keyring("seal_with = \"none\"").seals_with(), None);
    assert!(keyring("plain = \"refused\"").refuses_plain());
    let one_by_one = format!("{UPSTREAM}[[encryption.keys]]\nid = \"a\"\nkey = \"{hex}\"\n");
    assert_eq!(right(&one_by_one).encryption.unwrap().seals_with(), Some("a"));
    assert!(right(UPSTREAM).encryption.is_none());
    let shown = format!("{:?}", right(&format!("{UPSTREAM}[encryption]\n{keys}")));
    assert!(shown.contains("SealingKey(a)") && !shown.contains("abab"), "{shown}");
}

const GUIDE: &str = include_str!("../../../../docs/guides/configuring-the-gateway.md");

#[test]
fn the_guide_has_every_setting() {
    let settings = |line: &'static str| {
        let name = line.split('=').next()?.trim();
        let is_name =
            line.contains('=') && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then_some(name)
    };
    let all = [ALL, NATS, RABBITMQ, JWKS, PUBLIC_KEY, TLS, STORE].into_iter().flat_map(str::lines);
    let known: Vec<_> = all.filter_map(settings).chain(["defaults", "id", "tls"]).collect();
    for setting in &known {
        assert!(GUIDE.contains(&format!("\n| `{setting}` | ")), "{setting} is missing");
    }
    let outcomes = ["completed", "failed", "retryable", "released", "unknown"];
    for row in GUIDE.split("\n| `").skip(1) {
        let name = row.split('`').next().unwrap();
        assert!(known.contains(&name) || outcomes.contains(&name), "{name} is no setting");
    }
}

#[test]
fn with_colours_the_words_are_the_same() {
    let errors = read("upstream = 1\n").unwrap_err();
    let (plain, coloured) = (errors.to_string(), format!("{errors:#}"));
    assert!(coloured.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn people_are_named_with_their_roles_and_tenants() {
    use semel_gateway::identity::{Role, TenantPattern, Tenants};
    let config = right(&format!(
        "{UPSTREAM}[[admin.user]]\nname = \"oncall\"\ntoken = \"a-token\"\nrole = \"operator\"\ntenants = [\"acct_*\"]\n\
         [admin.identity]\nheader = \"x-forwarded-user\"\nroles = {{ header = \"x-forwarded-groups\", admin = \"boss\" }}\n\
         trusted_peers = [\"10.0.0.5\"]\n"
    ));
    let people = config.admin.people;
    let user = &people.users[0];
    assert_eq!((user.name.as_str(), user.role), ("oncall", Role::Operator));
    assert_eq!(user.tenants, Tenants::Only(vec![TenantPattern::Prefix("acct_".into())]));
    let proxy = people.proxy.unwrap();
    assert_eq!(proxy.roles.unwrap().groups, [(Role::Admin, "boss".to_owned())]);
    assert_eq!(proxy.trusted_peers.len(), 1);
}
