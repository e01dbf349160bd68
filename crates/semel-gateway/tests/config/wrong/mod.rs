//! Every wrong configuration is told with its place and what would be right, word for word.

mod admin;
mod cors;
mod durations;
mod encryption;
mod file;
mod fingerprints;
mod outbox;
mod polls;
mod profiles;
mod routes;
mod scope;
mod sections;
mod tls;
mod webhooks;

use crate::read;

/// Both texts begin on a line of their own.
#[track_caller]
pub(crate) fn assert_errors(toml: &str, expected: &str) {
    let (toml, expected) = (toml.trim_start_matches('\n'), expected.trim_start_matches('\n'));
    let told = read(toml).expect_err("a wrong configuration was taken for right").to_string();
    assert_eq!(told, expected, "\n--- what was told ---\n{told}--- what was expected ---\n{expected}");
    assert!(!told.contains("s3cr3t"), "a secret is shown");
}
