//! The trivial handler that Restate calls while it is measured: `Payments/create`, over HTTP/2, on the port that is the argument.

use restate_sdk::prelude::*;
use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

struct Payments;

/// What every service of the measurement answers with.
const ANSWER: &str =
    r#"{"id":"pay_0001","amount":"10.00","currency":"EUR","invoice":"in_1","status":"created"}"#;

/// How a command ends whose payment waits.
const HELD: &[u8] = br#""invoice":"held"}"#;

/// Bytes in, bytes out: nothing is parsed that need not be.
#[service]
impl Payments {
    #[handler]
    async fn create(&self, _context: Context<'_>, command: Vec<u8>) -> Result<Vec<u8>, Infallible> {
        if command.ends_with(HELD) {
            // Answered or cut off: it is over.
            drop(hold().await);
        }
        Ok(ANSWER.into())
    }
}

/// Waits for the answer of whoever is named by `HOLDER`.
async fn hold() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut stream = TcpStream::connect(std::env::var("HOLDER")?).await?;
    let request = "POST /held HTTP/1.1\r\nHost: holder\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("which port?")?.parse()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(HttpServer::new(Endpoint::builder().bind(Payments).build()).listen_and_serve(address));
    Ok(())
}
