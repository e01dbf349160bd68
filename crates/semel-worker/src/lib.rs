//! Settling doubt and forgetting on time.
//!
//! Some things have to be done without a request coming by. [`LeaseWatch`] finds owners that died, [`Reconciler`] asks about
//! outcomes that nobody knows, [`WebhookIntake`] takes in what others tell about them, and [`Reaper`] forgets what is over. A
//! [`Worker`] runs the first, second and last of them beside a service; the gateway and `semel worker` run this very one.
//! When keys change, a [`Rekeyer`] seals anew what is stored.
//!
//! Nothing here decides anything: decisions are `semel::transition`'s, and each is written on condition that the record is still
//! the one that was judged. That is why any number of workers may run, may be killed at any point, and may have any clock: moments
//! are the store's, and this crate decides nothing by the time of day.

mod count;
mod document;
mod due;
mod lease_watch;
mod poll;
mod reaper;
mod reconcile;
mod reconciler;
mod rekey;
mod rules;
mod testimony;
mod webhook;
mod worker;
mod write;

pub use document::{InvalidDocument, ResourceDocument, ResponseDocument, Unkeepable};
pub use lease_watch::LeaseWatch;
pub use poll::{HttpPoll, InvalidPoll, PollOptions};
pub use reaper::{Forget, Reaped, Reaper, ReaperOptions};
pub use reconcile::{Finding, Question, Reconcile};
pub use reconciler::Reconciler;
pub use rekey::{RekeyOptions, Rekeyed, Rekeyer};
pub use rules::{Asking, OperationRules, Rules};
pub use webhook::{InvalidSecret, WebhookAnswer, WebhookIntake, WebhookResult, WebhookSecret};
pub use worker::{Worker, WorkerOptions};
