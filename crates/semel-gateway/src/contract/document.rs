//! The contract as data: what programs get, and what the page is made of.

use crate::config::Config;
use crate::route::{FingerprintConfig, ForAll, Route};
use crate::tenant::{REFRESHED, REVOKED, ScopeConfig, TenantFrom};
use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, LINK, LOCATION};
use http::{HeaderName, StatusCode};
use semel::canonical::NormalForm;
use semel::fingerprint::Recipe;
use semel::headers::{IDEMPOTENT_REPLAYED, OPERATION_ID};
use semel::key::{KeyForm, KeyRules, KeySources, KeySyntax};
use semel::problem::{Code, DocsBase, Format, GrpcStatus, Problem};
use semel::{Expired, InFlight, StoreResponse};
use semel_tower::{KeyRequirement, OutcomeRules, Protection};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Serialize)]
pub(super) struct Document {
    /// Another number is another shape of this document.
    contract_version: u32,
    pub(super) profile: String,
    /// How refusals look.
    pub(super) format: RefusalFormat,
    pub(super) key: Key,
    pub(super) tenant: Tenant,
    pub(super) replay: Replay,
    pub(super) operations: Vec<Operation>,
    pub(super) outcomes: BTreeMap<&'static str, &'static str>,
    pub(super) errors: Vec<Error>,
}

#[derive(Serialize)]
pub(super) struct RefusalFormat {
    /// The built-in profile that it is, or that it extends.
    pub(super) based_on: &'static str,
    pub(super) content_type: String,
    /// A key that stands for another request, as clients are told.
    pub(super) example: String,
}

impl RefusalFormat {
    fn of(format: &Format, docs: &DocsBase) -> Self {
        let detail = "This key was already used for a different request.";
        let example = format.example(Code::KeyReused, detail, docs);
        Self {
            based_on: format.profile().as_str(),
            content_type: String::from_utf8_lossy(format.content_type().as_bytes()).into_owned(),
            example: String::from_utf8_lossy(&example).into_owned(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Key {
    /// Where it is looked for: `header:NAME`, or `json:` and a JSON Pointer into the body.
    pub(super) sources: Vec<String>,
    /// The first header among them.
    pub(super) header: Option<String>,
    pub(super) syntax: KeySyntax,
    pub(super) min_length: usize,
    pub(super) max_length: usize,
    pub(super) characters: &'static str,
    pub(super) example: String,
}

#[derive(Serialize)]
pub(super) struct Tenant {
    /// `header`: as a proxy in front names it; its name is of no use to clients, who cannot send it.
    sources: Vec<&'static str>,
    pub(super) rules: Vec<&'static str>,
}

#[derive(Serialize)]
pub(super) struct Replay {
    header: String,
    value: &'static str,
    operation_id_header: String,
    kept_headers: [String; 6],
}

#[derive(Serialize)]
pub(super) struct Operation {
    /// `None`: each method and path is an operation of its own.
    pub(super) operation: Option<String>,
    pub(super) methods: Vec<String>,
    pub(super) path: Option<String>,
    pub(super) key: &'static str,
    /// Within what its key names one request.
    pub(super) key_scope: &'static str,
    /// Where its key is looked for, unless that is as for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_sources: Option<Vec<String>>,
    /// The fewest and most characters of its key, unless they are as for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_length: Option<KeyLength>,
    #[serde(rename = "window_seconds", serialize_with = "seconds")]
    pub(super) window: Duration,
    #[serde(rename = "body_window_seconds", serialize_with = "seconds")]
    pub(super) body_window: Duration,
    #[serde(rename = "remembered_after_window_seconds", serialize_with = "seconds")]
    pub(super) tombstone: Duration,
    pub(super) expired: &'static str,
    pub(super) in_flight: &'static str,
    /// What a duplicate gets while the first is at work, after the wait if there is one.
    pub(super) in_flight_status: u16,
    /// What a retry gets while the outcome is unknown.
    unknown_status: u16,
    #[serde(
        rename = "wait_seconds",
        skip_serializing_if = "Option::is_none",
        serialize_with = "some_seconds"
    )]
    pub(super) wait: Option<Duration>,
    #[serde(rename = "timeout_seconds", serialize_with = "seconds")]
    pub(super) timeout: Duration,
    pub(super) stored_response: &'static str,
    pub(super) max_request_body_bytes: usize,
    pub(super) max_stored_response_bytes: usize,
    /// Besides those that are always kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) kept_headers: Vec<String>,
    pub(super) fingerprint: Fingerprint,
    /// The statuses that mean something else here than they usually do.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) outcomes: BTreeMap<String, &'static str>,
}

#[derive(Serialize)]
pub(super) struct KeyLength {
    pub(super) min: usize,
    pub(super) max: usize,
}

#[derive(Serialize)]
pub(super) struct Fingerprint {
    pub(super) ignored: Vec<String>,
    /// Empty: the whole body.
    pub(super) counted: Vec<String>,
    pub(super) headers: Vec<String>,
    /// Whether another host is another request.
    pub(super) host: bool,
    /// What an absent member counts as, by JSON Pointer.
    pub(super) defaults: BTreeMap<String, Box<RawValue>>,
    /// The normal forms in which texts count, by JSON Pointer.
    pub(super) normalised: BTreeMap<String, NormalForm>,
    /// Whether bodies are compared by their bytes, whatever their media type is.
    pub(super) bytes: bool,
}

#[derive(Serialize)]
pub(super) struct Error {
    #[serde(serialize_with = "code")]
    pub(super) code: Code,
    #[serde(rename = "type")]
    kind: String,
    pub(super) title: &'static str,
    pub(super) status: u16,
    /// Where the request whose own execution ended so gets another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_status: Option<u16>,
    pub(super) retryable: bool,
    pub(super) retry_after: bool,
}

impl Document {
    pub(super) fn of(config: &Config) -> Self {
        let operations = match config.routes.for_all() {
            Some(rules) => vec![Operation::for_all(rules, &config.profile)],
            None => config.routes.routes().iter().map(|route| Operation::of(route, config)).collect(),
        };
        Self {
            contract_version: 1,
            profile: config.profile.name().to_owned(),
            format: RefusalFormat::of(&config.profile, &config.docs),
            key: Key::of(&config.key_rules, &config.key_sources),
            tenant: Tenant::of(&config.scope),
            replay: Replay {
                header: as_documented(&IDEMPOTENT_REPLAYED),
                value: "true",
                operation_id_header: as_documented(&OPERATION_ID),
                kept_headers: [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, LOCATION, ETAG, LINK]
                    .map(|name| name.to_string()),
            },
            operations,
            outcomes: [
                ("2xx, 3xx", "completed"),
                ("400, 401, 403, 405, 407, 411, 414, 415, 421, 425, 426, 429, 431", "released"),
                ("408, 499, 502, 503, 504, other 5xx", "unknown"),
                ("other 4xx, 500, 501, 505, 506, 507, 508, 510, 511", "failed"),
            ]
            .into(),
            errors: Code::ALL.iter().map(|&code| Error::of(code, &config.profile, &config.docs)).collect(),
        }
    }
}

/// The name as documentation spells it: `Idempotency-Key`.
fn as_documented(name: &HeaderName) -> String {
    let mut begins = true;
    let spelled = name.as_str().chars().map(|c| {
        let spelled = if begins { c.to_ascii_uppercase() } else { c };
        begins = c == '-';
        spelled
    });
    spelled.collect()
}

impl Key {
    fn of(rules: &KeyRules, sources: &KeySources) -> Self {
        // As long as a UUID where that is allowed, and never of a wrong length.
        let example = match rules.form {
            KeyForm::Uuid7 => "019a6c1e-8f5e-7c3a-9d57-7f0a9a6f2b11",
            KeyForm::Visible | KeyForm::Token => "0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11",
        };
        let length = example.len().clamp(rules.min, rules.max);
        let key: String = example.chars().cycle().take(length).collect();
        Self {
            sources: texts(sources),
            header: sources.headers().next().map(as_documented),
            syntax: rules.syntax,
            min_length: rules.min,
            max_length: rules.max,
            characters: rules.form.in_words(),
            example: if rules.syntax == KeySyntax::Structured { format!("\"{key}\"") } else { key },
        }
    }
}

fn texts(sources: &KeySources) -> Vec<String> {
    sources.iter().map(ToString::to_string).collect()
}

const BY_CREDENTIAL: &str =
    "A key belongs to the credential that it is sent with (Authorization, X-Api-Key).";

const BY_TOKEN: &str = "A key belongs to the caller that your bearer token names. A refreshed token of the same caller is \
                        the same tenant. A token that has expired, or cannot be verified, gets 401, whatever else the \
                        request brings.";
const BY_ASKING: &str = "A key belongs to the account that your credentials identify. They are checked for every request, \
                         retries included; while they cannot be checked, requests get 503 idempotency_scope_unresolved with \
                         Retry-After, and nothing is executed.";

const ASKED_BEFORE_REPLAYS: &str =
    "Before every replay it is checked that the credential is still accepted; one that was revoked gets 401.";

/// What becomes of a credential that was revoked.
fn of_revoked(scope: &ScopeConfig) -> Option<&'static str> {
    match scope.replay_check {
        Some(_) => Some(ASKED_BEFORE_REPLAYS),
        None => scope.replays_to_revoked().then_some(REVOKED),
    }
}

impl Tenant {
    fn of(scope: &ScopeConfig) -> Self {
        let mut rules = Vec::new();
        let mut sources = Vec::new();
        if scope.tenant.is_empty() {
            sources.push("credential");
            rules.push(BY_CREDENTIAL);
            rules.push(REFRESHED);
            rules.extend(of_revoked(scope));
            rules.push(
                "All callers without a credential share one tenant, and with it their keys: use keys that no \
                        other caller could choose, such as UUIDs.",
            );
            return Self { sources, rules };
        }
        for source in &scope.tenant {
            let (source, rule) = match source {
                TenantFrom::Header(_) => (
                    "header",
                    "A key belongs to the account that your request was authenticated as, whatever token was used.",
                ),
                TenantFrom::Jwt(_) => ("jwt", BY_TOKEN),
                TenantFrom::ForwardAuth => ("forward-auth", BY_ASKING),
                TenantFrom::Credential => ("credential", BY_CREDENTIAL),
            };
            if !sources.contains(&source) {
                sources.push(source);
                rules.push(rule);
            }
        }
        if scope.by_credential() {
            rules.push(REFRESHED);
        }
        rules.extend(of_revoked(scope));
        if sources.len() > 1 {
            rules.push("Of these, the first one that is present decides.");
        }
        rules.push("A request that cannot be attributed to a caller gets 401 idempotency_scope_unresolved.");
        Self { sources, rules }
    }
}

impl Operation {
    fn of(route: &Route, config: &Config) -> Self {
        let sources = &route.protection.key_sources;
        Self {
            key_sources: (*sources != config.key_sources).then(|| texts(sources)),
            key_scope: route.key_scope.as_str(),
            operation: route.operation.clone(),
            methods: vec![route.pattern.method().to_string()],
            path: Some(route.pattern.path().to_owned()),
            ..Self::by(&route.protection, &route.keep_headers, &route.fingerprint, &config.profile)
        }
    }

    fn for_all(rules: &ForAll, format: &Format) -> Self {
        Self::by(&rules.protection, &rules.keep_headers, &rules.fingerprint, format)
    }

    fn by(
        protection: &Protection,
        keep_headers: &[HeaderName],
        fingerprint: &FingerprintConfig,
        format: &Format,
    ) -> Self {
        let policy = &protection.policy;
        let status = |code| format.status(code).as_u16();
        let (in_progress, unknown) = (status(Code::InProgress), status(Code::OutcomeUnknown));
        let (in_flight, in_progress, unknown, wait) = match policy.in_flight {
            InFlight::Conflict => ("conflict", in_progress, unknown, None),
            InFlight::Accepted => ("accepted", 202, 202, None),
            InFlight::Wait(wait) => ("wait", in_progress, unknown, Some(wait)),
        };
        Self {
            operation: None,
            methods: vec!["POST".into(), "PATCH".into()],
            path: None,
            key: match protection.key {
                KeyRequirement::Required => "required",
                KeyRequirement::Optional => "optional",
            },
            key_scope: protection.key_scope.as_str(),
            key_sources: None,
            key_length: protection.key_rules.map(|KeyRules { min, max, .. }| KeyLength { min, max }),
            window: policy.retention,
            body_window: policy.body_retention.min(policy.retention),
            tombstone: policy.tombstone,
            expired: match policy.expired {
                Expired::Refuse => "refuse",
                Expired::New => "new",
            },
            in_flight,
            in_flight_status: in_progress,
            unknown_status: unknown,
            wait,
            timeout: protection.timeout,
            stored_response: match policy.store_response {
                StoreResponse::Full => "full",
                StoreResponse::Reference => "reference",
            },
            max_request_body_bytes: protection.max_request_body,
            max_stored_response_bytes: protection.max_stored_response,
            kept_headers: keep_headers.iter().map(ToString::to_string).collect(),
            fingerprint: Fingerprint::of(fingerprint, &protection.recipe),
            outcomes: overrides(&protection.outcomes),
        }
    }
}

impl Fingerprint {
    fn of(rules: &FingerprintConfig, recipe: &Recipe) -> Self {
        let FingerprintConfig { ignore, only, defaults, normalise, headers, .. } = rules;
        // As it was written: a number may be one that no double is.
        let text = |json: &String| RawValue::from_string(json.clone()).ok();
        Self {
            ignored: ignore.clone(),
            counted: only.clone(),
            headers: headers.clone(),
            host: recipe.counts_host(),
            defaults: defaults
                .iter()
                .filter_map(|(pointer, json)| Some((pointer.clone(), text(json)?)))
                .collect(),
            normalised: normalise.clone(),
            bytes: recipe.compares_bytes(),
        }
    }
}

fn overrides(rules: &OutcomeRules) -> BTreeMap<String, &'static str> {
    let usual = OutcomeRules::default();
    let calls = GrpcStatus::ALL
        .into_iter()
        .filter(|&status| rules.class_of_call(Some(status)) != usual.class_of_call(Some(status)))
        .map(|status| (status.to_string(), rules.class_of_call(Some(status)).as_str()));
    (200..600)
        .filter_map(|status| StatusCode::from_u16(status).ok())
        .filter(|&status| rules.class_of(status) != usual.class_of(status))
        .map(|status| (status.as_str().to_owned(), rules.class_of(status).as_str()))
        .chain(calls)
        .collect()
}

impl Error {
    fn of(code: Code, format: &Format, docs: &DocsBase) -> Self {
        let later = Problem::new(code, format.profile(), "");
        let (status, retryable, retry_after) = (later.status, later.retryable, later.retry_after.is_some());
        let first = later.for_first_request().status;
        Self {
            code,
            kind: docs.page(code),
            title: code.title(),
            status: format.status(code).as_u16(),
            first_status: (first != status).then(|| first.as_u16()),
            retryable,
            retry_after,
        }
    }
}

fn code<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    if duration.subsec_nanos() == 0 {
        serializer.serialize_u64(duration.as_secs())
    } else {
        serializer.serialize_f64(duration.as_secs_f64())
    }
}

fn some_seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    seconds(&duration.unwrap_or_default(), serializer)
}
