//! Serves payments. `PAYMENTS_LISTEN` (127.0.0.1:9000) says where, `PAYMENTS_DATABASE` (payments.db) says in which file.

use payments::{PaymentsOptions, PaymentsService};
use std::error::Error;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let database = setting("PAYMENTS_DATABASE", "payments.db");
    let service = PaymentsService::open(&database, PaymentsOptions::default()).await?;
    let listener = TcpListener::bind(setting("PAYMENTS_LISTEN", "127.0.0.1:9000")).await?;
    tracing::info!(address = %listener.local_addr()?, %database, "serving payments");
    service
        .serve(listener, async {
            // Without a way to be told to stop, it serves until it is killed; nothing is lost by that either.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
        .await?;
    Ok(())
}
