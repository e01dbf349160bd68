//! `[telemetry]`: where traces and metrics are sent.

use super::section::{Section, TextForm};
use super::tls;
use crate::setting::InvalidValue;
use crate::tls::ClientTlsFiles;
use http::{HeaderName, HeaderValue};
use semel_http::{Endpoint, InvalidEndpoint};
use std::time::Duration;

/// Where traces and metrics are sent, over OTLP. Shown without the values of its headers.
#[derive(Clone, PartialEq, Debug)]
pub struct TelemetryConfig {
    /// The collector; traces go to `/v1/traces` below it, metrics to `/v1/metrics`.
    pub otlp: Endpoint,
    /// Whom to trust there, for `https`.
    pub tls: ClientTlsFiles,
    /// What the process is called there. Default `semel-gateway`.
    pub service_name: String,
    /// Which part of the requests is traced whose caller did not decide. Default 1: all.
    pub sampling: f64,
    /// Sent along with everything; their values are marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How often the metrics are sent; none: never, and Prometheus comes for them. Default none.
    pub metrics_every: Option<Duration>,
}

const EXAMPLE: &str = "http://127.0.0.1:4318";
const DEFAULT_NAME: &str = "semel-gateway";
const DEFAULT_EVERY: Duration = Duration::from_secs(15);

pub(super) fn read(mut section: Section<'_, '_>) -> Option<TelemetryConfig> {
    section.hide_credentials("otlp");
    let otlp = section.parsed("otlp", TextForm { what: "an address", example: EXAMPLE }, collector);
    if section.is_there() && !section.has("otlp") {
        section.missing("otlp", EXAMPLE);
    }
    let name = section.parsed("service_name", TextForm { what: "a name", example: DEFAULT_NAME }, |text| {
        let fits = !text.trim().is_empty() && text.len() <= 100 && !text.contains(char::is_control);
        let wrong = || {
            InvalidValue::new("`service_name` is not valid", "write a few words without control characters")
        };
        fits.then(|| text.to_owned()).ok_or_else(wrong)
    });
    let sampling = section.fraction("sampling");
    let metrics = section.flag("metrics");
    let every =
        section.duration("metrics_every", "15s", Duration::from_millis(100)..=Duration::from_secs(3600));
    let wanted = metrics.is_some_and(|given| given.value);
    if let Some(given) = every.as_ref().filter(|_| !wanted) {
        let cure = "add metrics = true, or remove `metrics_every`";
        section.wrong(&given.at, "`metrics_every` has no effect without `metrics`", cure);
    }
    let headers = read_headers(section.section("headers", "[telemetry.headers]"));
    let is_https = otlp.as_ref().is_none_or(|given| given.value.is_https());
    let tls = tls::read_client(section.section("tls", "[telemetry.tls]"), "otlp", is_https);
    section.end();
    Some(TelemetryConfig {
        otlp: otlp?.value,
        tls,
        service_name: name.map_or_else(|| DEFAULT_NAME.into(), |name| name.value),
        sampling: sampling.map_or(1.0, |given| given.value),
        headers,
        metrics_every: wanted.then(|| every.map_or(DEFAULT_EVERY, |every| every.value)),
    })
}

fn read_headers(section: Section<'_, '_>) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = Vec::new();
    for (name, value) in section.texts() {
        let Ok(field) = HeaderName::try_from(name.value) else {
            let problem = format!("\"{}\" is not the name of a header", name.value);
            section.wrong(&name.at, problem, "write one such as authorization = \"env:OTLP_AUTHORIZATION\"");
            continue;
        };
        match value.value.map(HeaderValue::try_from) {
            Ok(Ok(mut text)) => {
                text.set_sensitive(true);
                headers.push((field, text));
            }
            Ok(Err(_)) => {
                let cure = "use visible ASCII characters and spaces only";
                section.wrong(&value.at, format!("`{field}` cannot have this value"), cure);
            }
            Err(problem) => section.wrong(&value.at, problem, "write \"env:NAME\", or the value itself"),
        }
    }
    headers
}

/// The collector's address: `https://host:4318`, with a path in front of the protocol's own if it has one.
fn collector(text: &str) -> Result<Endpoint, InvalidValue> {
    const FORM: &str = "write the scheme, the host and the port: \"http://127.0.0.1:4318\"";
    let endpoint = Endpoint::parse(text).map_err(|error| match error {
        InvalidEndpoint::Credentials => {
            let cure = "remove user name and password; credentials go into [telemetry.headers]";
            InvalidValue::new("the address of the collector has credentials in it", cure)
        }
        InvalidEndpoint::Scheme => {
            InvalidValue::new("the collector's URL needs the scheme http or https", FORM)
        }
        _ => InvalidValue::new("this is not the URL of a collector", FORM),
    })?;
    if endpoint.path().contains('?') {
        let cure = "remove the query; credentials go into [telemetry.headers]";
        return Err(InvalidValue::new("this is not the URL of a collector", cure));
    }
    if endpoint.path().ends_with("/v1/traces") || endpoint.path().ends_with("/v1/metrics") {
        let cure = "remove /v1/traces: it is appended, as /v1/metrics is";
        return Err(InvalidValue::new("this is the URL of a single signal", cure));
    }
    Ok(endpoint)
}
