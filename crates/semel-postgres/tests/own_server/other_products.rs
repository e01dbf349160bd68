//! Servers that speak the protocol of PostgreSQL and are something else: a stand-in, which answers every question with its version.

use semel_postgres::{OpenError, PgStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_server_that_only_speaks_the_protocol_is_refused_with_a_reason() {
    for (version, product) in [
        ("CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27)", "CockroachDB is not PostgreSQL"),
        ("PostgreSQL 11.2-YB-2.19.0.0-b0 on x86_64-pc-linux-gnu", "YugabyteDB is not PostgreSQL"),
        ("Frobnicate 1.0", "a server that reports \"Frobnicate 1.0\" is not PostgreSQL"),
    ] {
        let refused = PgStore::connect(&stand_in(version).await).await.unwrap_err();
        assert!(matches!(refused, OpenError::NotPostgres { .. }), "{refused:?}");
        assert!(refused.to_string().starts_with(product), "{refused}");
    }
}

async fn stand_in(version: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move { serve(stream, version).await });
        }
    });
    format!("postgres://shop@{address}/shop")
}

/// A server of the protocol, version 3: a start-up packet without a type, and then simple queries.
async fn serve(mut stream: TcpStream, version: &str) -> std::io::Result<()> {
    const SSL_REQUEST: u32 = 80_877_103;
    loop {
        let length = stream.read_u32().await?;
        let mut packet = vec![0; length as usize - 4];
        stream.read_exact(&mut packet).await?;
        if packet[..4] != SSL_REQUEST.to_be_bytes() {
            break;
        }
        stream.write_all(b"N").await?;
    }
    let mut answer = message(b'R', &0_u32.to_be_bytes());
    answer.extend(message(b'S', b"server_version\x0013.0\0"));
    answer.extend(message(b'K', &[0; 8]));
    answer.extend(message(b'Z', b"I"));
    stream.write_all(&answer).await?;
    loop {
        let kind = stream.read_u8().await?;
        let length = stream.read_u32().await?;
        let mut query = vec![0; length as usize - 4];
        stream.read_exact(&mut query).await?;
        if kind != b'Q' {
            return Ok(());
        }
        let query = String::from_utf8_lossy(&query).into_owned();
        let mut answer = if query.contains("version()") {
            // One column of type text.
            let mut rows =
                message(b'T', b"\0\x01version\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
            let length = u32::try_from(version.len()).unwrap().to_be_bytes();
            rows.extend(message(b'D', &[b"\0\x01", &length[..], version.as_bytes()].concat()));
            rows.extend(message(b'C', b"SELECT 1\0"));
            rows
        } else {
            message(b'E', b"SERROR\0VERROR\0C42883\0Munknown function\0\0")
        };
        answer.extend(message(b'Z', b"I"));
        stream.write_all(&answer).await?;
    }
}

fn message(kind: u8, contents: &[u8]) -> Vec<u8> {
    let length = u32::try_from(contents.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], contents].concat()
}
