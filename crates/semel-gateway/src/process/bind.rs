//! The addresses that a process listens on.

use super::start_error::StartError;
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// How many connections may wait to be accepted. The usual 128 are too few for a crowd: who finds no room tries again a second later.
const QUEUE: u32 = 4096;

/// Takes an address.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let unheard = |error| StartError::Listen { address, error };
    let listener = bind(address).map_err(unheard)?;
    let address = listener.local_addr().map_err(unheard)?;
    Ok((listener, address))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart does not wait for the last connections of the process before it.
    socket.set_reuseaddr(!cfg!(windows))?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}
