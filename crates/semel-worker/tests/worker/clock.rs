//! The crate has no clock: moments are the store's, and what a machine takes for the time of day changes nothing.

use std::path::Path;

/// An event's id has a time in it, as all UUIDv7 have, and a webhook says when it was sent, to a receiver that compares it with its own
/// time of day. Nothing is decided by either; and that a delivery which comes in was signed of late is judged by the time of day, as its sender has it.
const EXEMPT: [(&str, &str); 5] = [
    ("src/message.rs", "now_v7"),
    ("sink/webhook.rs", "SystemTime"),
    ("sink/webhook.rs", "UNIX_EPOCH"),
    ("webhook/mod.rs", "SystemTime"),
    ("webhook/mod.rs", "UNIX_EPOCH"),
];

#[test]
fn no_source_reads_the_time_of_day() {
    let mut files = 0;
    look_at(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut files);
    assert!(files > 10, "only {files} files were found");
}

fn look_at(directory: &Path, files: &mut usize) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            look_at(&path, files);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // Times of day come from one of these; `now_v7` and `OperationId::random` would put one into an id.
        for word in ["SystemTime", "UNIX_EPOCH", "jiff::", "chrono::", "now_v7", "OperationId::random"] {
            let exempt = EXEMPT.iter().any(|(file, allowed)| path.ends_with(file) && word == *allowed);
            assert!(exempt || !text.contains(word), "{} uses {word}", path.display());
        }
        *files += 1;
    }
}
