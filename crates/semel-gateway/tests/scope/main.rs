//! Whose request it is: headers, tokens and forward-auth.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]

mod flood;
mod forward_auth;
mod key_url;
mod replay_check;
mod sources;
mod support;
mod tokens;
