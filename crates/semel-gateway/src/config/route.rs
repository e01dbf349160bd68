//! `[[route]]`: one operation, and how it is protected; `[defaults]`: how all of them are, unless they say otherwise.

use super::key::{self, Keys};
use super::reading::Reading;
use super::section::{Given, Section, TextForm, one_of};
use super::{fingerprint, reconcile};
use crate::route::{ForAll, KeyScopes, Overlap, Pattern, Route};
use crate::setting::InvalidValue;
use crate::setting::{duration, show_duration};
use http::{HeaderName, StatusCode};
use semel::problem::{GrpcStatus, Profile};
use semel::{Expired, InFlight, KeyScope, Policy, Settling, Stale, StoreResponse};
use semel_tower::{FormerName, KeptHeaders, KeyRequirement, OutcomeClass, OutcomeRules, Protection};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use toml::de::DeValue;

const DEFAULTS: &str = "[defaults]";
const HOUR: u64 = 60 * 60;
/// How long a request may take, in whatever way.
const WORK: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(24 * HOUR);
/// A hundred years: enough for every law, and no store counts further than it can.
const LONGEST: Duration = Duration::from_secs(36_500 * 24 * HOUR);
/// Bodies are held in memory as a whole.
const BODY: RangeInclusive<u64> = 0..=256 << 20;

const OUTCOMES: [(&str, OutcomeClass); 5] = [
    ("completed", OutcomeClass::Completed),
    ("failed", OutcomeClass::Failed),
    ("retryable", OutcomeClass::Retryable),
    ("released", OutcomeClass::Released),
    ("unknown", OutcomeClass::Unknown),
];

/// What all routes have in common.
pub(super) struct Common<'c> {
    /// Whether one may tell what became of an operation.
    pub(super) webhooks: bool,
    pub(super) compared: &'c fingerprint::Common,
    pub(super) profile: Profile,
    /// For how long its protocol has keys remembered; a profile of one's own may differ.
    pub(super) retention: (Option<Duration>, Option<Duration>),
    pub(super) keys: &'c Keys,
}

/// All routes, without those that are wrong, and how everything is protected where none is declared.
pub(super) fn read_all(
    sections: Vec<Section<'_, '_>>,
    mut defaults: Section<'_, '_>,
    common: &Common<'_>,
) -> (Vec<Route>, ForAll) {
    let mut places: Vec<Names> = Vec::new();
    let mut routes = Vec::new();
    let is_for_all = sections.is_empty();
    let reading = defaults.reading;
    for section in sections {
        let (names, route) = read(section.or(&defaults), common, &places);
        places.push(names);
        routes.extend(route);
    }
    check_former_names(reading, &places);
    // Each route may replace a part of what does not fit together here.
    let checks = if is_for_all { Checks::All } else { Checks::EachValue };
    let for_all = read_rules(&mut defaults, common, checks);
    defaults.end();
    (
        routes,
        for_all.map_or_else(ForAll::default, |Rules { rules, need, scopes }| {
            let protection = rules.protection.with_key(need.unwrap_or(KeyRequirement::Optional));
            ForAll { protection: scopes.apply(protection, None, Vec::new()), ..rules }
        }),
    )
}

/// What has to differ between routes, and the lines where it is.
struct Names {
    operation: Option<String>,
    pattern: Option<Given<Pattern>>,
    formerly: Vec<Given<FormerName>>,
    line: usize,
}

/// A former name that is another route's now would be two operations' at once.
fn check_former_names(reading: &Reading<'_>, places: &[Names]) {
    for Given { value, at } in places.iter().flat_map(|names| &names.formerly) {
        let FormerName::Name(name) = value else { continue };
        let is_name = |names: &&Names| names.operation.as_deref() == Some(name);
        if let Some(other) = places.iter().find(is_name) {
            let problem = format!("\"{name}\" is the operation of the route on line {}", other.line);
            let cure = "write a name that no operation has any more";
            reading.fault(Some(at.clone()), InvalidValue::new(problem, cure));
        }
    }
}

fn read(mut section: Section<'_, '_>, common: &Common<'_>, others: &[Names]) -> (Names, Option<Route>) {
    let operation_kind = TextForm { what: "a name", example: "create_payment" };
    let is_named = section.has("operation");
    let operation = section.parsed("operation", operation_kind, operation_name);
    let match_kind = TextForm { what: "a method and a path", example: "POST /payments" };
    let pattern = section.parsed("match", match_kind, Pattern::parse);
    if !section.has("match") {
        section.missing("match", "POST /payments");
    }
    let former_kind = TextForm { what: "a name", example: "create_payment" };
    let formerly = section.list("formerly", former_kind, former_name);
    let formerly = formerly.map(|list| list.items).unwrap_or_default();
    let former_names = formerly.iter().map(|given| given.value.clone()).collect();
    check_against(&section, operation.as_ref(), pattern.as_ref(), others);
    let names = Names {
        operation: operation.as_ref().map(|operation| operation.value.clone()),
        pattern: pattern.clone(),
        formerly,
        line: section.at.as_ref().map_or(1, |at| section.reading.line_of(at.start)),
    };
    let rules = read_rules(&mut section, common, Checks::All);
    section.end();
    let (Some(pattern), Some(Rules { rules, scopes, .. })) = (pattern, rules) else {
        return (names, None);
    };
    if is_named && operation.is_none() {
        return (names, None);
    }
    let ForAll { protection, keep_headers, fingerprint, reconcile } = rules;
    let operation = operation.map(|operation| operation.value);
    let route = Route {
        pattern: pattern.value,
        key_scope: scopes.scope,
        protection: scopes.apply(protection, operation.as_deref(), former_names),
        operation,
        keep_headers,
        fingerprint,
        reconcile,
    };
    (names, Some(route))
}

/// Which mistakes are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// Those of each value by itself.
    EachValue,
    /// Those of values that do not fit together too.
    All,
}

/// Everything but which requests it is.
struct Rules {
    rules: ForAll,
    /// Whether the key was said to be required.
    need: Option<KeyRequirement>,
    scopes: KeyScopes,
}

/// The rules of a section. `None`: it was reported what is wrong.
fn read_rules(section: &mut Section<'_, '_>, common: &Common<'_>, checks: Checks) -> Option<Rules> {
    let headings = match section.name() {
        DEFAULTS => {
            ["[defaults.outcome]", "[defaults.fingerprint]", "[defaults.reconcile]", "[defaults.key]"]
        }
        _ => ["[route.outcome]", "[route.fingerprint]", "[route.reconcile]", "[route.key]"],
    };
    let key = key::read_of_route(section, headings[3], common.keys);
    let (policy, timeout) = read_policy(section, common, checks);
    let max_request_body = section.size("max_request_body", "1MiB", BODY);
    let max_stored_response = section.size("max_stored_response", "1MiB", BODY);
    let (keep_headers, kept_headers) = read_kept_headers(section);
    let outcomes = read_outcomes(&section.section("outcome", headings[0]));
    let (fingerprint, recipe) =
        fingerprint::read(section.section("fingerprint", headings[1]), common.compared);
    let reconcile = reconcile::read(section.section("reconcile", headings[2]));
    if let Some(Given { value: 0, at }) = &max_request_body
        && key.sources.reads_body()
    {
        let problem = "the key is in the body, and no request may have one";
        section.wrong(at, problem, "raise `max_request_body`, or take \"json:…\" out of `from`");
    }
    if let Some(name) =
        key.sources.headers().find(|name| fingerprint.headers.iter().any(|own| own == name.as_str()))
        && let Some(at) = &section.at
    {
        let problem = format!("`{name}` holds the key, so it cannot be compared too");
        section.wrong(at, problem, "take it out of `headers` of the fingerprint");
    }
    let settling = match &reconcile {
        Some(reconcile) => Settling::Poll { first: reconcile.every },
        None if common.webhooks => Settling::Webhook,
        None => Settling::Operator,
    };
    let default = Protection::default();
    let bytes = |given: Option<Given<u64>>, default| {
        given.and_then(|given| usize::try_from(given.value).ok()).unwrap_or(default)
    };
    let protection = Protection {
        key: key.need.unwrap_or(default.key),
        key_sources: key.sources,
        key_rules: key.rules,
        // These are given to the operation once it is read.
        formerly: Vec::new(),
        key_scope: KeyScope::default(),
        former_key_scope: None,
        policy: Arc::new(Policy { settling, ..policy }),
        recipe: Arc::new(recipe),
        command: None,
        timeout,
        max_request_body: bytes(max_request_body, default.max_request_body),
        max_stored_response: bytes(max_stored_response, default.max_stored_response),
        kept_headers,
        outcomes,
    };
    // What it may not be was reported where lease, timeout and retention were read.
    let protection = protection.try_into().ok()?;
    let rules = ForAll { protection, keep_headers, fingerprint, reconcile };
    Some(Rules { rules, need: key.need, scopes: key.scopes })
}

/// A name, or a method and a path: what an operation without a name is called by.
fn former_name(text: &str) -> Result<FormerName, InvalidValue> {
    if !text.contains(' ') {
        return operation_name(text).map(|name| FormerName::Name(name.into()));
    }
    Ok(match Pattern::parse(text)? {
        exact if exact.is_exact() => FormerName::Name(exact.as_str().into()),
        _ => FormerName::MethodAndPath,
    })
}

fn operation_name(text: &str) -> Result<String, InvalidValue> {
    const MOST: usize = 100;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=MOST).contains(&text.len()) && text.bytes().all(good) {
        return Ok(text.to_owned());
    }
    let problem = format!("\"{text}\" is not a valid operation name");
    Err(InvalidValue::new(
        problem,
        format!("use letters, digits, _, - and . only, at most {MOST}: \"create_payment\""),
    ))
}

fn check_against(
    section: &Section<'_, '_>,
    operation: Option<&Given<String>>,
    pattern: Option<&Given<Pattern>>,
    others: &[Names],
) {
    if let Some(Given { value, at }) = operation
        && let Some(other) = others.iter().find(|other| other.operation.as_ref() == Some(value))
    {
        let problem = format!("the operation \"{value}\" is already declared on line {}", other.line);
        section.wrong(at, problem, "give each route its own name: a key counts within its operation");
    }
    let Some(Given { value, at }) = pattern else {
        return;
    };
    for other in others {
        let Some(Given { value: theirs, at: their_place }) = &other.pattern else { continue };
        let line = section.reading.line_of(their_place.start);
        match value.overlap(theirs) {
            Overlap::Apart | Overlap::Nested => {}
            Overlap::Same => {
                let problem = format!("the route on line {line}, \"{theirs}\", already matches all of this");
                section.wrong_beside(at, their_place, problem, "remove one of the two");
            }
            Overlap::Ambiguous => {
                let problem = format!(
                    "some requests would match both this and \"{theirs}\" on line {line}, and neither is more specific"
                );
                section.wrong_beside(
                    at,
                    their_place,
                    problem,
                    "segment by segment, a literal is more specific than {name}, and {name} than **: change one of the two so that \
                     it matches a part of the other, or nothing of it",
                );
            }
        }
    }
}

/// The operation's rules, and how long the service may take.
fn read_policy(section: &mut Section<'_, '_>, common: &Common<'_>, checks: Checks) -> (Policy, Duration) {
    let profile = common.profile;
    let default = Policy::default();
    let lease = section.duration("lease", "30s", WORK);
    let timeout = section.duration("timeout", "25s", WORK);
    let retention = section.duration("retention", "24h", Duration::from_secs(1)..=LONGEST);
    let body_retention = section.duration("body_retention", "24h", Duration::from_secs(1)..=LONGEST);
    let tombstone = section.duration("tombstone", "7d", Duration::ZERO..=LONGEST);
    let expired = section.choice("expired", &[("refuse", Expired::Refuse), ("new", Expired::New)]);
    let in_flight =
        section.parsed("in_flight", TextForm { what: "a word", example: "conflict" }, in_flight_word);
    let stale = section.parsed("stale", TextForm { what: "a word", example: "unknown" }, stale_word);
    let store_response = section
        .choice("store_response", &[("full", StoreResponse::Full), ("reference", StoreResponse::Reference)]);

    let lease_is = lease.as_ref().map_or(default.lease, |lease| lease.value);
    let timeout_is = timeout.as_ref().map_or(Protection::default().timeout, |timeout| timeout.value);
    let is_checked = checks == Checks::All;
    if is_checked && timeout_is >= lease_is {
        check_timeout(section, timeout.as_ref(), lease.as_ref(), timeout_is, lease_is);
    }
    if let Some(given) = &retention {
        check_retention(section, given, common);
    }
    let retention_is = retention.map_or(default.retention, |retention| retention.value);
    if let Some(Given { value, at }) = &body_retention
        && is_checked
        && *value > retention_is
    {
        let (body, all) = (show_duration(*value), show_duration(retention_is));
        let problem = format!("`body_retention` ({body}) is longer than `retention` ({all})");
        section.wrong(
            at,
            problem,
            format!(
                "write at most \"{all}\", or raise `retention`: a body is kept no longer than its record"
            ),
        );
    }
    if let Some(Given { value: InFlight::Wait(wait), at }) = &in_flight
        && is_checked
        && *wait > timeout_is
    {
        let (wait, timeout) = (show_duration(*wait), show_duration(timeout_is));
        let problem = format!(
            "duplicates would wait {wait}, longer than the first request may take ({timeout}, `timeout`)"
        );
        section.wrong(at, problem, format!("write at most \"wait:{timeout}\""));
    }
    if let Some(Given { value: InFlight::Accepted, at }) = &in_flight
        && !profile.understands_accepted()
    {
        let problem = format!("clients of the profile \"{profile}\" take a 202 for success");
        section.wrong(at, problem, "write \"conflict\", or \"wait:5s\"");
    }
    let policy = Policy {
        lease: lease_is,
        retention: retention_is,
        // As long as the record, unless somebody wants it shorter.
        body_retention: body_retention.map_or(retention_is, |given| given.value),
        tombstone: tombstone.map_or(default.tombstone, |given| given.value),
        expired: expired.map_or(default.expired, |given| given.value),
        stale: stale.map_or(default.stale, |given| given.value),
        in_flight: in_flight.map_or(default.in_flight, |given| given.value),
        settling: default.settling,
        store_response: store_response.map_or(default.store_response, |given| given.value),
    };
    (policy, timeout_is)
}

/// Protocols say how long a key is remembered.
fn check_retention(section: &Section<'_, '_>, Given { value, at }: &Given<Duration>, common: &Common<'_>) {
    let &Common { profile, retention: (least, most), .. } = common;
    let is = show_duration(*value);
    if let Some(least) = least.filter(|least| value < least) {
        let least = show_duration(least);
        let problem = format!(
            "`retention` ({is}) is shorter than the profile \"{profile}\" promises its clients ({least})"
        );
        section.wrong(at, problem, format!("write at least \"{least}\""));
    }
    if let Some(most) = most.filter(|most| value > most) {
        let most = show_duration(most);
        let problem = format!("`retention` ({is}) is longer than the profile \"{profile}\" allows ({most})");
        section.wrong(at, problem, format!("write at most \"{most}\""));
    }
}

fn check_timeout(
    section: &Section<'_, '_>,
    timeout: Option<&Given<Duration>>,
    lease: Option<&Given<Duration>>,
    timeout_is: Duration,
    lease_is: Duration,
) {
    let (timeout_text, lease_text) = (show_duration(timeout_is), show_duration(lease_is));
    let default = |given: bool| if given { "" } else { ", its default" };
    let problem = format!(
        "`timeout` ({timeout_text}{}) must be shorter than `lease` ({lease_text}{})",
        default(timeout.is_some()),
        default(lease.is_some())
    );
    let (at, cure) = match (timeout, lease) {
        (Some(timeout), _) => (
            &timeout.at,
            format!("write less than \"{lease_text}\", or a `lease` longer than \"{timeout_text}\""),
        ),
        (None, Some(lease)) => (
            &lease.at,
            format!("write more than \"{timeout_text}\", or a `timeout` shorter than \"{lease_text}\""),
        ),
        // The defaults fit each other.
        (None, None) => return,
    };
    section.wrong(at, problem, cure);
}

fn in_flight_word(text: &str) -> Result<InFlight, InvalidValue> {
    const FORM: &str = "write \"conflict\" (409), \"accepted\" (202) or \"wait:5s\"";
    match text {
        "conflict" => Ok(InFlight::Conflict),
        "accepted" => Ok(InFlight::Accepted),
        "wait" => Err(InvalidValue::new("`wait` does not say how long", "write \"wait:5s\"")),
        _ => match text.strip_prefix("wait:") {
            None => Err(InvalidValue::new(format!("`in_flight` cannot be \"{text}\""), FORM)),
            Some(wait) => match duration(wait)? {
                Duration::ZERO => {
                    Err(InvalidValue::new("the wait must be longer than zero", "write \"conflict\""))
                }
                wait => Ok(InFlight::Wait(wait)),
            },
        },
    }
}

fn stale_word(text: &str) -> Result<Stale, InvalidValue> {
    match text {
        "rerun" => Err(InvalidValue::new(
            "`stale = \"rerun\"` is not available in a gateway: it cannot know that the first attempt left no effect",
            "write \"unknown\", or \"resume\" if the service itself refuses late attempts, by  `Semel-Operation-Id` and \
             `Semel-Attempt`",
        )),
        _ => one_of(text, [("unknown", Stale::Unknown), ("resume", Stale::Resume)].into_iter())
            .map_err(|cure| InvalidValue::new(format!("`stale` cannot be \"{text}\""), cure)),
    }
}

/// The headers that are kept besides the usual ones, and all of them.
fn read_kept_headers(section: &mut Section<'_, '_>) -> (Vec<HeaderName>, KeptHeaders) {
    let header = |text: &str| {
        HeaderName::try_from(text).map_err(|_| {
            InvalidValue::new(
                format!("\"{text}\" is not the name of a header"),
                "for example \"x-rate-limit-class\"",
            )
        })
    };
    let (mut more, mut kept) = (Vec::new(), KeptHeaders::default());
    let names = section.list(
        "keep_headers",
        TextForm { what: "the name of a header", example: "x-request-cost" },
        header,
    );
    for Given { value, at } in names.into_iter().flat_map(|names| names.items) {
        match kept.clone().and([value.clone()]) {
            Ok(with) => {
                kept = with;
                more.push(value);
            }
            Err(error) => section.wrong(&at, error.to_string(), "remove it"),
        }
    }
    (more, kept)
}

fn read_outcomes(section: &Section<'_, '_>) -> OutcomeRules {
    let mut rules = OutcomeRules::default();
    for (Given { value: name, at }, value) in section.entries() {
        let call = GrpcStatus::ALL.into_iter().find(|status| status.as_str() == name);
        let status = name.parse().ok().filter(|status| (200..=599).contains(status));
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        if call.is_none() && status.is_none() {
            let problem = format!("`{name}` is not a final status code");
            section.wrong(
                &at,
                problem,
                "write a status from 200 to 599, 503 = \"retryable\", or one of gRPC, ABORTED = \"unknown\"",
            );
            continue;
        }
        let class = match value.get_ref() {
            DeValue::String(word) => one_of(word, OUTCOMES.into_iter()),
            _ => Err(format!("for example {name} = \"retryable\"")),
        };
        match class {
            Ok(class) => {
                rules = match (call, status) {
                    (Some(call), _) => rules.with_grpc(call, class),
                    (None, Some(status)) => rules.with(status, class),
                    (None, None) => rules,
                }
            }
            Err(cure) => section.wrong(&value.span(), format!("invalid outcome for {name}"), cure),
        }
    }
    rules
}
