//! A body whose end waits for a gate.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::{oneshot, watch};

/// How much of a request is sent before its connection is left to the caller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partly {
    /// All of it.
    Whole,
    /// The head, and half of the body.
    Half,
}

/// Opens for all at once.
#[derive(Clone)]
pub(super) struct Gate {
    opened: watch::Receiver<bool>,
    count: Arc<Count>,
}

/// Opens a gate.
pub(super) struct Opener {
    open: watch::Sender<bool>,
    count: Arc<Count>,
}

/// How many stand before a gate, and how many have gone through.
#[derive(Default)]
struct Count {
    waiting: AtomicUsize,
    passed: AtomicUsize,
}

/// A gate that is closed.
pub(super) fn gate() -> (Opener, Gate) {
    let (open, opened) = watch::channel(false);
    let count = Arc::new(Count::default());
    (Opener { open, count: Arc::clone(&count) }, Gate { opened, count })
}

impl Opener {
    pub(super) fn open(&self) {
        self.open.send_replace(true);
    }

    /// How many bodies have sent all but their end.
    pub(super) fn waiting(&self) -> usize {
        self.count.waiting.load(Ordering::SeqCst)
    }

    /// How many of them have handed over their end since.
    pub(super) fn passed(&self) -> usize {
        self.count.passed.load(Ordering::SeqCst)
    }
}

impl Gate {
    /// Waits until it is open.
    pub(super) async fn pass(mut self) {
        self.count.waiting.fetch_add(1, Ordering::SeqCst);
        // Without an opener, nothing is held back.
        let _opened = self.opened.wait_for(|is_open| *is_open).await;
        self.count.passed.fetch_add(1, Ordering::SeqCst);
    }
}

/// When a body's last byte was handed to its connection.
#[derive(Clone, Default)]
pub(super) struct HandedOver(Arc<OnceLock<Instant>>);

impl HandedOver {
    pub(super) fn at(&self) -> Option<Instant> {
        self.0.get().copied()
    }

    pub(super) fn now(&self) {
        let _first = self.0.set(Instant::now());
    }
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The beginning at once, the end when the gate opens.
pub(super) struct HeldBody {
    begin: Bytes,
    end: Bytes,
    hold: Option<Waiting>,
    handed_over: HandedOver,
    /// Told once all that may go out was taken.
    written: Option<oneshot::Sender<()>>,
}

impl HeldBody {
    /// Without a gate, everything goes out at once.
    pub(super) fn new(body: &Bytes, gate: Option<Gate>) -> Self {
        let (begin, end) = split(body, body.len().saturating_sub(1));
        let hold = gate.map(|gate| Box::pin(gate.pass()) as Waiting);
        Self { begin, end, hold, handed_over: HandedOver::default(), written: None }
    }

    /// When the last byte is handed over.
    pub(super) fn handed_over(&self) -> HandedOver {
        self.handed_over.clone()
    }

    /// All of it, or half of it and never the rest.
    pub(super) fn in_parts(body: &Bytes, how_much: Partly) -> (Self, oneshot::Receiver<()>) {
        let (tell, written) = oneshot::channel();
        let (at, hold) = match how_much {
            Partly::Whole => (body.len(), None),
            Partly::Half => (body.len() / 2, Some(Box::pin(std::future::pending()) as Waiting)),
        };
        let (begin, end) = split(body, at);
        (Self { begin, end, hold, handed_over: HandedOver::default(), written: Some(tell) }, written)
    }

    fn tell(&mut self) {
        if let Some(tell) = self.written.take() {
            // The receiver may have been dropped.
            let _gone = tell.send(());
        }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.begin.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.begin)))));
        }
        if let Some(hold) = &mut self.hold {
            if hold.as_mut().poll(cx).is_pending() {
                self.tell();
                return Poll::Pending;
            }
            self.hold = None;
        }
        self.handed_over.now();
        if self.end.is_empty() {
            self.tell();
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.end)))))
    }

    fn is_end_stream(&self) -> bool {
        self.begin.is_empty() && self.end.is_empty() && self.hold.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.begin.len() + self.end.len()) as u64)
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.tell();
    }
}

/// The bytes of a body that go out before the last one.
fn split(body: &Bytes, at: usize) -> (Bytes, Bytes) {
    let at = at.min(body.len());
    (body.slice(..at), body.slice(at..))
}
