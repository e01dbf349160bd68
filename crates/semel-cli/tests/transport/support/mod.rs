//! A service that counts, the gateway in front of it as a process, and a certificate for it.

mod certificate;
mod gateway;
mod service;

pub(crate) use certificate::Certificate;
pub(crate) use gateway::gateway;
pub(crate) use semel_testing::gateway::Gateway;
pub(crate) use service::Service;
