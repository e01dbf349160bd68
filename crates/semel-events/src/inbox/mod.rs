//! The inbox: a message that comes twice, or five times, or at two consumers at once, has its effect once.
//!
//! Every broker delivers again what was not acknowledged, and an acknowledgement can be lost after the effect. So a consumer
//! remembers what it is through with: a **mark** for each message, by consumer and message id, written in the very transaction of the
//! effect. There is no moment at which one of them is there without the other:
//!
//! - A crash before the commit leaves neither. The message comes again, and is handled.
//! - A crash after the commit, before the acknowledgement, leaves both. The message comes again, and nothing runs.
//! - Two deliveries at once: one runs, the other gets [`InProgress`](InboxError::InProgress) and is delivered again later.
//!
//! A handler of several effects commits each by itself, under a business identity such as `ledger_payment_pay_789`. It may fail
//! or be killed half way: the next delivery passes over what is done and goes on to the end. Identities hold across messages: the
//! same payment told by two messages is one ledger entry.
//!
//! Marks are kept for a while ([`Retention`]), which has to be longer than a broker can deliver again.
//!
//! An effect at a third party (a mail, a partner's API) cannot be part of a transaction. Append it to the outbox here, and let it
//! be published under its event's id.

mod identity;
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
mod retention;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "postgres")]
mod watch;

pub use identity::{InvalidIdentity, MessageId};
pub use outcome::{Handled, InboxError};
#[cfg(feature = "postgres")]
pub use postgres::{PgInbox, PgSteps};
#[cfg(feature = "postgres")]
pub(crate) use postgres::{passed_over, passes};
pub use retention::{Forgotten, Retention};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteInbox, SqliteSteps};
