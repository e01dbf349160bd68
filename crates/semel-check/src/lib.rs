//! Finds out from outside whether an HTTP API keeps its idempotency promise.
//!
//! The API can be written in any language, with or without Semel. This crate sends it duplicates, races, other bodies, other
//! callers and crashes, and counts the effects where they can be seen. `semel check` is its command line.
//!
//! - [`Options`]: what flags and a config file say; [`Plan`]: the same, checked, with defaults.
//! - [`cases`]: one case per way in which such a promise is broken.
//! - [`Verdict`] and [`Severity`]: what a case found out. `double execution` needs two counted effects.
//! - [`report`]: text, JSON, JUnit, SARIF, GitHub annotations, HTML, Markdown.
//! - [`Baseline`]: known findings that do not fail a build.
//!
//! ```no_run
//! use semel_check::{Options, Plan, run};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = Options::for_target("http://127.0.0.1:3000");
//! options.send = Some("POST /payments".into());
//! options.body = Some(r#"{"amount": 10, "reference": "r"}"#.into());
//! options.mark = Some("/reference".into());
//! options.count = Some("GET /payments?reference={reference}".into());
//! options.count_at = Some("/total".into());
//! let report = run(&Plan::new(&options)?, &mut |_| {}).await;
//! println!("exit status {}", report.exit_status(None));
//! # Ok(()) }
//! ```

mod again;
mod answer;
mod baseline;
mod body;
mod call;
pub mod cases;
mod check;
mod counter;
mod crash;
mod effects;
mod header;
mod json_text;
mod options;
mod plan;
mod polls;
mod profile;
pub mod report;
mod request;
mod run;
mod secrets;
mod settings;
mod shell;
mod target;
mod trial;
mod verdict;

pub use baseline::{Baseline, BaselineError};
pub use options::{Options, OptionsError};
pub use plan::Plan;
pub use profile::{AfterWindow, Corrected, Profile, Sameness, Scope};
pub use report::{CaseResult, Report};
pub use run::{Progress, run};
pub use settings::PlanError;
pub use verdict::{Severity, Verdict};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
