//! What the disk itself takes: appending 4 KiB and waiting until they are safe, with nothing around it.

use std::fs::OpenOptions;
use std::io::{Result, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long each append took with its `fdatasync`, in microseconds; at least one is made.
///
/// # Errors
/// The file cannot be written.
pub fn synced_appends(file: &Path, span: Duration) -> Result<Vec<f64>> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    let block = [b'x'; 4096];
    let (begun, mut micros) = (Instant::now(), Vec::new());
    while micros.is_empty() || begun.elapsed() < span {
        let append = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        micros.push(append.elapsed().as_secs_f64() * 1e6);
    }
    Ok(micros)
}
