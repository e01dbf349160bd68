//! The readers: threads with a connection each. In WAL mode they wait for nobody, and nobody for them.

use crate::clock::StoreClock;
use crate::error::{Fault, unavailable};
use crate::statements::clock_row;
use rusqlite::Connection;
use semel::clock::Told;
use semel::{Now, StoreError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// What goes through the readers' channel.
pub(crate) enum ToReader {
    /// Read this.
    Read(Box<dyn FnOnce(&Reader) + Send>),
    /// Read what is queued, then stop.
    Stop,
}

/// How many readings may wait. Beyond that, callers wait for a place.
pub(crate) const QUEUE: usize = 1_024;

/// The readers' common queue: whoever is free takes the next.
pub(crate) type ReadQueue = Arc<Mutex<mpsc::Receiver<ToReader>>>;

/// One reader's side of a store.
pub(crate) struct Reader {
    pub(crate) conn: Connection,
    pub(crate) clock: Arc<StoreClock>,
}

impl Reader {
    /// Works until every handle is gone or one says stop, and what was queued is read.
    pub(crate) fn run(&self, queue: &ReadQueue) {
        loop {
            // A channel is whole at any time: a panic elsewhere leaves nothing half done.
            let mut taking = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let message = taking.blocking_recv();
            match message {
                Some(ToReader::Read(read)) => {
                    drop(taking);
                    // A panic of the application's closure costs its caller the answer, and nobody a reader.
                    if catch_unwind(AssertUnwindSafe(|| read(self))).is_err() {
                        tracing::error!(
                            "what was to be read was given up: a closure of the application's panicked"
                        );
                    }
                }
                Some(ToReader::Stop) => taking.close(),
                None => return,
            }
        }
    }

    /// One view of the file, and what time it was then.
    fn view<T>(&self, read: impl FnOnce(&Connection, Now) -> Result<T, Fault>) -> Result<T, Fault> {
        let view = self.conn.unchecked_transaction()?;
        let now = self.clock.judge(clock_row(&view)?)?.now;
        let found = read(&view, now)?;
        view.finish()?;
        Ok(found)
    }
}

/// A look at the clock, which nothing that is wrong with it stops.
pub(crate) fn looking() -> (ToReader, oneshot::Receiver<Result<Told, StoreError>>) {
    let (answer, waiting) = oneshot::channel();
    let work = move |reader: &Reader| {
        let told =
            clock_row(&reader.conn).map(|row| reader.clock.look(row)).map_err(|error| unavailable(&error));
        let _gone = answer.send(told);
    };
    (ToReader::Read(Box::new(work)), waiting)
}

/// A reading, and the end at which its answer comes.
pub(crate) fn reading<T: Send + 'static>(
    read: impl FnOnce(&Connection, Now) -> Result<T, Fault> + Send + 'static,
) -> (ToReader, oneshot::Receiver<Result<T, StoreError>>) {
    let (answer, waiting) = oneshot::channel();
    let work = move |reader: &Reader| {
        if answer.is_closed() {
            return;
        }
        let found = reader.view(read).map_err(|fault| match fault {
            Fault::Job(error) => error,
            Fault::Group(error) => unavailable(&error),
        });
        let _gone = answer.send(found);
    };
    (ToReader::Read(Box::new(work)), waiting)
}
