//! The gateway's configuration: TOML, or a few flags.
//!
//! The file is read into what it says (`section`), and what it says into what is meant (one module per section of the file). Whatever
//! is wrong is gathered on the way and told all at once, before anything listens.

mod address;
mod admin;
mod cache;
mod clock;
mod console;
mod cors;
mod encryption;
mod error;
mod fingerprint;
mod from_flags;
mod key;
mod limits;
mod link;
mod listeners;
mod nearest;
mod outbox;
mod profile;
mod quota;
mod reading;
mod reconcile;
mod route;
mod scope;
mod section;
mod store;
mod telemetry;
mod template;
mod tls;
mod values;
mod worker;

pub(crate) use address::port_of;
pub use cache::CacheConfig;
pub use console::ConsoleConfig;
pub use cors::{AllowedOrigins, CorsConfig};
pub use error::{ConfigError, ConfigErrors, Location};
pub use from_flags::{QuickStart, QuickStartErrors};
pub use link::{InvalidLink, LinkTemplate, PLACEHOLDERS};
pub use outbox::{OutboxConfig, SinkConfig};
pub use quota::QuotaConfig;
pub use semel_worker::Forget;
pub use telemetry::TelemetryConfig;
pub use worker::WorkerConfig;

use crate::identity::Directory;
use crate::limits::Limits;
use crate::route::Routes;
use crate::secret::{Environment, Secret};
pub use crate::setting::{InvalidValue, show_duration, show_size};
use crate::store::StoreUrl;
use crate::tenant::ScopeConfig;
use crate::tls::{ClientTlsFiles, ServerTlsFiles};
use crate::upstream::UpstreamProtocol;
use http::Uri;
use http::uri::Scheme;
use listeners::Whose;
use reading::{Reading, Secrets};
use section::{Given, Section, TextForm};
use semel::clock::Terms;
use semel::key::{KeyRules, KeySources};
use semel::problem::{DocsBase, Format};
use semel::seal::Keyring;
use semel_worker::WebhookSecret;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// Everything that a gateway needs to know. Made by [`from_file`](Config::from_file), [`from_toml`](Config::from_toml) or
/// [`from_flags`](Config::from_flags), and right once it is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// The service.
    pub upstream: Uri,
    /// What is spoken with it. Default: HTTP/1.1.
    pub upstream_protocol: UpstreamProtocol,
    /// For a service at `https://`: whom to believe, and what to show. Default: the system's authorities, and nothing.
    pub upstream_tls: ClientTlsFiles,
    /// Where clients are served. Default `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// What clients are served with. Default: no TLS.
    pub tls: Option<ServerTlsFiles>,
    /// Where records are kept. Default `sqlite:semel.db`.
    pub store: StoreUrl,
    /// The Redis in front of the store; none: every request asks the store.
    pub cache: Option<CacheConfig>,
    /// How refusals look. Default: as the IETF draft has it.
    pub profile: Format,
    /// Bounds every call to the store. Default 2 s.
    pub store_timeout: Duration,
    /// What a key must look like, where its route does not say otherwise.
    pub key_rules: KeyRules,
    /// Where a key is looked for, where its route does not say otherwise. Default: in the header `Idempotency-Key`.
    pub key_sources: KeySources,
    /// Where the problem codes are explained. Default: on the page that the gateway publishes.
    pub docs: DocsBase,
    /// The admin API.
    pub admin: AdminConfig,
    /// Whose request it is.
    pub scope: ScopeConfig,
    /// How far, and on whose word, the store's clock is believed.
    pub clock: Terms,
    /// How much of the gateway one tenant may take.
    pub quota: QuotaConfig,
    /// Which pages of other origins may use the API; `None`: the service answers for itself.
    pub cors: Option<CorsConfig>,
    /// Which requests are protected, and how.
    pub routes: Routes,
    /// Who may tell by webhook what became of an operation.
    pub webhooks: Vec<WebhookConfig>,
    /// Who watches leases, asks about doubt, closes windows and publishes.
    pub worker: WorkerConfig,
    /// Where events of the outbox are published to; none: nowhere, by this process.
    pub outbox: Option<OutboxConfig>,
    /// The keys that seal what is stored; none: nothing is sealed.
    pub encryption: Option<Keyring>,
    /// What clients and service are allowed to take.
    pub limits: Limits,
    /// What large bodies of protected requests and their answers may take of the memory, in bytes. Default 128 MiB, or as many as
    /// the largest request may have.
    pub body_memory: usize,
    /// What is written to the log.
    pub logs: LogConfig,
    /// Where traces and metrics are sent; none: nowhere.
    pub telemetry: Option<TelemetryConfig>,
    /// What operators see in a browser.
    pub console: ConsoleConfig,
    /// The file that it was read from, without secrets and comments; empty without a file.
    pub shown: String,
}

/// The admin API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminConfig {
    /// Where it listens. Default `127.0.0.1:8081`.
    pub listen: SocketAddr,
    /// Who may use it. Empty: on loopback only, and read-only.
    pub people: Directory,
    /// What it is served with. Default: no TLS.
    pub tls: Option<ServerTlsFiles>,
}

/// A sender that may report outcomes by webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookConfig {
    /// Its name, the last segment of `/v1/webhooks/{source}`.
    pub source: String,
    /// Any of these signs; several while one is replaced.
    pub secrets: Vec<Secret>,
}

/// Shorter memories than this do not shorten `clock.max_step` any further: it is ten seconds then.
const SHORTEST_MEMORY: Duration = Duration::from_secs(40);

/// What is written to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// How a line is written. Default: text.
    pub format: LogFormat,
    /// What is worth a line. Default: info and above.
    pub level: LevelFilter,
}

/// How a line of the log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: LevelFilter::INFO }
    }
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));
const DEFAULT_ADMIN_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8081));
const DEFAULT_STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// A configuration that was not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{file} cannot be read")]
    Unreadable {
        /// The file.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
    /// What is in it is wrong.
    #[error(transparent)]
    Wrong(#[from] ConfigErrors),
}

impl Config {
    /// The configuration in a file.
    ///
    /// # Errors
    /// The file cannot be read, or everything that is wrong with it.
    pub fn from_file(file: &Path) -> Result<Self, LoadError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| LoadError::Unreadable { file: file.display().to_string(), source })?;
        Ok(Self::from_toml(&text, file)?)
    }

    /// The configuration that a text tells; `file` is for messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml(text: &str, file: &Path) -> Result<Self, ConfigErrors> {
        Self::from_toml_in(text, file, &|name| std::env::var(name))
    }

    /// The same in another environment than the process's.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml_in(text: &str, file: &Path, environment: Environment<'_>) -> Result<Self, ConfigErrors> {
        Self::read_from(Reading::new(text, environment, Secrets::Needed), file)
    }

    /// Checks the configuration in a file where its secrets are not at hand: environment variables, keys and certificates that it names
    /// need not exist. The result can be looked at; a gateway that is started with it has random secrets.
    ///
    /// # Errors
    /// The file cannot be read, or everything else that is wrong with it.
    pub fn from_file_without_secrets(file: &Path) -> Result<Self, LoadError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| LoadError::Unreadable { file: file.display().to_string(), source })?;
        let reading = Reading::new(&text, &|name| std::env::var(name), Secrets::MadeUp);
        Ok(Self::read_from(reading, file)?)
    }

    fn read_from(reading: Reading<'_>, file: &Path) -> Result<Self, ConfigErrors> {
        let config = reading.parse().and_then(|table| read(Section::top(&reading, &table)));
        let shown = reading.shown();
        reading.end(file)?;
        // Without an error there is an upstream, and with it a configuration.
        config.map(|config| Self { shown, ..config }).ok_or_else(|| ConfigErrors::new(file, Vec::new()))
    }

    /// The defaults, before a service.
    fn before(upstream: Uri) -> Self {
        Self {
            upstream,
            upstream_protocol: UpstreamProtocol::default(),
            upstream_tls: ClientTlsFiles::default(),
            listen: DEFAULT_LISTEN,
            tls: None,
            store: StoreUrl::default(),
            cache: None,
            profile: Format::default(),
            store_timeout: DEFAULT_STORE_TIMEOUT,
            key_rules: KeyRules::default(),
            key_sources: KeySources::default(),
            docs: DocsBase::default(),
            admin: AdminConfig { listen: DEFAULT_ADMIN_LISTEN, people: Directory::default(), tls: None },
            scope: ScopeConfig::default(),
            clock: Terms::default(),
            quota: QuotaConfig::default(),
            cors: None,
            routes: Routes::unconfigured(false),
            webhooks: Vec::new(),
            worker: WorkerConfig::default(),
            outbox: None,
            encryption: None,
            limits: Limits::default(),
            body_memory: limits::BODY_MEMORY,
            logs: LogConfig::default(),
            telemetry: None,
            console: ConsoleConfig::default(),
            shown: String::new(),
        }
    }
}

const LISTEN: TextForm = TextForm { what: "an address", example: "127.0.0.1:8080" };

fn read(mut top: Section<'_, '_>) -> Option<Config> {
    for address in ["upstream", "store"] {
        top.hide_credentials(address);
    }
    let upstream = top.parsed(
        "upstream",
        TextForm { what: "an address", example: "http://127.0.0.1:9000" },
        address::upstream,
    );
    if !top.has("upstream") {
        top.missing("upstream", "http://127.0.0.1:9000");
    }
    let upstream_protocol = top.choice(
        "upstream_protocol",
        &[("http1", UpstreamProtocol::Http1), ("http2", UpstreamProtocol::Http2)],
    );
    let is_https = |given: &Given<Uri>| given.value.scheme() == Some(&Scheme::HTTPS);
    let upstream_tls = tls::read_client(
        top.section("upstream_tls", "[upstream_tls]"),
        "upstream",
        upstream.as_ref().is_none_or(is_https),
    );
    let listen = top.parsed("listen", LISTEN, address::listen);
    let server_tls = tls::read_server(top.section("tls", "[tls]"));
    let store = store::read(&mut top);
    let cache = cache::read(top.section("cache", "[cache]"));
    let profile = profile::read(&mut top);
    let store_timeout =
        top.duration("store_timeout", "2s", Duration::from_millis(10)..=Duration::from_secs(60));
    let docs = top.parsed(
        "docs",
        TextForm { what: "an address", example: "https://docs.example.com/errors/" },
        |text| {
            DocsBase::new(text).map_err(|error| {
                InvalidValue::new(error.to_string(), "write an address to which a code can be appended")
            })
        },
    );
    let admin::Read { config: admin, listen: admin_listen, is_guarded } =
        admin::read(top.section("admin", "[admin]"));
    let scope = scope::read(top.section("scope", "[scope]"));
    let keys = key::read(top.section("key", "[key]"), profile.profile(), &scope);
    let quota = quota::read(top.section("quota", "[quota]"));
    let cors = cors::read(top.section("cors", "[cors]"));
    let webhooks = read_webhooks(top.sections("webhook", "[[webhook]]"));
    let compared = fingerprint::Common::read(top.section("fingerprint", "[fingerprint]"), profile.profile());
    let declared = top.has("route");
    let defaults = top.section("defaults", "[defaults]");
    let for_all_is_told = !declared && defaults.is_there();
    let reading = route::Common {
        webhooks: !webhooks.is_empty(),
        compared: &compared,
        profile: profile.profile(),
        retention: match profile == Format::of(profile.profile()) {
            true => profile.profile().retention(),
            false => (None, None),
        },
        keys: &keys,
    };
    let (routes, for_all) = route::read_all(top.sections("route", "[[route]]"), defaults, &reading);
    let protections = || {
        let for_all = for_all_is_told.then_some(&for_all.protection);
        routes.iter().map(|route| &route.protection).chain(for_all)
    };
    let timeouts = || protections().map(|protection| protection.timeout);
    let timeouts = limits::Timeouts {
        shortest: timeouts().min().unwrap_or(Duration::MAX),
        longest: timeouts().max().unwrap_or_default(),
    };
    let remembered = protections().map(|protection| protection.policy.remembered());
    // Windows of seconds are for trials. A step that a paused machine makes must not have its gateway refuse all work.
    let shortest_memory = remembered.min().unwrap_or(Duration::MAX).max(SHORTEST_MEMORY);
    let clock = clock::read(top.section("clock", "[clock]"), shortest_memory);
    let largest = protections().map(|protection| protection.max_request_body).max().unwrap_or_default();
    let (limits, body_memory) = limits::read(top.section("limits", "[limits]"), timeouts, largest);
    let logs = read_logs(top.section("logs", "[logs]"));
    let telemetry = telemetry::read(top.section("telemetry", "[telemetry]"));
    let console = console::read(top.section("console", "[console]"));
    let worker = worker::read(top.section("worker", "[worker]"));
    let has_outbox = store.as_ref().is_none_or(StoreUrl::has_outbox);
    let outbox = outbox::read(top.section("outbox", "[outbox]"), has_outbox);
    let encryption = encryption::read(top.section("encryption", "[encryption]"));

    let value_of =
        |given: &Option<Given<SocketAddr>>, default| given.as_ref().map_or(default, |given| given.value);
    let listen_is = value_of(&listen, DEFAULT_LISTEN);
    let service = upstream.as_ref().map(|upstream| &upstream.value);
    for (whose, InvalidValue { problem, cure }) in
        listeners::check(service, listen_is, admin.listen, is_guarded)
    {
        let at = match whose {
            Whose::Upstream => upstream.as_ref().map(|upstream| &upstream.at),
            Whose::AdminListen => admin_listen.as_ref().or(listen.as_ref()).map(|given| &given.at),
        };
        if let Some(at) = at {
            top.wrong(at, problem, cure);
        }
    }
    top.end();
    Some(Config {
        upstream_protocol: upstream_protocol.map_or_else(Default::default, |given| given.value),
        upstream_tls,
        listen: listen_is,
        tls: server_tls,
        store: store.unwrap_or_default(),
        cache,
        profile,
        store_timeout: store_timeout.map_or(DEFAULT_STORE_TIMEOUT, |timeout| timeout.value),
        key_rules: keys.rules,
        key_sources: keys.sources.clone(),
        docs: docs.map_or_else(DocsBase::default, |docs| docs.value),
        admin,
        scope,
        clock,
        quota,
        cors,
        // Without a route, a file protects as much as no file: what is sent with a key is never let through unprotected for
        // want of a line.
        routes: match declared {
            true => Routes::declared(routes),
            false => Routes::for_everything(for_all),
        },
        webhooks,
        worker,
        outbox,
        encryption,
        limits,
        body_memory,
        logs,
        telemetry,
        console,
        ..Config::before(upstream?.value)
    })
}

fn read_webhooks(sections: Vec<Section<'_, '_>>) -> Vec<WebhookConfig> {
    let mut webhooks: Vec<WebhookConfig> = Vec::new();
    for mut section in sections {
        let source = section.parsed("source", TextForm { what: "a name", example: "provider" }, |text| {
            if text == "unknown" {
                return Err(InvalidValue::new(
                    "\"unknown\" is not a valid source name: metrics count unknown sources under it",
                    "write another name: \"provider\"",
                ));
            }
            let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            match !text.is_empty() && text.len() <= 100 && text.bytes().all(good) {
                true => Ok(text.to_owned()),
                false => Err(InvalidValue::new(
                    format!("\"{text}\" is not a valid source name"),
                    "it is part of a URL: use letters, digits, _ and - only",
                )),
            }
        });
        if !section.has("source") {
            section.missing("source", "provider");
        }
        let secrets = section.secrets("secrets");
        match &secrets {
            None if !section.has("secrets") => {
                section.missing_as("secrets", "[\"env:SEMEL_WEBHOOK_SECRET\"]")
            }
            Some(secrets) if secrets.empty => {
                section.wrong(
                    &secrets.at,
                    "without a secret no webhook can be verified",
                    "write [\"env:SEMEL_WEBHOOK_SECRET\"]",
                );
            }
            _ => {}
        }
        let secrets = secrets.into_iter().flat_map(|secrets| secrets.items).map(|Given { value, at }| {
            if !section.is_made_up(&at)
                && let Err(error) = WebhookSecret::parse(value.reveal())
            {
                section.wrong(
                    &at,
                    error.to_string(),
                    "write the secret that the provider gave you (\"whsec_…\"), or ask it for a new one",
                );
            }
            value
        });
        let secrets = secrets.collect();
        if let Some(Given { value: source, at }) = source {
            if webhooks.iter().any(|other| other.source == source) {
                let cure = "put all its secrets into one [[webhook]]";
                section.wrong(&at, format!("the source \"{source}\" is given twice"), cure);
            }
            webhooks.push(WebhookConfig { source, secrets });
        }
        section.end();
    }
    webhooks
}

fn read_logs(mut section: Section<'_, '_>) -> LogConfig {
    let default = LogConfig::default();
    let format = section.choice("format", &[("text", LogFormat::Text), ("json", LogFormat::Json)]);
    let level = section.choice(
        "level",
        &[
            ("info", LevelFilter::INFO),
            ("error", LevelFilter::ERROR),
            ("warn", LevelFilter::WARN),
            ("debug", LevelFilter::DEBUG),
            ("trace", LevelFilter::TRACE),
            ("off", LevelFilter::OFF),
        ],
    );
    section.end();
    LogConfig {
        format: format.map_or(default.format, |format| format.value),
        level: level.map_or(default.level, |level| level.value),
    }
}
