//! What is printed for others to read on.

use std::io::{self, ErrorKind, Write as _};

/// Prints. Whoever reads along may have had enough (`semel man | head`): no reason to complain.
pub(crate) fn print(words: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(words) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
