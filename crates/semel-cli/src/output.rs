//! What is printed for others to read on.

use std::io::{self, ErrorKind, Write as _};

/// Prints a text. A reader that closes the pipe early (`semel man | head`) is no error.
pub(crate) fn print(words: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(words) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints what a server says when it starts. It neither fails nor waits if the output is not read.
pub(crate) fn announce(words: String) {
    let printing = move || drop(anstream::stdout().write_all(words.as_bytes()));
    // Without a thread for it, it is not said.
    let _not_said = std::thread::Builder::new().name("semel-stdout".into()).spawn(printing);
}
