//! What reads bytes from strangers, or from a disk that may be damaged, under a fuzzer.
//!
//! Each module has one `target`: a plain function of some bytes that panics where a rule is broken. The fuzzer calls it
//! (`targets/`), and so does an ordinary test, with the inputs in `corpus/` and with chance made of a seed. What is right is said by
//! `independent/`, a second implementation of the same rules.

pub mod canonical;
#[cfg(feature = "config")]
pub mod config;
pub mod content;
pub mod framing;
pub mod headers;
mod independent;
pub mod jwt;
pub mod key;
#[cfg(feature = "records")]
pub mod records;
mod under_test;
pub mod webhook;

// The files under test name their neighbours from the root of their crate.
#[cfg(feature = "records")]
use under_test::sqlite::{error, row};

/// A target: panics where its input breaks a rule.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("key", key::target),
    ("canonical", canonical::target),
    ("content", content::target),
    ("headers", headers::target),
    ("framing", framing::target),
    #[cfg(feature = "records")]
    ("records", records::target),
    #[cfg(feature = "config")]
    ("config", config::target),
    ("webhook", webhook::target),
    ("jwt", jwt::target),
];
