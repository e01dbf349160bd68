//! Somebody else's server: keeps what it is sent, and refuses the kind `Bad` while it is told to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub struct Receiver {
    pub address: SocketAddr,
    pub refuses: Arc<AtomicBool>,
    kept: Arc<Mutex<Vec<Kept>>>,
}

/// A delivery that was confirmed.
#[derive(Clone, Debug)]
pub struct Kept {
    head: String,
    pub body: String,
}

impl Kept {
    pub fn header(&self, name: &str) -> String {
        let line = self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        line.unwrap_or_else(|| panic!("{name} is missing: {}", self.head))
    }
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (refuses, kept) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
        let (refusing, keeping) = (refuses.clone(), kept.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, refusing, keeping) = (stream.unwrap(), refusing.clone(), keeping.clone());
                std::thread::spawn(move || while serve(&stream, &refusing, &keeping).is_some() {});
            }
        });
        Self { address, refuses, kept }
    }

    pub fn kept(&self) -> Vec<Kept> {
        self.kept.lock().unwrap().clone()
    }

    pub fn bodies(&self) -> Vec<String> {
        self.kept().into_iter().map(|kept| kept.body).collect()
    }
}

/// One request of a connection that stays open; none: it was closed.
fn serve(stream: &TcpStream, refuses: &AtomicBool, kept: &Mutex<Vec<Kept>>) -> Option<()> {
    let mut reader = BufReader::with_capacity(1, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut delivery = Kept { head, body: String::new() };
    let mut body = vec![0; delivery.header("content-length").parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    delivery.body = String::from_utf8(body).unwrap();
    let refused = refuses.load(Ordering::SeqCst) && delivery.header("semel-kind") == "Bad";
    if !refused {
        kept.lock().unwrap().push(delivery);
    }
    let status = if refused { "422 Unprocessable Content" } else { "204 No Content" };
    let mut writing = stream;
    write!(writing, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").ok()
}
