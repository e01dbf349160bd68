//! Background work: settles doubt and purges records on time.
//!
//! [`LeaseWatch`] finds owners that died, [`Reconciler`] polls about unknown outcomes, [`WebhookIntake`] receives evidence, and
//! [`Reaper`] drops answers and purges records. A [`Worker`] runs the first, second and last of them inside a service; the gateway
//! and `semel worker` run the same one. When keys change, a [`Rekeyer`] seals what is stored with the new key.
//!
//! Nothing here decides: `semel::transition` does, and each decision is written only if the record is still the one that was
//! judged. So any number of workers may run, be killed at any point, and have any clock: times are the store's, and this crate
//! decides nothing by the time of day.

mod count;
mod document;
mod due;
mod evidence;
mod lease_watch;
mod poll;
mod reaper;
mod reconcile;
mod reconciler;
mod rekey;
mod rules;
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

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
