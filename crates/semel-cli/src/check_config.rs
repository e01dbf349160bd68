//! `semel check-config`: says what is wrong with a configuration, or what it comes to.

use anstyle::Style;
use clap::Args;
use semel::InFlight;
use semel::seal::Keyring;
use semel_gateway::Config;
use semel_gateway::config::{LoadError, show_duration};
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
/// Shows everything that is wrong with the file, each with its line and what would be
/// right; or, if nothing is, what it comes to. No store is opened and nobody is called,
/// but environment variables, keys and certificates that the file names have to be there.
///
/// Status 0: it is right. 1: it is not, or cannot be read. 2: wrong arguments.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The file, such as semel.toml
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let file = arguments.file.display();
    match Config::from_file(&arguments.file) {
        Ok(config) => {
            // Whoever reads along may have had enough (`| head`); the status says the rest.
            let _ = write!(anstream::stdout(), "{STRONG}{file} is right.{STRONG:#}\n\n{}", summary(&config));
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

/// What the configuration comes to.
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
    let token = match config.admin.token {
        Some(_) => "with a token",
        None => "without a token: read only",
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
        ("admin", format!("{} ({admin_tls}{token})", config.admin.listen)),
        ("store", format!("{}{durable}", config.store)),
        ("tenant", tenant),
    ];
    lines.extend(config.scope.words().into_iter().map(|words| ("", words)));
    if let Some(keyring) = &config.encryption {
        lines.push(("sealing", sealing(keyring)));
    }
    lines.extend(quota(config).map(|quota| ("quota", quota)));
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

/// Which keys seal and open.
fn sealing(keyring: &Keyring) -> String {
    let seals = match keyring.seals_with() {
        Some(id) => format!("by the key {id}"),
        None => "nothing yet".to_owned(),
    };
    let others: Vec<&str> = keyring.ids().filter(|id| Some(*id) != keyring.seals_with()).collect();
    let opens = if others.is_empty() { String::new() } else { format!("; opens {}", others.join(", ")) };
    let plain = if keyring.refuses_plain() { "refused" } else { "accepted" };
    format!("{seals}{opens}; what is stored plain is {plain}")
}

/// How many keys a tenant may have and make, where that is limited.
fn quota(config: &Config) -> Option<String> {
    let keys = &config.quota.keys;
    let mut words = Vec::new();
    if let Some(most) = keys.default.live_keys {
        words.push(format!("{most} live keys a tenant"));
    }
    if let Some(rate) = keys.default.new_keys {
        words.push(format!("{} new keys a second and tenant ({} at once)", rate.per_second, rate.burst));
    }
    match keys.tenants.len() {
        0 => {}
        1 => words.push("1 tenant has its own".into()),
        several => words.push(format!("{several} tenants have their own")),
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn told_of_tls(tls: &ServerTlsFiles) -> &'static str {
    match (&tls.client_ca, tls.client_certificates) {
        (None, _) => " (TLS)",
        (Some(_), ClientCertificates::Required) => " (TLS, with certificates of clients)",
        (Some(_), ClientCertificates::Optional) => " (TLS, with or without certificates of clients)",
    }
}

/// How doubt comes to an end, and who forgets.
fn settling(config: &Config) -> Vec<(&'static str, String)> {
    let who = if config.worker.in_gateway { "in the gateway" } else { "`semel worker` alone" };
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
            route.operation, reconcile.poll, reconcile.attempts
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
    let row = |operation: &str, request: String, protection: &semel_tower::Protection| {
        let key = match protection.key {
            KeyRequirement::Required => "required",
            KeyRequirement::Optional => "optional",
        };
        let in_flight = match protection.policy.in_flight {
            InFlight::Conflict => "conflict".to_owned(),
            InFlight::Accepted => "accepted".to_owned(),
            InFlight::Wait(wait) => format!("wait:{}", show_duration(wait)),
        };
        let (window, timeout) =
            (show_duration(protection.policy.retention), show_duration(protection.timeout));
        [operation.to_owned(), request, key.to_owned(), window, timeout, in_flight]
    };
    if let Some(protection) = config.routes.for_all() {
        rows.push(row("(each path)", "POST, PATCH (no route is declared)".into(), protection));
    }
    for route in config.routes.routes() {
        rows.push(row(&route.operation, route.pattern.to_string(), &route.protection));
    }
    rows
}
