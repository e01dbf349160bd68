//! A certificate authority for one test.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A certificate authority with files in a directory of its own, which goes with this value.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

/// A certificate and its private key, by path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issued {
    /// The certificate, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

impl Authority {
    /// Creates one. No two have the same name, so that none is taken for another.
    #[must_use]
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, directory.path().display().to_string());
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
            .expect("a certificate of an authority");
        let authority = Self { issuer, directory };
        write(&authority.ca(), &authority.issuer.pem());
        authority
    }

    /// The file with its own certificate.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.crt")
    }

    /// Issues, or renews, a certificate for these hosts. Its files are called `name`.
    #[must_use]
    pub fn issue(&self, name: &str, hosts: &[&str]) -> Issued {
        self.sign(name, CertificateParams::new(owned(hosts)).expect("names of hosts"))
    }

    /// As [`issue`](Self::issue), but the certificate expired years ago.
    #[must_use]
    pub fn issue_expired(&self, name: &str, hosts: &[&str]) -> Issued {
        let mut params = CertificateParams::new(owned(hosts)).expect("names of hosts");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(name, params)
    }

    fn sign(&self, name: &str, mut params: CertificateParams) -> Issued {
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let path = |kind: &str| self.directory.path().join(format!("{name}.{kind}"));
        let issued = Issued { certificate: path("crt"), key: path("key") };
        write(&issued.certificate, &certificate.pem());
        write(&issued.key, &key.serialize_pem());
        issued
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

fn owned(hosts: &[&str]) -> Vec<String> {
    hosts.iter().map(|host| (*host).to_owned()).collect()
}

fn write(file: &Path, pem: &str) {
    std::fs::write(file, pem).expect("the directory is writable");
}
