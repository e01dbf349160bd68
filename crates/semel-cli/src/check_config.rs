//! `semel check-config`: shows the errors of a configuration, or its summary.

use anstyle::Style;
use clap::Args;
use semel::InFlight;
use semel::problem::Format;
use semel::seal::Keyring;
use semel_gateway::Config;
use semel_gateway::config::{AllowedOrigins, LoadError, show_duration};
use semel_gateway::tenant::REFRESHED;
use semel_gateway::tls::{ClientCertificates, ServerTlsFiles};
use semel_gateway::upstream::UpstreamProtocol;
use semel_tower::KeyRequirement;
use semel_worker::Forget;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// Check a gateway's configuration, without starting anything
///
/// Shows every error in the file with its line and a fix, or a summary of a valid file's
/// settings. Opens no store and calls nothing, but the environment variables,
/// keys and certificates that the file names must exist; with --without-secrets
/// they need not, for checks in CI. With --strict, a file whose tenants are bearer
/// credentials fails too.
///
/// Exit status: 0 valid, 1 invalid or not readable, 2 usage error.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The file, such as semel.toml
    file: PathBuf,

    /// Do not look for the environment variables, keys and certificates that the file names
    #[arg(long)]
    without_secrets: bool,

    /// Also fail where tenants come from bearer credentials, which a refreshed token changes
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let file = arguments.file.display();
    let (read, note) = match arguments.without_secrets {
        true => (Config::from_file_without_secrets(&arguments.file), ", secrets not checked"),
        false => (Config::from_file(&arguments.file), ""),
    };
    match read {
        Ok(config) => {
            // Whoever reads along may have had enough (`| head`); the status says the rest.
            let _ = write!(anstream::stdout(), "{STRONG}{file}: OK{STRONG:#}{note}\n\n{}", summary(&config));
            if arguments.strict && config.scope.by_credential() {
                let _ = writeln!(
                    anstream::stderr(),
                    "error: tenants come from bearer credentials. {REFRESHED}\n = help: name a source that stays: \
                     [scope] tenant = [\"header:x-account-id\"], [\"jwt:sub\"] or [\"forward-auth\"]"
                );
                return Ok(ExitCode::FAILURE);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(LoadError::Wrong(errors)) => {
            let count = errors.errors().len();
            let plural = if count == 1 { "" } else { "s" };
            let _ =
                writeln!(anstream::stderr(), "{errors:#}\n{STRONG}{file}: {count} error{plural}{STRONG:#}");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}

/// A summary of the configuration.
pub(crate) fn summary(config: &Config) -> String {
    let mut text = String::new();
    for (name, value) in overview(config) {
        let _ = writeln!(text, "  {FAINT}{name:<8}{FAINT:#}  {value}");
    }
    text.push('\n');
    let rows = routes(config);
    let widths = (0..6).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let widths: Vec<_> = widths.collect();
    for (number, row) in rows.iter().enumerate() {
        let style = if number == 0 { FAINT } else { Style::new() };
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "  {style}{}{style:#}", line.trim_end());
    }
    text
}

fn overview(config: &Config) -> Vec<(&'static str, String)> {
    let people = &config.admin.people;
    let guard = match (people.token.is_some(), people.users.len(), people.proxy.is_some()) {
        (false, 0, false) => "without a token: read only".to_owned(),
        (true, 0, false) => "with a token".to_owned(),
        (_, users, proxy) => {
            let proxy = if proxy { ", identities from a proxy" } else { "" };
            format!("users with tokens: {}{proxy}", users + usize::from(people.token.is_some()))
        }
    };
    let tenant = match config.scope.tenant.as_slice() {
        [] => "credential; callers without one share a tenant".to_owned(),
        sources => sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let durable = if config.store.is_durable() { "" } else { " (not durable: a restart forgets every key)" };
    let protocol = match config.upstream_protocol {
        UpstreamProtocol::Http1 => "",
        UpstreamProtocol::Http2 => " (HTTP/2)",
    };
    let admin_tls = if config.admin.tls.is_some() { "TLS, " } else { "" };
    let mut lines = vec![
        ("upstream", format!("{}{protocol}", config.upstream)),
        ("listen", format!("{}{}", config.listen, config.tls.as_ref().map_or("", told_of_tls))),
        ("admin", format!("{} ({admin_tls}{guard})", config.admin.listen)),
        ("store", format!("{}{durable}", config.store)),
        ("profile", profile(&config.profile)),
        ("tenant", tenant),
    ];
    lines.extend(config.scope.words().into_iter().map(|words| ("", words)));
    if let Some(keyring) = &config.encryption {
        lines.push(("sealing", sealing(keyring)));
    }
    lines.extend(quota(config).map(|quota| ("quota", quota)));
    lines.extend(cors(config).map(|cors| ("cors", cors)));
    lines.extend(settling(config));
    if let Some(telemetry) = &config.telemetry {
        let metrics =
            telemetry.metrics_every.map(|every| format!(", and metrics every {}", show_duration(every)));
        let part = telemetry.sampling * 100.0;
        let told = format!("{part}% of the requests to {}{}", telemetry.otlp, metrics.unwrap_or_default());
        lines.push(("traces", told));
    }
    lines
}

/// How refusals look: the profile by its name, and what it extends.
fn profile(format: &Format) -> String {
    let (name, base) = (format.name(), format.profile().as_str());
    let base = if name == base { String::new() } else { format!(", extends {base}") };
    format!("{name} ({}{base})", String::from_utf8_lossy(format.content_type().as_bytes()))
}

/// Which keys seal and open.
fn sealing(keyring: &Keyring) -> String {
    let seals = match keyring.seals_with() {
        Some(id) => format!("with the key {id}"),
        None => "nothing yet".to_owned(),
    };
    let others: Vec<&str> = keyring.ids().filter(|id| Some(*id) != keyring.seals_with()).collect();
    let opens = if others.is_empty() { String::new() } else { format!("; opens {}", others.join(", ")) };
    let plain = if keyring.refuses_plain() { "refused" } else { "accepted" };
    format!("{seals}{opens}; plain records are {plain}")
}

/// How many keys a tenant may have and make, where that is limited.
fn quota(config: &Config) -> Option<String> {
    let keys = &config.quota.keys;
    let mut words = Vec::new();
    if let Some(most) = keys.default.live_keys {
        words.push(format!("{most} live keys per tenant"));
    }
    if let Some(rate) = keys.default.new_keys {
        words.push(format!("{} new keys per second and tenant (burst {})", rate.per_second, rate.burst));
    }
    match keys.tenants.len() {
        0 => {}
        1 => words.push("1 tenant with its own quota".into()),
        several => words.push(format!("{several} tenants with their own quotas")),
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// Whose pages may use the API from a browser.
fn cors(config: &Config) -> Option<String> {
    let cors = config.cors.as_ref()?;
    let origins = match &cors.origins {
        AllowedOrigins::Any => "every origin".to_owned(),
        AllowedOrigins::Listed(origins) => origins.join(", "),
    };
    let credentials = if cors.credentials { "; browsers send credentials along" } else { "" };
    Some(format!("{origins}{credentials}"))
}

fn told_of_tls(tls: &ServerTlsFiles) -> &'static str {
    match (&tls.client_ca, tls.client_certificates) {
        (None, _) => " (TLS)",
        (Some(_), ClientCertificates::Required) => " (TLS, client certificates required)",
        (Some(_), ClientCertificates::Optional) => " (TLS, client certificates optional)",
    }
}

/// How doubt comes to an end, and who forgets.
fn settling(config: &Config) -> Vec<(&'static str, String)> {
    let who = if config.worker.in_gateway { "in the gateway" } else { "`semel worker` only" };
    let forget = match config.worker.forget {
        Forget::Hard => "",
        Forget::Soft => "; expired keys are kept for ever",
    };
    let mut lines = vec![("worker", format!("{who}{forget}"))];
    for route in config.routes.routes() {
        let Some(reconcile) = &route.reconcile else { continue };
        let proof = if reconcile.absence_is_proof { "; absence is proof" } else { "" };
        let every = show_duration(reconcile.every);
        let asked = format!(
            "{}: {} after {every}, {} times at most{proof}",
            route.label(),
            reconcile.poll,
            reconcile.attempts
        );
        lines.push(("poll", asked));
    }
    for webhook in &config.webhooks {
        let plural = if webhook.secrets.len() == 1 { "" } else { "s" };
        let taken = format!("/v1/webhooks/{} ({} secret{plural})", webhook.source, webhook.secrets.len());
        lines.push(("webhook", taken));
    }
    if let Some(outbox) = &config.outbox {
        lines.push(("outbox", format!("events go to {}", outbox.sink)));
    }
    lines
}

fn routes(config: &Config) -> Vec<[String; 6]> {
    let mut rows = vec![["OPERATION", "REQUEST", "KEY", "WINDOW", "TIMEOUT", "IN FLIGHT"].map(String::from)];
    let row = |operation: &str, request: String, protection: &semel_tower::Protection, scope: &str| {
        let need = match protection.key {
            KeyRequirement::Required => "required",
            KeyRequirement::Optional => "optional",
        };
        let key = match scope {
            "operation" => need.to_owned(),
            scope => format!("{need}, scope {scope}"),
        };
        let in_flight = match protection.policy.in_flight {
            InFlight::Conflict => "conflict".to_owned(),
            InFlight::Accepted => "accepted".to_owned(),
            InFlight::Wait(wait) => format!("wait:{}", show_duration(wait)),
        };
        let (window, timeout) =
            (show_duration(protection.policy.retention), show_duration(protection.timeout));
        [operation.to_owned(), request, key, window, timeout, in_flight]
    };
    if let Some(rules) = config.routes.for_all() {
        let scope = rules.protection.key_scope.as_str();
        rows.push(row("(each path)", "POST, PATCH (no route is declared)".into(), &rules.protection, scope));
    }
    for route in config.routes.routes() {
        let operation = route.operation.as_deref().unwrap_or("(each path)");
        let scope = route.key_scope.as_str();
        rows.push(row(operation, route.pattern.to_string(), &route.protection, scope));
    }
    rows
}
