//! What the service tells others: that a payment was made.
//!
//! The event is written in the commit that completes the payment (`database/`), so that there is no payment without it and no word of
//! a payment that was rolled back. Publishing it is another matter, and may take as long as the broker is unavailable.

use crate::account::Account;
use crate::payment::{CreatePayment, Payment};
use async_nats::ConnectError;
use async_nats::jetstream::{self, Context, stream};
use semel_events::message::Event;
use semel_events::outbox::{Publisher, PublisherOptions, Queue};
use semel_events::sink::NatsSink;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The stream that keeps what is told.
pub(crate) const STREAM: &str = "PAYMENTS";
/// What its subjects begin with.
const PREFIX: &str = "payments";
/// For so long others can be away. Less than the two weeks that consumers remember what they are through with.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A payment was made, as others are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PaymentCreated {
    pub(crate) id: String,
    pub(crate) account: String,
    #[serde(flatten)]
    pub(crate) terms: CreatePayment,
}

impl PaymentCreated {
    pub(crate) fn of(account: &Account, payment: &Payment) -> Self {
        Self { id: payment.id.clone(), account: account.as_str().into(), terms: payment.terms.clone() }
    }

    pub(crate) fn event(&self) -> serde_json::Result<Event> {
        Ok(Event::json(format!("payment/{}", self.id), "PaymentCreated", serde_json::to_vec(self)?))
    }
}

/// The broker at this address, which need not be there yet.
pub(crate) async fn connect(url: &str) -> Result<Context, ConnectError> {
    let client = async_nats::ConnectOptions::new().retry_on_initial_connect().connect(url).await?;
    Ok(jetstream::new(client))
}

/// Publishes what is in the outbox until `stop` is ready.
pub(crate) async fn publish(outbox: Arc<dyn Queue>, broker: Context, stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = make_stream(&broker) => {}
        () = stop.as_mut() => return,
    }
    let sink = NatsSink::new(broker, PREFIX).stream(STREAM);
    Publisher::new(outbox, sink, PublisherOptions::default()).run(stop).await;
}

/// Makes the stream, unless it is there, as soon as the broker is.
async fn make_stream(broker: &Context) {
    let config = stream::Config {
        name: STREAM.into(),
        subjects: vec![format!("{PREFIX}.>")],
        max_age: KEPT,
        ..stream::Config::default()
    };
    while let Err(error) = broker.get_or_create_stream(config.clone()).await {
        tracing::warn!(%error, "the stream of payments cannot be made: trying on");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
