//! Files for TLS, right and not belonging together.

use crate::read;
use rcgen::{CertifiedKey, generate_simple_self_signed};
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
