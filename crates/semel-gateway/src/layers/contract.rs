//! Answers requests for the contract, which the gateway publishes at `/.well-known/idempotency`.

use super::future::MaybeAnswered;
use crate::contract::{Contract, PATH};
use crate::listener::{AcceptedRequest, AnswerBody};
use http::Response;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Publishes the contract.
#[derive(Clone)]
pub(crate) struct PublishContractLayer {
    contract: Option<Arc<Contract>>,
}

impl PublishContractLayer {
    pub(crate) fn new(contract: Option<Arc<Contract>>) -> Self {
        Self { contract }
    }
}

impl<S> Layer<S> for PublishContractLayer {
    type Service = PublishContract<S>;

    fn layer(&self, inner: S) -> PublishContract<S> {
        PublishContract { inner, contract: self.contract.clone() }
    }
}

/// Made by [`PublishContractLayer`].
#[derive(Clone)]
pub(crate) struct PublishContract<S> {
    inner: S,
    contract: Option<Arc<Contract>>,
}

impl<S> Service<AcceptedRequest> for PublishContract<S>
where
    S: Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = MaybeAnswered<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, accepted: AcceptedRequest) -> Self::Future {
        let parts = &accepted.parts;
        if let Some(contract) = &self.contract
            && parts.uri.path() == PATH
        {
            let answer = contract.respond(&parts.method, &parts.headers);
            return MaybeAnswered::here(accepted.answer(answer));
        }
        MaybeAnswered::passed_on(self.inner.call(accepted))
    }
}
