//! The files under test that their crates keep to themselves, compiled once more: this way no crate has a door that only the fuzzer
//! needs. What is public is called where it is.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each is a whole file of its crate, of which a part is called here"
)]

#[cfg(feature = "config")]
#[path = "../../../../crates/semel-cli/src/check_config.rs"]
pub(crate) mod check_config;
#[path = "../../../../crates/semel-gateway/src/listener/http1/framing.rs"]
pub(crate) mod framing;
pub(crate) mod jwt;
pub(crate) mod passing;
#[path = "../../../../crates/semel-postgres/src/text.rs"]
pub(crate) mod postgres_text;
#[cfg(feature = "records")]
pub(crate) mod sqlite;
#[path = "../../../../crates/semel-tower/src/headers.rs"]
pub(crate) mod tower_headers;
pub(crate) mod webhook;
