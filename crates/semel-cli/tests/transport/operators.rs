//! The admin API over TLS.

use crate::support::{Certificate, Service, gateway};
use std::process::Command;

#[test]
fn operators_are_served_over_tls_and_believe_whom_they_say() {
    let (service, certificate) = (Service::start(), Certificate::make());
    let gateway = gateway(&service, &format!("[admin.tls]\n{}", certificate.settings()));
    let list = |scheme: &str, ca: Option<&str>| {
        let mut semel = Command::new(env!("CARGO_BIN_EXE_semel"));
        semel.args(["operations", "list", "--admin", &format!("{scheme}://{}", gateway.admin)]);
        if let Some(ca) = ca {
            semel.args(["--admin-ca", ca]);
        }
        semel.output().unwrap()
    };
    let ca = certificate.ca();
    let ca = ca.to_str().unwrap();
    let listed = list("https", Some(ca));
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(!list("https", None).status.success(), "the system knows no such authority");
    assert!(!list("http", None).status.success(), "nobody answers in the clear");
    let curl = Command::new("curl")
        .args(["--silent", "--fail", "--cacert", ca])
        .arg(format!("https://{}/healthz", gateway.admin))
        .status();
    assert!(curl.unwrap().success());
}
