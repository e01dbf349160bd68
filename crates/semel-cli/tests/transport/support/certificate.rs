//! An authority of the tests' own, and what it vouches for.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files for a server on this machine.
pub(crate) struct Certificate {
    pub(crate) ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    pub(crate) fn make(directory: &Path) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Each has a name of its own: no two are taken for each other.
        authority.distinguished_name.push(DnType::CommonName, directory.display().to_string());
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(vec!["127.0.0.1".into(), "localhost".into()]).unwrap();
        let certificate = names.signed_by(&key, &issuer).unwrap();
        let files = Self {
            ca: directory.join("ca.crt"),
            certificate: directory.join("gateway.crt"),
            key: directory.join("gateway.key"),
        };
        std::fs::write(&files.ca, issuer.pem()).unwrap();
        std::fs::write(&files.certificate, certificate.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    /// What a server needs that has them.
    pub(crate) fn server(&self) -> ServerConfig {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&self.certificate).unwrap().collect();
        let key = PrivateKeyDer::from_pem_file(&self.key).unwrap();
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.unwrap(), key)
            .unwrap()
    }

    /// The settings that name them.
    pub(crate) fn settings(&self) -> String {
        format!("certificate = {:?}\nkey = {:?}\n", self.certificate, self.key)
    }
}
