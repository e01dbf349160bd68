//! Log lines that wait to be written: a bounded buffer between those who log and one thread that writes.
//!
//! A pipe whose reader stalls makes `write` wait for as long as the reader likes. Here only the writing thread waits. Everybody else appends to
//! memory; once that is full, lines are dropped and counted, and a line says how many as soon as the reader is back.

use crate::escape::escape_json;
use semel_gateway::metrics::count_dropped_log_lines;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// The target of the line that tells of lost ones.
pub(super) const LINES_LOST: &str = "semel::logs";

/// What may wait, in bytes: more than a thousand lines. As much again may be in the hands of the writing thread.
const ROOM: usize = 256 << 10;

/// The most that is written in one call. POSIX writes no more than this to a pipe without somebody else's bytes in between (`PIPE_BUF`
/// on Linux).
const PIECE: usize = 4096;

/// How long an exit waits for a reader that takes nothing, and for one that takes some.
const WITHOUT_PROGRESS: Duration = Duration::from_secs(1);
const AT_MOST: Duration = Duration::from_secs(5);

/// After a write that would have waited, or that was interrupted: somebody else made the other end non-blocking.
const PAUSE: Duration = Duration::from_millis(10);

thread_local! {
    /// Whether this is the writing thread. What it logs itself goes out at once, past the buffer.
    static WRITES: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The lines that wait, and the thread that writes them.
pub(super) struct Backlog(Arc<Inner>);

struct Inner {
    waiting: Mutex<Lines>,
    /// There is something to write, or nothing will come any more.
    wake: Condvar,
    /// Something was written.
    written: Condvar,
    room: usize,
}

#[derive(Default)]
struct Lines {
    lines: Vec<u8>,
    /// Lines that came after those, and found no room. Until these are told of, all others are dropped too: the line that tells of them
    /// stands where they are missing.
    lost: u64,
    /// The thread has lines that it has not written yet.
    is_writing: bool,
    /// Goes up with every piece that was written.
    progress: u64,
    is_over: bool,
}

impl Backlog {
    /// Writes to `out` from now on.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        Self::with_room(out, ROOM)
    }

    fn with_room(out: impl Write + Send + 'static, room: usize) -> io::Result<Self> {
        let shared = Arc::new(Inner {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            written: Condvar::new(),
            room,
        });
        let writing = Arc::clone(&shared);
        thread::Builder::new().name("semel-log".into()).spawn(move || writing.write(out))?;
        Ok(Self(shared))
    }

    /// Where lines are appended to.
    pub(super) fn writer(&self) -> Appender {
        Appender(Arc::clone(&self.0))
    }

    /// Waits until everything is written, but not for a reader that has stalled.
    pub(super) fn finish(&self) {
        let mut waiting = self.0.waiting();
        waiting.is_over = true;
        self.0.wake.notify_one();
        let until = Instant::now() + AT_MOST;
        let (mut seen, mut since) = (waiting.progress, Instant::now());
        while waiting.is_writing || !waiting.lines.is_empty() || waiting.lost > 0 {
            if waiting.progress != seen {
                (seen, since) = (waiting.progress, Instant::now());
            }
            let left = until.min(since + WITHOUT_PROGRESS).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.written.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, Lines> {
        // Whole lines and numbers are put in under the lock: a poisoned one is as good as any.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends one line, or drops it.
    fn append(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.lost > 0 || waiting.lines.len() + line.len() > self.room {
            waiting.lost += 1;
            drop(waiting);
            return count_dropped_log_lines(1);
        }
        let was_empty = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        drop(waiting);
        if was_empty {
            self.wake.notify_one();
        }
    }

    /// The writing thread.
    fn write(&self, mut out: impl Write) {
        WRITES.set(true);
        let mut lines = Vec::new();
        let mut unwritten = 0;
        loop {
            let lost = {
                let mut waiting = self.waiting();
                waiting.is_writing = false;
                self.written.notify_all();
                while waiting.lines.is_empty() && waiting.lost == 0 {
                    if waiting.is_over {
                        return;
                    }
                    waiting = self.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
                waiting.is_writing = true;
                std::mem::swap(&mut lines, &mut waiting.lines);
                std::mem::take(&mut waiting.lost)
            };
            unwritten += self.write_lines(&lines, &mut out);
            lines.clear();
            if unwritten + lost > 0 {
                let note = note_of(unwritten + lost);
                // Where even this cannot be written, it is told with the next.
                unwritten = if write_all(&mut out, &note).is_ok() { 0 } else { unwritten + lost };
            }
        }
    }

    /// Writes whole lines, several at a time; says how many could not be written.
    fn write_lines(&self, mut lines: &[u8], out: &mut impl Write) -> u64 {
        let mut unwritten = 0;
        while !lines.is_empty() {
            let (piece, rest) = lines.split_at(piece_of(lines));
            if write_all(out, piece).is_err() {
                let count = piece.split_inclusive(|&byte| byte == b'\n').count() as u64;
                unwritten += count;
                count_dropped_log_lines(count);
            }
            lines = rest;
            self.waiting().progress += 1;
            self.written.notify_all();
        }
        unwritten
    }
}

/// How much of these lines is written at once: as many whole ones as fit, and at least one.
fn piece_of(lines: &[u8]) -> usize {
    let fitting = &lines[..lines.len().min(PIECE)];
    let end = fitting.iter().rposition(|&byte| byte == b'\n');
    let end = end.or_else(|| lines.iter().position(|&byte| byte == b'\n'));
    end.map_or(lines.len(), |end| end + 1)
}

fn write_all(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    out.flush()
}

thread_local! {
    static NOTE: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The line that tells of lost ones, as the log's format has it. Called by the writing thread, whose own lines are kept apart.
fn note_of(lost: u64) -> Vec<u8> {
    tracing::warn!(target: LINES_LOST, lost, "log lines dropped: the reader of standard error was too slow");
    NOTE.take()
}

/// Appends one line per call of `write`, as the subscriber makes them, with what cannot be seen in it spelt out.
#[derive(Clone)]
pub(super) struct Appender(Arc<Inner>);

impl Write for &Appender {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if WRITES.get() {
            NOTE.with_borrow_mut(|note| note.extend_from_slice(line));
        } else {
            self.0.append(&escape_json(line));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Appender {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    /// A pipe that takes nothing unless somebody reads.
    struct Pipe(SyncSender<Vec<u8>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stalled(room: usize) -> (Backlog, Receiver<Vec<u8>>) {
        let (sender, receiver) = sync_channel(0);
        let backlog = Backlog::with_room(Pipe(sender), room).unwrap();
        // The thread has one line in its hands, and cannot get rid of it.
        (&backlog.writer()).write_all(b"first\n").unwrap();
        while !backlog.0.waiting().is_writing {
            thread::yield_now();
        }
        (backlog, receiver)
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_what_comes_after_it_too_until_that_is_told() {
        let (backlog, _receiver) = stalled(10);
        for line in ["123456\n", "too long\n", "12\n"] {
            (&backlog.writer()).write_all(line.as_bytes()).unwrap();
        }
        let waiting = backlog.0.waiting();
        assert_eq!((&waiting.lines[..], waiting.lost), (&b"123456\n"[..], 2));
    }

    #[test]
    fn an_exit_does_not_wait_for_a_reader_that_has_stalled_and_does_for_one_that_reads() {
        let (backlog, receiver) = stalled(100);
        (&backlog.writer()).write_all(b"last\n").unwrap();
        backlog.finish();
        assert!(!backlog.0.waiting().lines.is_empty(), "nobody has read it");
        let reading = thread::spawn(move || receiver.iter().flatten().collect::<Vec<u8>>());
        backlog.finish();
        assert!(backlog.0.waiting().lines.is_empty());
        assert_eq!(reading.join().unwrap(), b"first\nlast\n");
    }

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        let (backlog, _receiver) = stalled(100);
        (&backlog.writer()).write_all("an error: \u{202e}\n".as_bytes()).unwrap();
        assert_eq!(backlog.0.waiting().lines, b"an error: \\u202e\n");
    }

    #[test]
    fn lines_are_written_whole_several_at_a_time() {
        assert_eq!(piece_of(b"one\ntwo\n"), 8);
        let (short, long) = ("x".repeat(100) + "\n", "y".repeat(2 * PIECE) + "\n");
        let many = short.repeat(60);
        assert_eq!(piece_of(many.as_bytes()), PIECE / short.len() * short.len());
        assert_eq!(piece_of((long.clone() + &short).as_bytes()), long.len());
    }
}
