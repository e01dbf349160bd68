//! What the options say, checked.

use crate::body::{Body, Vary};
use crate::call::Call;
use crate::counter::{CountAt, Counter};
use crate::header::Header;
use crate::options::Options;
use crate::profile::Profile;
use crate::secrets::{Secrets, looks_live};
use bytes::Bytes;
use http::{HeaderName, Method, header::CONTENT_TYPE};
use semel_http::Endpoint;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that was given, with defaults for what was not.
pub(crate) struct Settings {
    pub(crate) target: Endpoint,
    pub(crate) also: Vec<Endpoint>,
    pub(crate) send: Call,
    pub(crate) other_send: Vec<Call>,
    pub(crate) body: Body,
    pub(crate) headers: Vec<Header>,
    pub(crate) other_caller: Vec<Header>,
    pub(crate) same_caller: Vec<Header>,
    pub(crate) key: KeyPlace,
    pub(crate) profile: Profile,
    pub(crate) http2: bool,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) vary: Option<Vary>,
    pub(crate) mark: Option<String>,
    pub(crate) counter: Option<Counter>,
    pub(crate) identity: Option<String>,
    pub(crate) slow: Option<Extra>,
    pub(crate) fail_with: Option<Extra>,
    pub(crate) hostile: bool,
    pub(crate) revoke: Option<String>,
    pub(crate) expire: Option<String>,
    pub(crate) undo: Option<String>,
    pub(crate) crash: Option<Crash>,
    pub(crate) concurrency: usize,
    pub(crate) rounds: usize,
    pub(crate) max_effects: usize,
    pub(crate) rps: u32,
    pub(crate) timeout: Duration,
    pub(crate) settle: Duration,
    pub(crate) patience: Duration,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) seed: u64,
    pub(crate) only: Vec<String>,
    pub(crate) secrets: Secrets,
}

/// Where the key goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeyPlace {
    Header(HeaderName),
    /// A pointer into the JSON body.
    Json(String),
}

/// What is added to a request to make the API slow, or fail.
#[derive(Clone)]
pub(crate) enum Extra {
    Header(Header),
    Member { pointer: String, value: String },
}

/// How the API is killed and started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Crash {
    pub(crate) kill: String,
    pub(crate) start: String,
    pub(crate) ready: Option<Call>,
}

/// Why a check cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An option is missing or wrong.
    #[error("{option}: {problem}")]
    Option {
        /// The flag.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// It would do harm, or might.
    #[error("refused: {0}")]
    Harm(String),
}

pub(crate) fn wrong(option: &'static str) -> impl Fn(String) -> PlanError {
    move |problem| PlanError::Option { option, problem }
}

impl Settings {
    /// Checks the options, and fills in defaults.
    ///
    /// # Errors
    /// What is missing, wrong, or might do harm.
    pub(crate) fn new(options: &Options) -> Result<Self, PlanError> {
        let mut secrets = Secrets::default();
        let target = options.target.as_deref().ok_or_else(|| wrong("URL")("say where the API is".into()))?;
        let target = endpoint("URL", target)?;
        let also: Vec<_> =
            options.also.iter().map(|url| endpoint("--also", url)).collect::<Result<_, _>>()?;
        let send = options
            .send
            .as_deref()
            .ok_or_else(|| wrong("--send")("say what to send, such as 'POST /payments'".into()))?;
        let send = Call::parse(send, &mut secrets).map_err(wrong("--send"))?;
        let mut headers = |option, lines: &[String]| -> Result<Vec<Header>, PlanError> {
            lines.iter().map(|line| Header::parse(line, &mut secrets).map_err(wrong(option))).collect()
        };
        let own = headers("--header", &options.header)?;
        let other_caller = headers("--other-caller", &options.other_caller)?;
        let same_caller = headers("--same-caller", &options.same_caller)?;
        let content_type = own.iter().find(|header| header.name == CONTENT_TYPE);
        let content_type = content_type.and_then(|header| header.value.to_str().ok());
        let body = read_body("--body", options.body.as_deref(), content_type)?;
        let key = KeyPlace::parse(options.key_from.as_deref().unwrap_or("header:idempotency-key"))
            .map_err(wrong("--key-from"))?;
        if matches!(key, KeyPlace::Json(_)) && !matches!(body, Body::Json(_)) {
            return Err(wrong("--key-from")("the body is not JSON".into()));
        }
        let name = options.profile.as_deref().unwrap_or("auto");
        let profile = Profile::named(name).ok_or_else(|| {
            let names: Vec<_> = Profile::all().iter().map(|profile| profile.name).collect();
            wrong("--profile")(format!("`{name}` is not one of {}", names.join(", ")))
        })?;
        let vary = match (&options.other_body, &options.vary) {
            (Some(other), _) => Some(Vary::Other(other_body(other, content_type)?)),
            (None, Some(place)) => Some(vary_at(&body, place)?),
            (None, None) => body.find_vary(),
        };
        if let Some(mark) = &options.mark
            && body.with_text(mark, "a").is_none()
        {
            return Err(wrong("--mark")(format!("the body has no place for {mark}")));
        }
        let counter = counter(options, &mut secrets)?;
        let mut extra = |option, text: &Option<String>| {
            let parsed = text.as_deref().map(|text| Extra::parse(text, &body, &mut secrets));
            parsed.transpose().map_err(wrong(option))
        };
        let (slow, fail_with) = (extra("--slow", &options.slow)?, extra("--fail-with", &options.fail_with)?);
        let crash = match (&options.kill, &options.start) {
            (Some(kill), Some(start)) => {
                let ready = options.ready.as_deref().map(|ready| Call::parse(ready, &mut secrets));
                let ready = ready.transpose().map_err(wrong("--ready"))?;
                Some(Crash { kill: kill.clone(), start: start.clone(), ready })
            }
            (None, None) => None,
            _ => return Err(wrong("--kill")("--kill and --start go together".into())),
        };
        let time = |option, text: &Option<String>, default| {
            text.as_deref().map_or(Ok(default), |text| duration(text).map_err(wrong(option)))
        };
        let other_send = options.other_send.iter().map(|call| Call::parse(call, &mut secrets));
        let other_send = other_send.collect::<Result<_, _>>().map_err(wrong("--other-send"))?;
        commands(options).for_each(|command| secrets.add_from_command(command));
        let settings = Self {
            other_send,
            only: options.only.clone(),
            timeout: time("--timeout", &options.timeout, Duration::from_secs(30))?,
            settle: time("--settle", &options.settle, Duration::from_secs(2))?,
            patience: time("--patience", &options.patience, Duration::from_secs(130))?,
            concurrency: options.concurrency.unwrap_or(20).clamp(2, 500),
            rounds: options.rounds.unwrap_or(5).clamp(1, 100),
            max_effects: options.max_effects.unwrap_or(1000),
            rps: options.rps.unwrap_or(100).max(1),
            seed: options.seed.unwrap_or_else(|| fastrand::u64(..)),
            allowed_hosts: options.allow_host.clone(),
            http2: options.http2,
            hostile: options.hostile,
            ca: options.ca.clone(),
            mark: options.mark.clone(),
            identity: options.identity.clone(),
            revoke: options.revoke.clone(),
            expire: options.expire.clone(),
            undo: options.undo.clone(),
            headers: own,
            target,
            also,
            send,
            body,
            other_caller,
            same_caller,
            key,
            profile,
            vary,
            counter,
            slow,
            fail_with,
            crash,
            secrets,
        };
        if commands(options).any(looks_live) {
            return Err(PlanError::Harm("a command has a key that looks live. Use a test key".into()));
        }
        settings.does_no_harm()?;
        Ok(settings)
    }

    /// Refuses hosts that were not named, and keys that look live.
    fn does_no_harm(&self) -> Result<(), PlanError> {
        let mut hosts: Vec<&str> = self.also.iter().chain([&self.target]).map(Endpoint::host).collect();
        if let Some(Counter::Http { at: Some(endpoint), .. }) = &self.counter {
            hosts.push(endpoint.host());
        }
        if let Some(host) = hosts.into_iter().find(|host| !self.may_reach(host)) {
            return Err(PlanError::Harm(format!(
                "{host} is not this machine. This check makes real effects, twice where the API is at fault. If it is a \
                 test system of yours, add --allow-host {host}"
            )));
        }
        match self.live_key() {
            Some(place) => Err(PlanError::Harm(format!("{place} has a key that looks live. Use a test key"))),
            None => Ok(()),
        }
    }

    /// Where a key is that looks live.
    fn live_key(&self) -> Option<String> {
        if let Some(header) = self.all_headers().find(|header| header.looks_live()) {
            return Some(format!("the {} header", header.name));
        }
        let members = [&self.slow, &self.fail_with].into_iter().flatten().filter_map(|extra| match extra {
            Extra::Header(_) => None,
            Extra::Member { value, .. } => Some(value.clone().into_bytes().into()),
        });
        let other = match &self.vary {
            Some(Vary::Member { value, .. }) => Some(value.clone().into_bytes().into()),
            Some(Vary::Other(body)) => Some(body.bytes()),
            None => None,
        };
        let bodies: Vec<Bytes> = [self.body.bytes()].into_iter().chain(other).chain(members).collect();
        if bodies.iter().any(|body| looks_live(&String::from_utf8_lossy(body))) {
            return Some("a body".into());
        }
        let counted = match &self.counter {
            Some(Counter::Http { call, .. }) => Some(call),
            _ => None,
        };
        let ready = self.crash.as_ref().and_then(|crash| crash.ready.as_ref());
        let calls = self.other_send.iter().chain([&self.send]).chain(counted).chain(ready);
        let mut calls = calls.filter(|call| looks_live(&call.path));
        calls.next().map(|_| "a path".into())
    }

    /// Every header that was given.
    pub(crate) fn all_headers(&self) -> impl Iterator<Item = &Header> {
        let extra = [&self.slow, &self.fail_with].into_iter().flatten().filter_map(|extra| match extra {
            Extra::Header(header) => Some(header),
            Extra::Member { .. } => None,
        });
        self.headers.iter().chain(&self.other_caller).chain(&self.same_caller).chain(extra)
    }

    /// Whether a host is this machine, or was named.
    pub(crate) fn may_reach(&self, host: &str) -> bool {
        is_loopback(host) || self.is_named(host)
    }

    /// Whether a host was named by `--allow-host`.
    pub(crate) fn is_named(&self, host: &str) -> bool {
        self.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

fn endpoint(option: &'static str, url: &str) -> Result<Endpoint, PlanError> {
    let endpoint = Endpoint::parse(url).map_err(|error| wrong(option)(error.to_string()))?;
    if endpoint.path() != "/" {
        return Err(wrong(option)("write scheme, host and port; the path belongs into --send".into()));
    }
    Ok(endpoint)
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn read_body(
    option: &'static str,
    text: Option<&str>,
    content_type: Option<&str>,
) -> Result<Body, PlanError> {
    let bytes = match text {
        None => Bytes::new(),
        Some(text) => match text.strip_prefix('@') {
            Some(file) => std::fs::read(file)
                .map_err(|error| wrong(option)(format!("{file} cannot be read ({error})")))?
                .into(),
            None => Bytes::copy_from_slice(text.as_bytes()),
        },
    };
    Ok(Body::of(bytes, content_type))
}

/// A file by its name or as `@FILE`, or JSON as it is.
fn other_body(text: &str, content_type: Option<&str>) -> Result<Body, PlanError> {
    let is_name = !text.starts_with('@') && !text.contains(['{', '[', '"', '=']);
    let file = format!("@{text}");
    read_body("--other-body", Some(if is_name { &file } else { text }), content_type)
}

/// The commands of the user. They often have passwords in them.
fn commands(options: &Options) -> impl Iterator<Item = &str> {
    let all =
        [&options.count_cmd, &options.kill, &options.start, &options.revoke, &options.expire, &options.undo];
    all.into_iter().flatten().map(String::as_str)
}

fn vary_at(body: &Body, place: &str) -> Result<Vary, PlanError> {
    let vary = match place.split_once('=') {
        Some((pointer, value)) => {
            Some(Vary::Member { pointer: pointer.to_owned(), value: json_value(value) })
        }
        None => body.vary_at(place),
    };
    match vary {
        Some(vary) if body.varied(&vary).is_some() => Ok(vary),
        _ => Err(wrong("--vary")(format!(
            "no number or boolean is at {place}. For a text, say what it becomes: {place}=VALUE"
        ))),
    }
}

/// A value as people write it: JSON, or else a text.
fn json_value(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => text.to_owned(),
        Err(_) => serde_json::Value::from(text).to_string(),
    }
}

fn counter(options: &Options, secrets: &mut Secrets) -> Result<Option<Counter>, PlanError> {
    let given = [options.count.is_some(), options.count_cmd.is_some(), options.ledger.is_some()];
    if given.into_iter().filter(|is_given| *is_given).count() > 1 {
        return Err(wrong("--count")("give one of --count, --count-cmd and --ledger".into()));
    }
    if let Some(file) = &options.ledger {
        return Ok(Some(Counter::Ledger(file.clone())));
    }
    if let Some(command) = &options.count_cmd {
        return Ok(Some(Counter::Command(command.clone())));
    }
    let Some(count) = &options.count else { return Ok(None) };
    let count = secrets.resolve_in_path(count).map_err(wrong("--count"))?;
    let (method, url) = count
        .split_once(' ')
        .ok_or_else(|| wrong("--count")("write a method and a path: 'GET /payments'".into()))?;
    let (at, path) = if url.starts_with('/') {
        (None, url.to_owned())
    } else {
        let endpoint = Endpoint::parse(url).map_err(|error| wrong("--count")(error.to_string()))?;
        let path = endpoint.path().to_owned();
        // `{reference}` is no part of a URL as such; it survives in the text.
        let written = url.splitn(4, '/').nth(3).map_or(path, |path| format!("/{path}"));
        (Some(endpoint), written)
    };
    let method: Method =
        method.parse().map_err(|_| wrong("--count")(format!("`{method}` is not a method")))?;
    if !method.is_safe() {
        return Err(wrong("--count")(format!(
            "{method} may have effects of its own: use GET, or --count-cmd"
        )));
    }
    let place = options.count_at.as_deref().unwrap_or("");
    let count_at = match place.strip_prefix("header:") {
        Some(name) => CountAt::Header(
            name.parse().map_err(|_| wrong("--count-at")(format!("`{name}` is not a header name")))?,
        ),
        None if place.is_empty() || place.starts_with('/') => CountAt::Pointer(place.to_owned()),
        None => {
            return Err(wrong("--count-at")("write a JSON Pointer such as /total, or header:NAME".into()));
        }
    };
    Ok(Some(Counter::Http { at, call: Call { method, path }, count_at }))
}

/// A whole number with `ms`, `s` or `m`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is no time: write 500ms, 30s or 2m"))?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err(format!("`{text}` is no time: write 500ms, 30s or 2m")),
    }
}

impl KeyPlace {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("header:") {
            return name.parse().map(Self::Header).map_err(|_| format!("`{name}` is not a header name"));
        }
        match text.strip_prefix("json:") {
            Some(pointer) if pointer.starts_with('/') => Ok(Self::Json(pointer.to_owned())),
            _ => Err("write header:NAME or json:/POINTER".into()),
        }
    }
}

impl std::fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header(name) => write!(f, "in the header {name}"),
            Self::Json(pointer) => write!(f, "in the body at {pointer}"),
        }
    }
}

impl Extra {
    fn parse(text: &str, body: &Body, secrets: &mut Secrets) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Header::parse(text, secrets).map(Self::Header);
        }
        let (pointer, value) = text.split_once('=').ok_or("write POINTER=VALUE or 'Header: value'")?;
        let value = match value.strip_prefix("env:") {
            Some(variable) => serde_json::Value::from(secrets.read_environment(variable)?).to_string(),
            None => json_value(value),
        };
        body.with(pointer, &value).ok_or_else(|| format!("the body has no place for {pointer}"))?;
        Ok(Self::Member { pointer: pointer.to_owned(), value })
    }
}
