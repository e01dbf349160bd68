//! A payment provider as a process of its own, for examples, demonstrations, tests and fault campaigns.
//!
//! It does what acquirers do: it charges, refunds, declines, recognises a request that comes again by its `Idempotency-Key`, can
//! be asked what became of one, and sends webhooks. And it does what acquirers do on bad days, on purpose and on demand: it
//! charges and closes the connection, charges and answers 500, stalls, loses requests, forgets to deduplicate.
//!
//! **Its ledger is the truth.** Effects are counted here, where they happen, and not by what anybody was told. An entry is on
//! disk before anything is said that depends on it, and no kill takes it away.
//!
//! The way of a charge:
//! 1. `connection.rs` reads the request, and closes the connection without a byte where that is wanted;
//! 2. `api/orders.rs` draws the request's fate (`misbehaviour.rs`) and checks what is asked for (`order.rs`);
//! 3. `book.rs` decides under one lock: an effect, a replay or a refusal;
//! 4. `ledger.rs` appends what was decided and syncs, once for all that wait;
//! 5. only then the answer goes out, or what the fate makes of it; `webhook/` tells the outcome to whoever listens.

mod api;
mod book;
mod connection;
mod dice;
mod duration;
mod entry;
mod ledger;
mod misbehaviour;
mod money;
mod order;
mod provider;
mod receipt;
mod run;
mod secret;
mod settings;
mod stall;
mod state;
mod webhook;

pub use ledger::{LedgerFailed, OpenError};
pub use misbehaviour::{InvalidMisbehaviour, Misbehaviour, Mode};
pub use provider::Provider;
pub use run::{Arguments, RunError, run};
pub use secret::{InvalidWebhook, Secret};
pub use settings::{Settings, Webhook};
