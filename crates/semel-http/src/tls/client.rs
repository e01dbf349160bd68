//! The client's side of a TLS connection.

use super::files::{PemFile, TlsError, TlsSetting, key_mismatch};
use super::reloading::{FromFiles, Reloading};
use super::{CHECK_EVERY, HTTP1, provider};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The files for the client's side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientTlsFiles {
    /// The authorities that its certificate is believed from. None: those of the system.
    pub ca: Option<PathBuf>,
    /// A certificate to show to it, and its private key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// How often the files are looked at. Default 10 s.
    pub check_every: Duration,
}

impl Default for ClientTlsFiles {
    fn default() -> Self {
        Self { ca: None, certificate: None, check_every: CHECK_EVERY }
    }
}

impl ClientTlsFiles {
    /// Looks whether they can be used. The system's authorities are not looked for.
    ///
    /// # Errors
    /// The first file that cannot.
    pub fn check(&self) -> Result<(), TlsError> {
        let files = self.pem()?;
        let roots = files.ca.as_ref().map_or_else(|| Ok(RootCertStore::empty()), PemFile::authorities)?;
        files.config(Arc::new(roots)).map(drop)
    }

    fn pem(&self) -> Result<Pem<'_>, TlsError> {
        let ca = self.ca.as_deref().map(|file| PemFile::read(TlsSetting::Authorities, file));
        let own = self.certificate.as_ref().map(|(certificate, key)| {
            let certificate = PemFile::read(TlsSetting::Certificate, certificate)?;
            Ok((certificate, PemFile::read(TlsSetting::Key, key)?))
        });
        Ok(Pem { ca: ca.transpose()?, own: own.transpose()? })
    }
}

struct Pem<'a> {
    ca: Option<PemFile<'a>>,
    own: Option<(PemFile<'a>, PemFile<'a>)>,
}

impl Pem<'_> {
    fn config(&self, roots: Arc<RootCertStore>) -> Result<ClientConfig, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?
            .with_root_certificates(roots);
        match &self.own {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => builder
                .with_client_auth_cert(certificate.certificates()?, key.private_key()?)
                .map_err(|error| key_mismatch(certificate, key, &error)),
        }
    }
}

impl FromFiles for ClientTlsFiles {
    type Made = ClientConfig;

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        let Pem { ca, own } = self.pem()?;
        let files = ca.iter().chain(own.iter().flat_map(|(certificate, key)| [certificate, key]));
        let contents: Vec<&[u8]> = files.map(PemFile::bytes).collect();
        Ok(contents.join(&0))
    }

    fn make(&self) -> Result<ClientConfig, TlsError> {
        let files = self.pem()?;
        let roots = match &files.ca {
            Some(ca) => Arc::new(ca.authorities()?),
            None => system_roots()?,
        };
        files.config(roots)
    }
}

/// The authorities that this system trusts. Certificates there that cannot be used are passed over.
///
/// Read once per process and shared: it is a file of some 200 KB, and every client of a gateway and each of its reloads would parse it.
fn system_roots() -> Result<Arc<RootCertStore>, TlsError> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(roots) = ROOTS.get() {
        return Ok(Arc::clone(roots));
    }
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    // Not kept: an operator who installs them now need not restart the process.
    if usable == 0 {
        return Err(TlsError::NoSystemRoots);
    }
    Ok(Arc::clone(ROOTS.get_or_init(|| Arc::new(roots))))
}

/// Connects over TLS, with files that are reloaded when they change.
pub struct ClientTls(Reloading<ClientConfig>);

impl ClientTls {
    /// Reads the files, and follows them from now on. To be called within a runtime.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn start(files: ClientTlsFiles) -> Result<Self, TlsError> {
        let every = files.check_every;
        Reloading::start(files, every).map(Self)
    }

    /// Speaks HTTP/1.1 with `host` over a connection to it.
    ///
    /// # Errors
    /// It is not who it should be, or the connection broke.
    pub async fn connect_to<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.connect(name, stream, HTTP1).await
    }

    /// Connects to `name`, and agrees on `protocol`.
    ///
    /// # Errors
    /// It is not who it should be, or the connection broke.
    pub async fn connect<S>(
        &self,
        name: ServerName<'static>,
        stream: S,
        protocol: &'static [u8],
    ) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut config = ClientConfig::clone(&self.0.current());
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_authorities_are_read_once() {
        match (system_roots(), system_roots()) {
            (Ok(first), Ok(second)) => assert!(Arc::ptr_eq(&first, &second)),
            (first, second) => {
                assert!(first.is_err() && second.is_err(), "this machine has no root certificates")
            }
        }
    }
}
