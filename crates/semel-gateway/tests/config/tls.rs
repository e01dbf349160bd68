//! Files for TLS, right and not belonging together.

use crate::read;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use semel_gateway::config::SinkConfig;
use semel_gateway::tls::{ClientCertificates, ClientTlsFiles};
use semel_gateway::upstream::UpstreamProtocol;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Every setting that there is of TLS.
pub(crate) const TLS: &str = r#"
upstream = "https://payments.internal"
upstream_protocol = "http2"
[tls]
certificate = "DIR/one.crt"
key = "DIR/one.key"
client_ca = "DIR/other.crt"
client_certificates = "optional"
check_every = "1m"
[upstream_tls]
ca = "DIR/one.crt"
certificate = "DIR/other.crt"
key = "DIR/other.key"
"#;

/// An example of a page, with files where it says that they are.
pub(crate) fn with_files(example: &str) -> (String, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    for name in ["tls", "clients", "internal-ca", "gateway", "admin"] {
        make(directory.path(), name);
    }
    (example.replace("/etc/semel", directory.path().to_str().unwrap()), directory)
}

/// Writes a certificate and its key.
fn make(directory: &Path, name: &str) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["shop.example".to_owned()]).unwrap();
    std::fs::write(directory.join(format!("{name}.crt")), cert.pem()).unwrap();
    std::fs::write(directory.join(format!("{name}.key")), signing_key.serialize_pem()).unwrap();
}

#[test]
fn files_are_named_and_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path(), "one");
    make(directory.path(), "other");
    let toml = TLS.replace("DIR", directory.path().to_str().unwrap());
    let config = read(&toml).unwrap();
    let tls = config.tls.unwrap();
    assert_eq!(
        (tls.client_certificates, tls.check_every),
        (ClientCertificates::Optional, Duration::from_secs(60))
    );
    assert_eq!(tls.client_ca.unwrap(), directory.path().join("other.crt"));
    assert_eq!(config.upstream_protocol, UpstreamProtocol::Http2);
    let paths = (directory.path().join("other.crt"), directory.path().join("other.key"));
    assert_eq!(config.upstream_tls.certificate, Some(paths));

    let crossed = read(&toml.replace("other.key", "one.key")).unwrap_err().to_string();
    assert!(crossed.contains("one.key is not the private key of the certificate\n"), "{crossed}");
    assert!(crossed.contains("--> semel.toml:13:7\n"), "{crossed}");
    let defaults = read("upstream = \"https://payments.internal\"").unwrap();
    assert_eq!((defaults.upstream_tls, defaults.tls), (ClientTlsFiles::default(), None));
}

#[test]
fn polls_and_webhooks_have_files_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path(), "ca");
    make(directory.path(), "own");
    let files = r#"ca = "DIR/ca.crt"
certificate = "DIR/own.crt"
key = "DIR/own.key"
check_every = "1m"
"#;
    let toml = format!(
        r#"upstream = "http://127.0.0.1:9000"
store = "sqlite:semel.db"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.reconcile]
poll = "https://bank.example/operations/{{operation_id}}"
[route.reconcile.tls]
{files}
[outbox]
sink = "https://partner.example/events"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
[outbox.tls]
{files}"#
    )
    .replace("DIR", directory.path().to_str().unwrap());
    let config = read(&toml).unwrap();
    let path = |name: &str| directory.path().join(name);
    let expected = ClientTlsFiles {
        ca: Some(path("ca.crt")),
        certificate: Some((path("own.crt"), path("own.key"))),
        check_every: Duration::from_secs(60),
    };
    assert_eq!(config.routes.routes()[0].reconcile.as_ref().unwrap().tls, expected);
    let SinkConfig::Webhook { tls, .. } = &config.outbox.as_ref().unwrap().sink else { panic!("a webhook") };
    assert_eq!(*tls, expected);

    let missing = read(&toml.replace("ca.crt", "nowhere.crt")).unwrap_err().to_string();
    for place in ["semel.toml:9:6", "semel.toml:18:6"] {
        assert!(missing.contains(place), "{missing}");
    }
    let crossed = read(&toml.replace("own.key", "ca.key")).unwrap_err().to_string();
    assert!(crossed.contains("ca.key is not the private key of the certificate\n"), "{crossed}");
}

#[test]
fn files_for_tls_of_a_broker_have_no_effect() {
    let toml = "upstream = \"http://127.0.0.1:9000\"\nstore = \"sqlite:semel.db\"\n[outbox]\nsink = \"nats://127.0.0.1:4222\"\nsubject = \"payments\"\n[outbox.tls]\n";
    let said = read(toml).unwrap_err().to_string();
    assert!(said.contains("[outbox.tls] has no effect: `sink` is not an https:// URL"), "{said}");
}
