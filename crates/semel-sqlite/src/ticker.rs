//! Looks at the clock when no request does: leaves a mark in the file once a minute, and watches the kernel during a clock hold.

use crate::job::clock_job;
use crate::writer::ToWriter;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::WeakSender;

/// The thread. It ends when this is dropped.
pub(crate) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(crate) fn start(writer: WeakSender<ToWriter>, period: Duration) -> std::io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let body = move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                let Some(writer) = writer.upgrade() else { return };
                // Where the queue is full the writer is at work, and leaves marks by itself.
                let _full = writer.try_send(ToWriter::Job(clock_job(false).0));
            }
        };
        let thread = std::thread::Builder::new().name("semel-sqlite-clock".into()).spawn(body)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _panicked = thread.join();
        }
    }
}
