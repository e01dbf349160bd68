//! The threads behind a store.

use crate::error::OpenError;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Resolves when a thread has closed its connection and is about to end.
type End = oneshot::Receiver<()>;

/// The threads behind a store, in the order of their start: the writer, then the readers. Dropping waits for them.
#[derive(Default)]
pub(crate) struct Threads {
    handles: Vec<JoinHandle<()>>,
    ends: Mutex<Vec<End>>,
}

impl Threads {
    /// Starts a thread that opens something and then works with it until its queue closes. Returns once it is open: opening a
    /// file can take its time, which is not the time of the caller's runtime.
    pub(crate) async fn start<T: 'static>(
        &mut self,
        name: &str,
        (open, work): (
            impl FnOnce() -> Result<T, OpenError> + Send + 'static,
            impl FnOnce(T) + Send + 'static,
        ),
    ) -> Result<(), OpenError> {
        let (opened, waiting) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let body = move || {
            match open() {
                Ok(open) => {
                    if opened.send(Ok(())).is_ok() {
                        work(open);
                    }
                }
                Err(error) => {
                    let _gone = opened.send(Err(error));
                }
            }
            let _gone = ended.send(());
        };
        let handle = std::thread::Builder::new().name(name.into()).spawn(body).map_err(OpenError::Thread)?;
        self.handles.push(handle);
        self.ends.get_mut().unwrap_or_else(PoisonError::into_inner).push(end);
        waiting.await.unwrap_or_else(|_| {
            Err(OpenError::Thread(std::io::Error::other("the thread ended while opening the file")))
        })
    }

    /// The ends of the writer and of the readers, for the one who waits for them.
    pub(crate) fn take_ends(&self) -> (Vec<End>, Vec<End>) {
        let mut ends = std::mem::take(&mut *self.ends.lock().unwrap_or_else(PoisonError::into_inner));
        let readers = ends.split_off(ends.len().min(1));
        (ends, readers)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let this = std::thread::current().id();
        for handle in self.handles.drain(..).rev() {
            // A closure that holds the last handle drops it on the writer's own thread, which cannot wait for itself.
            if handle.thread().id() != this {
                let _panicked = handle.join();
            }
        }
    }
}
