//! The future of a layer that may answer a request itself.

use crate::listener::AnswerBody;
use http::Response;
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What every layer of the gateway answers with. Whatever goes wrong is an answer.
pub(crate) type Answered = Result<Response<AnswerBody>, Infallible>;

pin_project! {
    /// The answer of the next service, or one that is there already.
    #[project = Projected]
    pub(crate) enum MaybeAnswered<F> {
        /// The request was passed on.
        PassedOn {
            #[pin]
            next: F,
        },
        /// The request was answered here. Boxed: it is the rare case, and every request's future has the room for it.
        Here { answer: Option<Box<Response<AnswerBody>>> },
    }
}

impl<F> MaybeAnswered<F> {
    pub(super) fn passed_on(next: F) -> Self {
        Self::PassedOn { next }
    }

    pub(super) fn here(answer: Response<AnswerBody>) -> Self {
        Self::Here { answer: Some(Box::new(answer)) }
    }
}

impl<F: Future<Output = Answered>> Future for MaybeAnswered<F> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        match self.project() {
            Projected::PassedOn { next } => next.poll(context),
            // A future is not polled again once it is ready.
            Projected::Here { answer } => match answer.take() {
                Some(answer) => Poll::Ready(Ok(*answer)),
                None => Poll::Pending,
            },
        }
    }
}
