//! A service that counts, the gateway before it as a process, and a certificate for it.

mod certificate;
mod gateway;
mod service;

pub(crate) use certificate::Certificate;
pub(crate) use gateway::Gateway;
pub(crate) use service::Service;
