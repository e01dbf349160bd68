//! The trivial handler that Restate calls while it is measured: `Payments/create`, over HTTP/2, on the port that is the argument.

use restate_sdk::prelude::*;
use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

struct Payments;

/// What every service of the measurement answers with.
const ANSWER: &str =
    r#"{"id":"pay_0001","amount":"10.00","currency":"EUR","invoice":"in_1","status":"created"}"#;

/// Bytes in, bytes out: nothing is parsed that need not be.
#[service]
impl Payments {
    #[handler]
    async fn create(&self, _context: Context<'_>, _command: Vec<u8>) -> Result<Vec<u8>, Infallible> {
        Ok(ANSWER.into())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("which port?")?.parse()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(HttpServer::new(Endpoint::builder().bind(Payments).build()).listen_and_serve(address));
    Ok(())
}
