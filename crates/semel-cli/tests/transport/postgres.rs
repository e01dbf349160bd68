//! PostgreSQL over TLS.

use crate::support::Certificate;
use semel_testing::database::Database;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;

/// What a client sends that wants TLS: its length, and a number.
const WANTED: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Stands before a server that knows no TLS, and answers for it as one that does. Whoever speaks in the clear is hung up on.
async fn before(server: SocketAddr, certificate: &Certificate) -> SocketAddr {
    let acceptor = TlsAcceptor::from(Arc::new(certificate.server()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async move |mut client: TcpStream, acceptor: TlsAcceptor| {
        let mut asked = [0; WANTED.len()];
        client.read_exact(&mut asked).await?;
        if asked != WANTED {
            return Ok(());
        }
        client.write_all(b"S").await?;
        let mut client = acceptor.accept(client).await?;
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await.map(drop)
    };
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            // One at a time is enough here.
            let _ended: std::io::Result<()> = serve(client, acceptor.clone()).await;
        }
    });
    address
}

#[tokio::test]
async fn the_store_is_spoken_with_by_tls_and_has_to_be_who_it_says() {
    let database = Database::new().await;
    let url = database.url();
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    let server = database.authority().parse().unwrap();

    let (its_own, strangers) = (Certificate::make(), Certificate::make());
    let at = before(server, &its_own).await;
    let migrate = async |options: &str| {
        let store = format!("postgres://postgres@{at}/{name}?{options}");
        Command::new(env!("CARGO_BIN_EXE_semel")).args(["migrate", "--store", &store]).output().await.unwrap()
    };
    let verified = |ca: &Certificate| format!("sslmode=verify-full&sslrootcert={}", ca.ca().display());
    assert!(!migrate("sslmode=disable").await.status.success(), "nobody answers in the clear");
    assert!(!migrate(&verified(&strangers)).await.status.success(), "it is vouched for by somebody else");
    let made = migrate(&verified(&its_own)).await;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(migrate("sslmode=require").await.status.success());
    assert!(migrate("").await.status.success(), "where the server has it, nobody has to ask for it");
}
