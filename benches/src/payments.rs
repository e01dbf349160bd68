//! The trivial service that is protected in process, once by Semel's layer and once the textbook way.

use crate::load::HELD;
use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What every service of the measurement answers with, in whatever language.
pub const ANSWER: &str =
    r#"{"id":"pay_0001","amount":"10.00","currency":"EUR","invoice":"in_1","status":"created"}"#;

/// Whoever pays for it waits.
pub const HELD_INVOICE: &str = "held";

/// The variable that says where: an address, at which every request to [`HELD`] is answered when it is time.
pub const HOLDER: &str = "HOLDER";

/// What is asked for.
#[derive(Deserialize)]
pub struct CreatePayment {
    amount: String,
    currency: String,
    invoice: String,
}

/// What is answered: [`ANSWER`].
#[derive(Serialize)]
pub struct Payment {
    id: &'static str,
    amount: String,
    currency: String,
    invoice: String,
    status: &'static str,
}

/// The handler. All of its work is to answer; a payment for the invoice [`HELD_INVOICE`] waits for [`HOLDER`] first.
pub async fn create(Json(command): Json<CreatePayment>) -> (StatusCode, Json<Payment>) {
    if command.invoice == HELD_INVOICE {
        hold().await;
    }
    let CreatePayment { amount, currency, invoice } = command;
    let payment = Payment { id: "pay_0001", amount, currency, invoice, status: "created" };
    (StatusCode::CREATED, Json(payment))
}

async fn hold() {
    let Ok(holder) = std::env::var(HOLDER) else { return };
    let asking = async {
        let mut stream = TcpStream::connect(holder).await?;
        let request =
            format!("POST {HELD} HTTP/1.1\r\nHost: holder\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_end(&mut Vec::new()).await
    };
    // Whether it was answered or cut off: it is over.
    drop(asking.await);
}

#[derive(Parser)]
struct Arguments {
    /// The address of the PostgreSQL database.
    #[arg(long)]
    database: String,
    /// Where to listen.
    #[arg(long)]
    listen: SocketAddr,
}

/// Serves what `application` makes of a database's address.
///
/// # Errors
/// The arguments are wrong, or the service could not be made or served.
pub fn serve<Making>(application: impl FnOnce(String) -> Making) -> Result<(), Box<dyn Error>>
where
    Making: Future<Output = Result<Router, Box<dyn Error>>>,
{
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let application = application(arguments.database).await?;
        axum::serve(TcpListener::bind(arguments.listen).await?, application).await?;
        Ok(())
    })
}
