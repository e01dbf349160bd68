//! What is printed for others to read on.

use std::io::{self, ErrorKind, Write as _};

/// Prints. Whoever reads along may have had enough (`semel man | head`): no reason to complain.
pub(crate) fn print(words: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(words) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints what a server says when it starts. Whether somebody reads it makes no difference to the server: it neither ends nor waits for that.
pub(crate) fn announce(words: String) {
    let printing = move || drop(anstream::stdout().write_all(words.as_bytes()));
    // Without a thread for it, it is not said.
    let _not_said = std::thread::Builder::new().name("semel-stdout".into()).spawn(printing);
}
