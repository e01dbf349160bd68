//! The service behind the gateways. It counts every execution where it happens.

use crate::http;
use std::collections::HashMap;
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// How often each key was executed.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<HashMap<String, u32>>>);

impl Ledger {
    /// Serves, and counts.
    pub(crate) fn serve(&self) -> Result<SocketAddr, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let ledger = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let ledger = ledger.clone();
                // It ends with its connection.
                thread::spawn(move || ledger.answer(stream));
            }
        });
        Ok(address)
    }

    fn answer(&self, stream: TcpStream) {
        let Ok(mut writing) = stream.try_clone() else { return };
        let mut reading = BufReader::new(stream);
        while let Ok(request) = http::read(&mut reading) {
            let key = request.field("idempotency-key").unwrap_or_default().to_owned();
            let times = self.count(key);
            let body = format!("{{\"execution\":{times},\"id\":\"{:016x}\"}}", fastrand::u64(..));
            let answer = format!("HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            if writing.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn count(&self, key: String) -> u32 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key).or_default();
        *count += 1;
        *count
    }

    /// How many keys were executed more than once.
    pub(crate) fn twice(&self) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.values().filter(|count| **count > 1).count()
    }
}
