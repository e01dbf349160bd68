//! Answers requests for the contract, which the gateway publishes at `/.well-known/idempotency`.

use super::filter::Filter;
use crate::contract::{Contract, PATH};
use crate::listener::AcceptedRequest;
use bytes::Bytes;
use http::Response;
use std::sync::Arc;

/// Publishes the contract.
#[derive(Clone)]
pub(crate) struct PublishContract {
    contract: Option<Arc<Contract>>,
}

impl PublishContract {
    pub(crate) fn new(contract: Option<Arc<Contract>>) -> Self {
        Self { contract }
    }
}

impl Filter for PublishContract {
    fn apply(&self, accepted: &mut AcceptedRequest) -> Result<(), Box<Response<Bytes>>> {
        let parts = &accepted.parts;
        match &self.contract {
            Some(contract) if parts.uri.path() == PATH => {
                Err(Box::new(contract.respond(&parts.method, &parts.headers)))
            }
            _ => Ok(()),
        }
    }
}
