//! Certificates and keys, as they are in files.

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::path::{Path, PathBuf};

/// A setting that names a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsSetting {
    /// The chain of certificates that is shown.
    Certificate,
    /// Its private key.
    Key,
    /// The authorities that the other side's certificates are believed from.
    Authorities,
}

/// What is wrong with files for TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{file} cannot be read ({error})")]
    Unreadable {
        /// The setting that names it.
        setting: TlsSetting,
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// What is in a file is not what it should be.
    #[error("{file} {problem}")]
    Wrong {
        /// The setting that names it.
        setting: TlsSetting,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The system's own certificates of authorities cannot be found.
    #[error("this system has no certificate authorities installed")]
    NoSystemRoots,
    /// The TLS library cannot be used as it was built.
    #[error("TLS is not available ({0})")]
    Library(rustls::Error),
}

impl TlsError {
    /// The setting whose file is wrong, if it is about one.
    #[must_use]
    pub fn setting(&self) -> Option<TlsSetting> {
        match self {
            Self::Unreadable { setting, .. } | Self::Wrong { setting, .. } => Some(*setting),
            Self::NoSystemRoots | Self::Library(_) => None,
        }
    }

    /// What would be right.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "write the path of a file that the gateway may read, absolute or from where it is started"
            }
            Self::Wrong { setting: TlsSetting::Certificate, .. } => {
                "it needs the certificate in PEM, followed by those of the intermediate authorities"
            }
            Self::Wrong { setting: TlsSetting::Key, .. } => {
                "it needs the certificate's private key in PEM, without a password"
            }
            Self::Wrong { setting: TlsSetting::Authorities, .. } => {
                "it needs the authorities' certificates in PEM"
            }
            Self::Library(_) => "build with a crypto provider that supports TLS 1.2 or 1.3",
            Self::NoSystemRoots => "install them (Debian: ca-certificates), or name a file in `ca`",
        }
    }
}

/// A file, and what was in it.
pub struct PemFile<'a> {
    setting: TlsSetting,
    file: &'a Path,
    pem: Vec<u8>,
}

impl<'a> PemFile<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(setting: TlsSetting, file: &'a Path) -> Result<Self, TlsError> {
        let unreadable = |error| TlsError::Unreadable { setting, file: file.to_owned(), error };
        Ok(Self { setting, file, pem: std::fs::read(file).map_err(unreadable)? })
    }

    /// All that is in it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.pem
    }

    /// The certificates in it, at least one.
    ///
    /// # Errors
    /// The file holds no certificate.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.pem).collect();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(self.wrong("holds no certificate in PEM")),
        }
    }

    /// The private key in it.
    ///
    /// # Errors
    /// The file holds no private key.
    pub fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.pem).map_err(|_| self.wrong("holds no private key in PEM"))
    }

    /// The certificates in it, as authorities.
    ///
    /// # Errors
    /// The file holds no certificate, or one that cannot be used.
    pub fn authorities(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates()? {
            roots
                .add(certificate)
                .map_err(|error| self.wrong(&format!("holds an invalid certificate ({error})")))?;
        }
        Ok(roots)
    }

    /// An error about this file.
    #[must_use]
    pub fn wrong(&self, problem: &str) -> TlsError {
        TlsError::Wrong { setting: self.setting, file: self.file.to_owned(), problem: problem.to_owned() }
    }
}

/// What rustls says of a certificate and its key, as something about one of the two files.
#[must_use]
pub fn key_mismatch(certificate: &PemFile<'_>, key: &PemFile<'_>, error: &rustls::Error) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(_) => key.wrong("is not the private key of the certificate"),
        rustls::Error::InvalidCertificate(_) => {
            certificate.wrong(&format!("holds an invalid certificate ({error})"))
        }
        error => key.wrong(&format!("cannot be used ({error})")),
    }
}
