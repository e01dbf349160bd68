//! The file, and what a kill leaves of it.

use super::*;
use crate::entry::{Fact, Object};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("provider.ledger");
    (directory, path)
}

async fn seal(ledger: &Ledger, identity: &str) {
    assert!(ledger.decide(|book, now| book.ask(Object::Charge, identity, 1, now)).await.unwrap().is_none());
}

fn identities(ledger: &Ledger) -> Vec<String> {
    let identity = |entry: &Arc<Entry>| match &entry.fact {
        Fact::Sealed { identity, .. } => identity.clone(),
        _ => panic!("another entry"),
    };
    ledger.peek(|book| book.after(0).iter().map(identity).collect()).unwrap()
}

#[tokio::test]
async fn wherever_the_last_line_is_torn_the_lines_before_it_are_kept() {
    let (_directory, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    for identity in ["a", "b", "c"] {
        seal(&ledger, identity).await;
    }
    ledger.close();
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = (1..=whole.len()).filter(|end| whole[end - 1] == b'\n').collect();
    assert_eq!(ends.len(), 3);
    // Every place of the last line, and some of the others: each is opened and synced twice.
    for length in (0..ends[1]).step_by(11).chain(ends[1] - 1..=whole.len()) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let ledger = Ledger::open(&path).unwrap();
        let kept = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(identities(&ledger), ["a", "b", "c"][..kept]);
        let rest = if kept == 0 { 0 } else { ends[kept - 1] };
        assert_eq!(std::fs::metadata(&path).unwrap().len(), rest as u64, "the torn line is gone");
        assert_eq!(*ledger.durable().borrow().as_ref().unwrap(), kept as u64);
        // It goes on after the last whole line, and not after the torn one.
        seal(&ledger, "d").await;
        ledger.close();
        let ledger = Ledger::open(&path).unwrap();
        assert_eq!(identities(&ledger), [&["a", "b", "c"][..kept], &["d"]].concat());
        ledger.close();
    }
}

#[tokio::test]
async fn a_damaged_line_is_named_with_its_file_and_number() {
    let (_directory, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    for identity in ["a", "b", "c"] {
        seal(&ledger, identity).await;
    }
    ledger.close();
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let missing = [lines[0], lines[2], ""].join("\n");
    let damaged = [lines[0], &lines[1][..20], lines[2], ""].join("\n");
    let empty = [lines[0], "", lines[1], ""].join("\n");
    // The last line is no exception where it has an end: a kill does not write half a line and its end.
    let last = [lines[0], "{}", ""].join("\n");
    for wrong in [missing, damaged, empty, last] {
        std::fs::write(&path, &wrong).unwrap();
        let error = Ledger::open(&path).err().unwrap();
        assert!(error.to_string().starts_with(&format!("{}:2:", path.display())), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), wrong, "nothing is changed");
    }
}

#[tokio::test]
async fn a_ledger_has_one_process() {
    let (_directory, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    assert!(matches!(Ledger::open(&path), Err(OpenError::InUse { .. })));
    ledger.close();
    assert!(ledger.decide(|book, _| book.last()).await.is_err(), "closed is closed");
    Ledger::open(&path).unwrap();
}

/// `/dev/full` takes nothing: every write fails as on a full disk.
#[tokio::test]
async fn what_cannot_be_written_is_not_acknowledged() {
    let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ((lines, waiting), durable) = (mpsc::channel(), watch::channel(Ok(0)).0);
    let written = durable.clone();
    let writer = std::thread::spawn(move || write_all_that_waits(file, &waiting, &written));
    let state = Mutex::new(State { book: Book::default(), lines: Some(lines) });
    let ledger = Ledger { state, durable, writer: Mutex::new(Some(writer)) };
    for identity in ["a", "a", "b"] {
        let sealed = ledger.decide(|book, now| book.ask(Object::Charge, identity, 1, now).is_none()).await;
        assert!(sealed.unwrap_err().to_string().starts_with("the ledger cannot be written"));
    }
}

#[tokio::test]
async fn many_at_once_are_all_on_disk_when_they_are_acknowledged() {
    let (_directory, path) = place();
    let ledger = Arc::new(Ledger::open(&path).unwrap());
    let mut deciding = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (ledger, path) = (Arc::clone(&ledger), path.clone());
        deciding.spawn(async move {
            let identity = format!("identity-{number}.");
            seal(&ledger, &identity).await;
            assert!(std::fs::read_to_string(path).unwrap().contains(&identity));
        });
    }
    deciding.join_all().await;
    ledger.close();
    assert_eq!(Ledger::open(&path).unwrap().peek(Book::last).unwrap(), 200);
}
