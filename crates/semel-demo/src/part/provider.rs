//! The provider: it charges whatever it is sent, as often as it is sent it, and its ledger tells what happened.

use super::{end_of_input, tell};
use crate::DemoError;
use clap::Args;
use payment_provider::{Provider, Settings};
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Where the provider is.
#[derive(Args, Clone)]
pub struct ProviderArguments {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
}

impl ProviderArguments {
    pub(super) fn append_to(&self, line: &mut Vec<String>) {
        line.extend(["--listen".into(), self.listen.to_string()]);
    }
}

/// In the demo's directory.
const LEDGER: &str = "provider.ledger";

pub(super) async fn serve(arguments: &ProviderArguments) -> Result<(), DemoError> {
    // One that recognises a request which comes again would hide what the gateway does, or fails to do.
    let settings = Settings { deduplicates: false, ..Settings::default() };
    let provider = Provider::open(LEDGER, settings)?;
    let listener = TcpListener::bind(arguments.listen).await?;
    tell(&[listener.local_addr()?])?;
    Ok(provider.serve(listener, end_of_input()).await?)
}
