//! The protocol of Semel under a model checker.
//!
//! Every decision is the production code's: [`Rules`] calls `semel::transition` on a whole record. Around it the model plays
//! whoever takes part, and the checker (stateright) tries every order in which they can.
//!
//! | file | who |
//! |---|---|
//! | `request` | a client's request: reserve, decide, take, read back what was lost, give back what turned up |
//! | `owner` | whoever owns the attempt: recovery point, call, heartbeat, outcome; late, fenced, crashed |
//! | `provider` | carries calls out, counts effects, can be asked |
//! | `settlers` | lease watch, reconciler, operator, reaper, and time |
//! | `proof`, `evidence` | what they and webhooks say of what is known: late, partial, repeated, or somebody else's |
//! | `turn` | the store: one key, atomic writes, answers that are lost, late or doubled |
//! | `protocol`, `model` | what can happen in one state of the world, and one step of it |
//! | `audit`, `rule`, `properties`, `healthy` | what has to hold, judged without asking the state machine |
//! | `mutants` | mistakes that have to be caught |
//!
//! # What is left out, and why nothing is lost by it
//! - **Versions.** A version rises with every write and operation ids never come back, so a conditional write succeeds exactly
//!   if nothing was written since its record was read. That is kept, as `fresh`.
//! - **Late answers.** An answer that comes late is a sender that acts late, and any sender may act arbitrarily late.
//!   Answers that never come, or come twice, are played.
//! - **Clocks.** Moments only come or do not. Leases run out whenever the checker likes, windows in their order. Which time a store believes is a model of
//!   its own, `clock`.
//! - **Tokens of those who are gone.** Only a token that somebody alive can name tells two owners apart.
//! - **The order of like clients.** Two of the three are alike, and change places freely.
//!
//! The bounds are in [`Bounds`], the configurations in [`Config`].

mod audit;
mod check;
mod clock;
mod config;
mod distances;
mod evidence;
mod healthy;
mod kept;
mod model;
mod mutants;
mod owner;
mod proof;
mod properties;
mod protocol;
mod provider;
mod reached;
mod request;
mod rule;
mod rules;
mod settlers;
mod state;
mod turn;
mod work;

pub use check::{Outcome, check, check_clock};
pub use clock::{ClockAction, ClockBounds, ClockMistake, ClockWorld, Clocks};
pub use config::{Bounds, Config, Third};
pub use evidence::{Answerer, Message};
pub use healthy::STEPS;
pub use kept::{Kept, Moment, NOBODY, Reply, Token};
pub use mutants::Mutant;
pub use proof::{Finding, Names, Proof};
pub use properties::everything;
pub use protocol::{Action, Protocol};
pub use provider::Landing;
pub use reached::{Event, Reached};
pub use rule::Rule;
pub use rules::{Rules, Verdict, Written};
pub use settlers::Who;
pub use state::{Book, Call, Delayed, Holding, Settler, THIRD, Task, World, Writer};
pub use turn::Fate;
pub use work::{Deed, Stage};
