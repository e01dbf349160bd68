//! The ledger: the book under one lock, and the file behind it.
//!
//! What is decided under the lock goes to the writer in the same order. The writer takes all that waits, writes it, syncs once and
//! lets everybody know how far the disk has got. Every answer waits until all that the book held when it was decided is on disk:
//! a replay as well as a charge, so that nothing is ever said that a kill could make untrue.

use crate::book::Book;
use crate::entry::Entry;
use crate::secret::InvalidWebhook;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Why a provider was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The settings contradict themselves.
    #[error(transparent)]
    Settings(#[from] InvalidWebhook),
    /// The file cannot be used.
    #[error("the ledger {path} cannot be opened")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has it open.
    #[error("the ledger {path} is in use: stop the provider that has it open, or name another file")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A line is not an entry. A last line that a kill has torn is no error: nobody was told of it, and it is dropped.
    #[error("{path}:{line}: not an entry of a ledger; restore the file, or move it away to begin a new one")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The ledger cannot be written any more. What was not acknowledged may or may not be in the file: the provider has to be started
/// again, and then knows.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the ledger cannot be written: {0}")]
pub struct LedgerFailed(Arc<str>);

/// How much is on disk: entries up to this sequence number.
type Durable = Result<u64, LedgerFailed>;

/// Bytes that one write takes at most. What waits beyond that waits for one more sync.
const LARGEST_WRITE: usize = 1 << 20;

pub(crate) struct Ledger {
    state: Mutex<State>,
    durable: watch::Sender<Durable>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct State {
    book: Book,
    /// Without a bound of its own: no more waits here than requests are under way, and these are bounded.
    lines: Option<mpsc::Sender<LedgerLine>>,
}

struct LedgerLine {
    sequence: u64,
    bytes: Vec<u8>,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let mut file = open_file(path)?;
        let book = read(path, &mut file)?;
        let (lines, waiting) = mpsc::channel();
        let (durable, _) = watch::channel(Ok(book.last()));
        let written = durable.clone();
        let writer = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write_all_that_waits(file, &waiting, &written))
            .map_err(|source| OpenError::File { path: path.to_owned(), source })?;
        let state = Mutex::new(State { book, lines: Some(lines) });
        Ok(Self { state, durable, writer: Mutex::new(Some(writer)) })
    }

    /// Decides under the lock, and returns once all that the decision could rest on, and all that it added, is on disk.
    ///
    /// What was added is written even if nobody waits for it any more.
    pub(crate) async fn decide<T>(
        &self,
        decide: impl FnOnce(&mut Book, u64) -> T,
    ) -> Result<T, LedgerFailed> {
        let (decided, last) = self.state()?.decide(decide)?;
        let mut durable = self.durable.subscribe();
        let reached =
            durable.wait_for(|durable| durable.as_ref().map_or(true, |durable| *durable >= last)).await;
        match reached.as_deref() {
            Ok(Ok(_)) => Ok(decided),
            Ok(Err(failed)) => Err(failed.clone()),
            Err(_) => Err(LedgerFailed("its writer has ended".into())),
        }
    }

    /// Reads without waiting for the disk: only what is known to be on it may be told to anybody.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&Book) -> T) -> Result<T, LedgerFailed> {
        Ok(look(&self.state()?.book))
    }

    /// Tells how far the disk has got.
    pub(crate) fn durable(&self) -> watch::Receiver<Durable> {
        self.durable.subscribe()
    }

    /// Writes what waits, then closes the file. Whatever comes afterwards fails.
    pub(crate) fn close(&self) {
        if let Ok(mut state) = self.state() {
            state.lines = None;
        }
        if let Some(writer) = self.writer.lock().ok().and_then(|mut writer| writer.take()) {
            // Whoever waited for it has heard of its failure by now.
            let _ended = writer.join();
        }
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, LedgerFailed> {
        // A panic in the middle of a decision: what the book holds is not what the file holds.
        self.state.lock().map_err(|_| LedgerFailed("a decision was not finished".into()))
    }
}

impl State {
    fn decide<T>(&mut self, decide: impl FnOnce(&mut Book, u64) -> T) -> Result<(T, u64), LedgerFailed> {
        let lines = self.lines.take().ok_or_else(|| LedgerFailed("it is closed".into()))?;
        let before = self.book.last();
        let decided = decide(&mut self.book, now());
        // Where this fails the ledger stays closed: the book would be ahead of the file.
        for entry in self.book.after(before) {
            let bytes = entry.line().map_err(|error| LedgerFailed(error.to_string().into()))?;
            let sent = lines.send(LedgerLine { sequence: entry.sequence, bytes });
            sent.map_err(|_| LedgerFailed("its writer has ended".into()))?;
        }
        self.lines = Some(lines);
        Ok((decided, self.book.last()))
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn open_file(path: &Path) -> Result<File, OpenError> {
    let failed = |source| OpenError::File { path: path.to_owned(), source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // A file is durable once its directory is.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(file)
}

/// Reads the file, drops a torn last line, and leaves the file at its end.
fn read(path: &Path, file: &mut File) -> Result<Book, OpenError> {
    let failed = |source| OpenError::File { path: path.to_owned(), source };
    let mut book = Book::default();
    let mut whole = 0;
    let mut reader = BufReader::new(&*file);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if length == 0 {
            break;
        }
        // Nobody was told of a line that has no end: it is acknowledged after it was written as a whole.
        if line.last() != Some(&b'\n') {
            tracing::warn!(ledger = %path.display(), line = number, bytes = length, "dropped a torn last line");
            break;
        }
        whole += length as u64;
        let entry = serde_json::from_slice::<Entry>(&line).map_err(Into::into);
        let taken = entry.and_then(|entry| book.read(entry).map_err(Into::into));
        taken.map_err(|source| OpenError::Unreadable { path: path.to_owned(), line: number, source })?;
    }
    file.set_len(whole).map_err(failed)?;
    file.seek(SeekFrom::Start(whole)).map_err(failed)?;
    // What the last process wrote and did not live to sync is told from now on, and so has to stay.
    file.sync_all().map_err(failed)?;
    Ok(book)
}

fn write_all_that_waits(
    mut file: File,
    waiting: &mpsc::Receiver<LedgerLine>,
    durable: &watch::Sender<Durable>,
) {
    while let Ok(LedgerLine { mut sequence, mut bytes }) = waiting.recv() {
        while bytes.len() < LARGEST_WRITE {
            let Ok(next) = waiting.try_recv() else { break };
            bytes.extend_from_slice(&next.bytes);
            sequence = next.sequence;
        }
        if let Err(error) = file.write_all(&bytes).and_then(|()| file.sync_data()) {
            tracing::error!(%error, "the ledger cannot be written");
            durable.send_modify(|durable| *durable = Err(LedgerFailed(error.to_string().into())));
            return;
        }
        durable.send_modify(|durable| *durable = Ok(sequence));
    }
    // Closing does it too, but not while a process that was just forked has the file open as well.
    let _closed_at_once = file.unlock();
}

#[cfg(test)]
mod tests;
