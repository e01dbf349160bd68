//! Waiting for the first answer of a server that was just started.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, path::Path, thread};

/// How long a broker may take until it answers, on a machine that is busy with other things. RabbitMQ needs ten seconds on one
/// that is not.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until the server on `port` answers `greeting` with these first bytes. If it ends before that, or does not begin to
/// answer, its log says why.
pub(crate) fn wait_for(
    server: &mut Child,
    port: u16,
    greeting: &[u8],
    first: &[u8],
    log: &Path,
) -> Result<(), String> {
    let began = Instant::now();
    while !answers(port, greeting, first) {
        let ended = server.try_wait().map_err(|error| error.to_string())?;
        if ended.is_some() || began.elapsed() > PATIENCE {
            let said = fs::read_to_string(log).unwrap_or_default();
            return Err(format!("the broker does not answer ({ended:?}); its log: {said}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn answers(port: u16, greeting: &[u8], first: &[u8]) -> bool {
    let asked = || {
        let mut connection = TcpStream::connect(("127.0.0.1", port))?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        connection.write_all(greeting)?;
        let mut answer = vec![0; first.len()];
        connection.read_exact(&mut answer)?;
        if answer == first { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
    };
    let answered: Result<(), std::io::Error> = asked();
    answered.is_ok()
}
