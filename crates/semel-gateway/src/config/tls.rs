//! `[tls]`, `[admin.tls]`, `[upstream_tls]` and the `tls` of whatever else is called: certificates, keys and authorities by path.

use super::reading::Secrets;
use super::section::{Given, Section, TextForm};
use crate::setting::InvalidValue;
use crate::tls::{CHECK_EVERY, ClientCertificates, ClientTlsFiles, ServerTlsFiles, TlsError, TlsSetting};
use std::path::PathBuf;
use std::time::Duration;

const FILE: TextForm = TextForm { what: "the path of a file", example: "/etc/semel/tls.crt" };

/// What clients are served with; none: no TLS.
pub(super) fn read_server(mut section: Section<'_, '_>) -> Option<ServerTlsFiles> {
    let certificate = file(&mut section, "certificate");
    let key = file(&mut section, "key");
    let client_ca = file(&mut section, "client_ca");
    let client_certificates = section.choice(
        "client_certificates",
        &[("required", ClientCertificates::Required), ("optional", ClientCertificates::Optional)],
    );
    let check_every = check_every(&mut section);
    if section.is_there() {
        for (name, example) in [("certificate", "/etc/semel/tls.crt"), ("key", "/etc/semel/tls.key")] {
            if !section.has(name) {
                section.missing(name, example);
            }
        }
    }
    if let (Some(given), false) = (&client_certificates, section.has("client_ca")) {
        let cure = "add client_ca = \"/etc/semel/clients.crt\", or remove `client_certificates`";
        section.wrong(&given.at, "`client_ca` is missing: no client certificate could be verified", cure);
    }
    let files = match (&certificate, &key) {
        (Some(certificate), Some(key)) => Some(ServerTlsFiles {
            client_ca: client_ca.as_ref().map(|given| given.value.clone()),
            client_certificates: client_certificates.map_or_else(Default::default, |given| given.value),
            check_every,
            ..ServerTlsFiles::new(&certificate.value, &key.value)
        }),
        _ => None,
    };
    if section.reading.secrets == Secrets::Needed
        && let Some(Err(error)) = files.as_ref().map(ServerTlsFiles::check)
    {
        blame(&section, &error, [&certificate, &key, &client_ca]);
    }
    section.end();
    files
}

/// What is called with. `setting` is the one with the address; `is_used`: that is at `https://`.
pub(super) fn read_client(mut section: Section<'_, '_>, setting: &str, is_used: bool) -> ClientTlsFiles {
    let ca = file(&mut section, "ca");
    let certificate = file(&mut section, "certificate");
    let key = file(&mut section, "key");
    let check_every = check_every(&mut section);
    match (&certificate, &key) {
        (Some(_), None) if !section.has("key") => section.missing("key", "/etc/semel/gateway.key"),
        (None, Some(_)) if !section.has("certificate") => {
            section.missing("certificate", "/etc/semel/gateway.crt");
        }
        _ => {}
    }
    if let (Some(at), false) = (&section.at, is_used) {
        let cure = format!("write {setting} = \"https://…\", or remove {}", section.name());
        let problem = format!("{} has no effect: `{setting}` is not an https:// URL", section.name());
        section.wrong(at, problem, cure);
    }
    let pair = certificate.as_ref().zip(key.as_ref());
    let files = ClientTlsFiles {
        ca: ca.as_ref().map(|given| given.value.clone()),
        certificate: pair.map(|(certificate, key)| (certificate.value.clone(), key.value.clone())),
        check_every,
    };
    if section.reading.secrets == Secrets::Needed
        && let Err(error) = files.check()
    {
        blame(&section, &error, [&certificate, &key, &ca]);
    }
    section.end();
    files
}

fn file(section: &mut Section<'_, '_>, name: &'static str) -> Option<Given<PathBuf>> {
    section.hide_pem(name);
    section.parsed(name, FILE, |text| {
        if text.contains("-----BEGIN") {
            let cure = "put it into a file that only the gateway can read, and write its path here";
            return Err(InvalidValue::new(
                format!("`{name}` takes the path of a file, not its content"),
                cure,
            ));
        }
        match text.is_empty() {
            true => Err(InvalidValue::new(format!("`{name}` is empty"), "write the path of a file")),
            false => Ok(PathBuf::from(text)),
        }
    })
}

fn check_every(section: &mut Section<'_, '_>) -> Duration {
    let bounds = Duration::from_millis(100)..=Duration::from_secs(24 * 60 * 60);
    section.duration("check_every", "10s", bounds).map_or(CHECK_EVERY, |given| given.value)
}

/// Shows what is wrong with a file where it is named.
fn blame(
    section: &Section<'_, '_>,
    error: &TlsError,
    [certificate, key, authorities]: [&Option<Given<PathBuf>>; 3],
) {
    let named = match error.setting() {
        Some(TlsSetting::Certificate) => certificate,
        Some(TlsSetting::Key) => key,
        Some(TlsSetting::Authorities) => authorities,
        None => &None,
    };
    if let Some(at) = named.as_ref().map(|given| &given.at).or(section.at.as_ref()) {
        section.wrong(at, error.to_string(), error.cure());
    }
}
