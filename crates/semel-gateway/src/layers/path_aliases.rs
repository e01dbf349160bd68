//! Refuses requests that the service may take for a protected operation, though no route matches them: other spellings of a path,
//! another method or another target in a header.

use super::future::MaybeAnswered;
use crate::listener::{AcceptedRequest, AnswerBody};
use crate::route::Routes;
use http::Response;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Refuses ambiguous paths.
#[derive(Clone)]
pub(crate) struct PathAliasesLayer {
    routes: Arc<Routes>,
}

impl PathAliasesLayer {
    pub(crate) fn new(routes: Arc<Routes>) -> Self {
        Self { routes }
    }
}

impl<S> Layer<S> for PathAliasesLayer {
    type Service = PathAliases<S>;

    fn layer(&self, inner: S) -> PathAliases<S> {
        PathAliases { inner, routes: self.routes.clone() }
    }
}

/// Made by [`PathAliasesLayer`].
#[derive(Clone)]
pub(crate) struct PathAliases<S> {
    inner: S,
    routes: Arc<Routes>,
}

impl<S> Service<AcceptedRequest> for PathAliases<S>
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
        if let Some(ambiguity) = self.routes.ambiguity(&accepted.parts) {
            return MaybeAnswered::here(accepted.answer(ambiguity.into_response()));
        }
        MaybeAnswered::passed_on(self.inner.call(accepted))
    }
}
