//! The row about the server's clock: who writes it, and when.
//!
//! What it says is read by every statement. It is written by a task of each handle, once a minute and whenever the judgement changes, and by whoever
//! purges; never within an application's transaction, whose lock on it everybody else would wait for. Nobody locks it between reading and writing: the
//! write is on condition that the row is the one that was judged by.

use crate::clock::{Answered, reason};
use crate::statements::{MARK, READ};
use crate::write::Writing;
use semel::StoreError;
use semel::clock::{Mark, Told, Wrong};
use std::time::Duration;
use tokio::task::AbortHandle;
use uuid::Uuid;

/// How often it is tried, where others write the row meanwhile: they have looked at the same clock.
const TRIES: usize = 3;

/// After each look, so that a row that cannot be written is not tried all the time.
const PAUSE: Duration = Duration::from_millis(100);

/// The task that looks at the clock when nobody else does. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticker(AbortHandle);

impl Ticker {
    pub(crate) fn start(writing: Writing) -> Self {
        let ticking = tokio::spawn(async move {
            loop {
                writing.clock.due().await;
                if let Err(error) = writing.mark(false).await {
                    tracing::debug!(%error, "cannot store the clock mark, retrying");
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self(ticking.abort_handle())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Writing {
    /// What is believed of the clock, which nothing that is wrong with it stops.
    pub(crate) async fn look(&self) -> Result<(Answered, Told), StoreError> {
        let asked = self.clock.ask();
        let query = sqlx::query(READ).bind(asked.numbers).bind(Vec::<Uuid>::new());
        let answered = crate::read::moment(&self.server.look(query).await?)?;
        Ok((answered, self.clock.told(&asked, &answered)))
    }

    /// Looks at the clock and leaves a mark in the row, if that is due; ends a clock hold, if that may be or is asked for.
    pub(crate) async fn mark(&self, accept: bool) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let (answered, told) = self.look().await?;
            match told.wrong {
                Some(Wrong::Behind(_)) if accept => {
                    self.clock.accept_behind();
                    continue;
                }
                Some(wrong) if accept => return Err(StoreError::Unavailable(reason(wrong))),
                _ => {}
            }
            let Some(mark) = self.clock.to_write(&answered, &told, accept) else { return Ok(()) };
            if self.write_mark(answered.row, mark).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the row, if it says what is expected. Whether it was written.
    async fn write_mark(&self, expected: Mark, mark: Mark) -> Result<bool, StoreError> {
        let query = sqlx::query(MARK).bind(mark.at).bind(mark.behind).bind(mark.hold).bind(mark.by);
        let query = query.bind(expected.at).bind(expected.behind).bind(expected.by).bind(self.lossy);
        Ok(!self.server.write(query).await?.is_empty())
    }
}
