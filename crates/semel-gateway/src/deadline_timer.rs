//! A timer for deadlines that move later with every request and are hardly ever reached.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// One timer of the runtime, reset only when it goes off early or has to go off sooner: a deadline that moves costs nothing.
#[derive(Default)]
pub(crate) struct DeadlineTimer(Option<Pin<Box<Sleep>>>);

impl DeadlineTimer {
    /// Ready once `due` has come.
    pub(crate) fn poll_until(&mut self, context: &mut Context<'_>, due: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn it_follows_a_deadline_that_moves_either_way() {
        let mut timer = DeadlineTimer::default();
        let start = Instant::now();
        let later = start + Duration::from_secs(60);
        let sooner = start + Duration::from_secs(10);
        let mut passed = poll_fn(|context| Poll::Ready(timer.poll_until(context, later))).await;
        assert!(passed.is_pending());
        poll_fn(|context| timer.poll_until(context, sooner)).await;
        assert_eq!(start.elapsed().as_secs(), 10);
        poll_fn(|context| timer.poll_until(context, later)).await;
        assert_eq!(start.elapsed().as_secs(), 60);
        passed = poll_fn(|context| Poll::Ready(timer.poll_until(context, later))).await;
        assert!(passed.is_ready(), "what is past stays past");
    }
}
