//! The trivial service that is protected in process, once by Semel's layer and once the textbook way.

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// What every service of the measurement answers with, in whatever language.
pub const ANSWER: &str =
    r#"{"id":"pay_0001","amount":"10.00","currency":"EUR","invoice":"in_1","status":"created"}"#;

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

/// The handler. All of its work is to answer.
pub async fn create(Json(command): Json<CreatePayment>) -> (StatusCode, Json<Payment>) {
    let CreatePayment { amount, currency, invoice } = command;
    let payment = Payment { id: "pay_0001", amount, currency, invoice, status: "created" };
    (StatusCode::CREATED, Json(payment))
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
