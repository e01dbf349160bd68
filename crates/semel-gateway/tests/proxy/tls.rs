//! TLS with clients and with services: who is believed, and who a client is.

use crate::sending::{self, MORE_THAN_FITS, SlowReader};
use crate::support::http2::{Http2, payment};
use crate::support::{Answer, Ask, Client, Service, Setting};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use semel_gateway::tls::{
    ClientCertificates, ClientTls, ClientTlsFiles, ServerTls, ServerTlsFiles, TlsError,
};
use semel_gateway::upstream::{Transport, UpstreamProtocol};
use semel_testing::tls::Issued;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// An authority of the tests' own.
struct Authority(semel_testing::tls::Authority);

impl Authority {
    fn new() -> Self {
        Self(semel_testing::tls::Authority::new())
    }

    fn file(&self) -> PathBuf {
        self.0.ca()
    }

    /// Issues, or renews, the certificate of that name.
    fn issue(&self, name: &str) -> Issued {
        self.0.issue(name, &["127.0.0.1", "shop.example"])
    }

    fn served(&self) -> ServerTlsFiles {
        let Issued { certificate, key } = self.issue("gateway");
        ServerTlsFiles { check_every: Duration::from_millis(20), ..ServerTlsFiles::new(certificate, key) }
    }

    /// A client that believes this authority, and shows a certificate if it has one.
    fn client(&self, shown: Option<&Issued>, protocol: &[u8]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.file()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(Issued { certificate, key }) => builder
                .with_client_auth_cert(
                    CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect(),
                    PrivateKeyDer::from_pem_file(key).unwrap(),
                )
                .unwrap(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }
}

async fn handshake(address: SocketAddr, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("shop.example").unwrap(), stream).await
}

/// Sends a request and reads until the other side closes.
async fn ask(address: SocketAddr, config: ClientConfig, ask: &Ask) -> std::io::Result<Answer> {
    let mut stream = handshake(address, config).await?;
    stream.write_all(&ask.clone().field("Connection: close").bytes()).await?;
    let mut answer = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.unwrap()?;
    if answer.is_empty() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Answer::read(&answer))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_answers_come_over_tls_by_either_protocol() {
    let (service, authority) = (Service::start(), Authority::new());
    let front = Setting { tls: Some(authority.served()), ..Setting::default() }.before(&service).await;
    let first = ask(front.address, authority.client(None, b"http/1.1"), &Ask::payment()).await.unwrap();
    assert_eq!((first.status, first.is_replay()), (201, false));
    assert_eq!(first.told("x-forwarded-proto"), ["https"]);
    assert!(first.told("forwarded")[0].ends_with(";proto=https"));
    let stream = handshake(front.address, authority.client(None, b"h2")).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut request = payment();
    request.headers_mut().remove("content-type");
    let again = Http2::over(stream).await.send(request).await;
    assert_eq!((again.status, again.is_replay()), (201, true));
    assert_eq!(again.body, first.body);
    // In the clear nobody answers.
    let mut plain = Client::connect(front.address).await;
    plain.write(Ask::payment().bytes()).await;
    assert!(!String::from_utf8_lossy(&plain.rest().await).contains("HTTP/1.1 2"));
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_used_and_a_wrong_one_is_not() {
    let (service, authority) = (Service::start(), Authority::new());
    let files = authority.served();
    let front = Setting { tls: Some(files.clone()), ..Setting::default() }.before(&service).await;
    let shown = || async {
        let stream = handshake(front.address, authority.client(None, b"http/1.1")).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    };
    let first = shown().await;
    assert_eq!(shown().await, first);
    std::fs::write(&files.certificate, "not a certificate").unwrap();
    // Several looks later it is still the old one.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(shown().await, first);
    authority.issue("gateway");
    let deadline = Instant::now() + Duration::from_secs(20);
    while shown().await == first {
        assert!(Instant::now() < deadline, "the new certificate is not used");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_certificate_says_who_it_is() {
    let (service, authority, stranger) = (Service::start(), Authority::new(), Authority::new());
    for client_certificates in [ClientCertificates::Required, ClientCertificates::Optional] {
        let tls =
            ServerTlsFiles { client_ca: Some(authority.file()), client_certificates, ..authority.served() };
        let front = Setting { tls: Some(tls), ..Setting::default() }.before(&service).await;
        let before = service.executed();
        let send = async |shown: Option<&Issued>| {
            ask(front.address, authority.client(shown, b"http/1.1"), &Ask::payment()).await
        };
        let first = send(Some(&authority.issue("ann"))).await.unwrap();
        let renewed = send(Some(&authority.issue("ann"))).await.unwrap();
        assert_eq!((renewed.is_replay(), &renewed.body), (true, &first.body), "it is the same client");
        let other = send(Some(&authority.issue("bob"))).await.unwrap();
        assert!(!other.is_replay() && other.body != first.body, "it is another tenant");
        assert!(send(Some(&stranger.issue("ann"))).await.is_err(), "nobody vouches for it");
        let unknown = send(None).await;
        match client_certificates {
            ClientCertificates::Required => assert!(unknown.is_err()),
            ClientCertificates::Optional => assert!(!unknown.unwrap().is_replay()),
        }
        let executed = if client_certificates == ClientCertificates::Required { 2 } else { 3 };
        assert_eq!(service.executed() - before, executed);
    }
}

/// Puts TLS before a service of HTTP/1.1, as far as bytes go.
async fn before(
    service: &Service,
    authority: &Authority,
    protocol: &[u8],
    client_ca: Option<PathBuf>,
) -> u16 {
    use rustls::server::WebPkiClientVerifier;
    let Issued { certificate, key } = authority.issue("service");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(file).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let mut config = builder
        .with_single_cert(
            vec![CertificateDer::from_pem_file(certificate).unwrap()],
            PrivateKeyDer::from_pem_file(key).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, behind) = (listener.local_addr().unwrap().port(), service.port);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                let mut service = TcpStream::connect(("127.0.0.1", behind)).await?;
                tokio::io::copy_bidirectional(&mut stream, &mut service).await
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_spoken_with_if_its_authority_is_believed() {
    let (service, authority, stranger) = (Service::start(), Authority::new(), Authority::new());
    let port = before(&service, &authority, b"http/1.1", Some(authority.file())).await;
    let own = authority.issue("the gateway as a client");
    let files = |ca: &Authority, shows: bool| ClientTlsFiles {
        ca: Some(ca.file()),
        certificate: shows.then(|| (own.certificate.clone(), own.key.clone())),
        ..ClientTlsFiles::default()
    };
    for (files, protocol, status) in [
        (files(&stranger, true), UpstreamProtocol::Http1, 502),
        (files(&authority, true), UpstreamProtocol::Http2, 502),
        (files(&authority, true), UpstreamProtocol::Http1, 201),
    ] {
        let tls = Some(Arc::new(ClientTls::start(files).unwrap()));
        let setting = Setting { transport: Transport { protocol, tls }, ..Setting::default() };
        let front = setting.before_port(port).await;
        for _ in 0..3 {
            let answer = front.send(&Ask::payment()).await;
            assert_eq!(answer.status, status, "{answer:?}");
            let passed = front.send(&Ask::new("GET /").field("X-Status: 201")).await;
            assert_eq!(passed.status, status, "{passed:?}");
        }
        if status == 502 {
            assert_eq!(front.record().await.state, semel::State::FailedRetryable, "nothing was sent");
        }
    }
    assert_eq!(service.executed(), 1 + 3);
}

/// What TLS keeps back is not sent either.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_half_sent_over_tls_when_its_time_is_over_is_never_finished() {
    let (authority, slow) = (Authority::new(), SlowReader::start().await);
    let mut service = Service::stopped();
    service.port = slow.port;
    let port = before(&service, &authority, b"http/1.1", None).await;
    let files = ClientTlsFiles { ca: Some(authority.file()), ..ClientTlsFiles::default() };
    let tls = Some(Arc::new(ClientTls::start(files).unwrap()));
    let transport = Transport { protocol: UpstreamProtocol::Http1, tls };
    let front = Setting { transport, ..sending::setting() }.before_port(port).await;
    let request = Ask::payment().body(vec![b'x'; MORE_THAN_FITS]).bytes();
    sending::is_broken_off_by(&front, slow, request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_to_the_service_is_agreed_on() {
    let authority = Authority::new();
    let scripted = crate::support::frames::Scripted::start(|_, stream| {
        (crate::support::frames::answer(stream, b"done"), false)
    })
    .await;
    let mut service = Service::stopped();
    service.port = scripted.port;
    let port = before(&service, &authority, b"h2", None).await;
    let files = ClientTlsFiles { ca: Some(authority.file()), ..ClientTlsFiles::default() };
    let tls = Some(Arc::new(ClientTls::start(files).unwrap()));
    let transport = Transport { protocol: UpstreamProtocol::Http2, tls };
    let front = Setting { transport, ..Setting::default() }.before_port(port).await;
    let answer = front.send(&Ask::payment()).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"done"[..]));
}

#[tokio::test]
async fn what_is_wrong_with_files_is_told() {
    let authority = Authority::new();
    let (one, other) = (authority.issue("one"), authority.issue("other"));
    let told = |files: ServerTlsFiles| match ServerTls::start(files) {
        Err(error) => error,
        Ok(_) => panic!("nothing was wrong"),
    };
    let missing = ServerTlsFiles::new("no-such-file", &one.key);
    assert!(matches!(told(missing), TlsError::Unreadable { .. }));
    let crossed = told(ServerTlsFiles::new(&one.certificate, &other.key)).to_string();
    assert!(crossed.ends_with("other.key is not the private key of the certificate"), "{crossed}");
    let swapped = told(ServerTlsFiles::new(&one.key, &one.certificate)).to_string();
    assert!(swapped.ends_with("one.key holds no certificate in PEM"), "{swapped}");
    let no_ca = ServerTlsFiles {
        client_ca: Some(one.key.clone()),
        ..ServerTlsFiles::new(&one.certificate, &one.key)
    };
    assert!(told(no_ca).to_string().ends_with("one.key holds no certificate in PEM"));
}
