//! TLS with clients.

use super::{CHECK_EVERY, HTTP1, HTTP2};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use semel_http::tls::{FromFiles, PemFile, Reloading, TlsError, TlsSetting, key_mismatch, provider};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Whether clients have to show a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClientCertificates {
    /// Without one there is no connection.
    #[default]
    Required,
    /// One that is shown must be right.
    Optional,
}

/// The files for TLS with clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerTlsFiles {
    /// The certificate in PEM, and those of the intermediate authorities after it.
    pub certificate: PathBuf,
    /// Its private key in PEM.
    pub key: PathBuf,
    /// The authorities that clients' certificates are believed from. None: clients are asked for none.
    pub client_ca: Option<PathBuf>,
    /// Whether clients have to show one.
    pub client_certificates: ClientCertificates,
    /// How often the files are looked at. Default 10 s.
    pub check_every: Duration,
}

impl ServerTlsFiles {
    /// A certificate and its key; clients are asked for none.
    #[must_use]
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            client_ca: None,
            client_certificates: ClientCertificates::default(),
            check_every: CHECK_EVERY,
        }
    }

    /// Looks whether they can be used.
    ///
    /// # Errors
    /// The first file that cannot.
    pub fn check(&self) -> Result<(), TlsError> {
        self.make().map(drop)
    }

    fn pem(&self) -> Result<(PemFile<'_>, PemFile<'_>, Option<PemFile<'_>>), TlsError> {
        let authorities = self.client_ca.as_deref().map(|file| PemFile::read(TlsSetting::Authorities, file));
        Ok((
            PemFile::read(TlsSetting::Certificate, &self.certificate)?,
            PemFile::read(TlsSetting::Key, &self.key)?,
            authorities.transpose()?,
        ))
    }

    fn verifier(&self, authorities: &PemFile<'_>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let roots = Arc::new(authorities.authorities()?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
        let verifier = match self.client_certificates {
            ClientCertificates::Required => verifier,
            ClientCertificates::Optional => verifier.allow_unauthenticated(),
        };
        verifier.build().map_err(|error| authorities.wrong(&format!("cannot be used ({error})")))
    }
}

impl FromFiles for ServerTlsFiles {
    type Made = ServerConfig;

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        let (certificate, key, authorities) = self.pem()?;
        let files = [Some(&certificate), Some(&key), authorities.as_ref()];
        let contents: Vec<&[u8]> = files.into_iter().flatten().map(PemFile::bytes).collect();
        Ok(contents.join(&0))
    }

    fn make(&self) -> Result<ServerConfig, TlsError> {
        let (certificate, key, authorities) = self.pem()?;
        let (chain, private_key) = (certificate.certificates()?, key.private_key()?);
        let builder = ServerConfig::builder_with_provider(provider())
            // TLS 1.2 and 1.3: there is nothing older in this library.
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?;
        let builder = match &authorities {
            Some(authorities) => builder.with_client_cert_verifier(self.verifier(authorities)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(chain, private_key)
            .map_err(|error| key_mismatch(&certificate, &key, &error))?;
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(config)
    }
}

/// TLS with clients, by files that are followed as they change.
pub struct ServerTls {
    config: Reloading<ServerConfig>,
    protocols: Protocols,
}

/// What clients may choose from.
#[derive(Clone, Copy)]
enum Protocols {
    All,
    Http1,
}

impl ServerTls {
    /// Reads the files, and follows them from now on. To be called within a runtime.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn start(files: ServerTlsFiles) -> Result<Self, TlsError> {
        Self::speaking(files, Protocols::All)
    }

    /// The same for HTTP/1.1 alone.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn start_http1(files: ServerTlsFiles) -> Result<Self, TlsError> {
        Self::speaking(files, Protocols::Http1)
    }

    fn speaking(files: ServerTlsFiles, protocols: Protocols) -> Result<Self, TlsError> {
        let every = files.check_every;
        Ok(Self { config: Reloading::start(files, every)?, protocols })
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut config = self.config.current();
        if let Protocols::Http1 = self.protocols {
            Arc::make_mut(&mut config).alpn_protocols = vec![HTTP1.to_vec()];
        }
        TlsAcceptor::from(config).accept(stream).await
    }
}
