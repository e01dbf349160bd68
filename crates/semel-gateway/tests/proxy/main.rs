//! Shows over real sockets, before a service in another language, what the gateway promises: a request that was not sent is
//! retryable, one that was sent and not answered is unknown, what is not protected passes untouched, and nothing that a client does
//! takes more than the limits say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod support;

mod ambiguous;
mod capacity;
mod cors;
mod framing;
mod grpc;
mod hanging_up;
mod http2_clients;
mod http2_lengths;
mod http2_service;
mod keys;
mod limits;
mod outcomes;
mod passing;
mod profiles;
mod reaching;
mod sending;
mod stopping;
mod tls;
mod trailers;
mod upgrades;
