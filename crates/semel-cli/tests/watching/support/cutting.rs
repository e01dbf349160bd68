//! A network that loses the answer to the first POST.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What gets through of the answer that is lost.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each test that loses an answer loses it in its own way")]
pub(crate) enum Passes {
    Nothing,
    Head,
}

/// Stands before the gateway, and loses one answer.
pub(crate) fn cutting_once(gateway: SocketAddr, passes: Passes) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let whole = Arc::new(AtomicBool::new(false));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (server, whole) = (TcpStream::connect(gateway).unwrap(), Arc::clone(&whole));
            let cuts = Arc::new(AtomicBool::new(false));
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let cut = Arc::clone(&cuts);
            thread::spawn(move || {
                pump(&mut from, &mut to, |bytes| {
                    if bytes.starts_with(b"POST ") && !whole.swap(true, Ordering::SeqCst) {
                        cut.store(true, Ordering::SeqCst);
                    }
                    bytes.len()
                });
            });
            let (mut from, mut to) = (server, client);
            thread::spawn(move || {
                pump(&mut from, &mut to, |bytes| match (cuts.load(Ordering::SeqCst), passes) {
                    (false, _) => bytes.len(),
                    (true, Passes::Nothing) => 0,
                    (true, Passes::Head) => {
                        bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |end| end + 4)
                    }
                });
            });
        }
    });
    address
}

/// Passes on what comes, as far as `most` says; less than all of it is the end.
fn pump(from: &mut TcpStream, to: &mut TcpStream, most: impl Fn(&[u8]) -> usize) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let passes = most(&bytes[..count]);
        if to.write_all(&bytes[..passes]).is_err() || passes < count {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
