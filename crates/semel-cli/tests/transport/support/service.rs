//! A service that counts what it does, by path.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// What every request is answered with.
const ANSWER: &str = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nLocation: /payments/pay_1\r\nContent-Length: 13\r\n\r\n{\"id\":\"p_1\"}\n";

/// Requests for `/slow` wait until they are let go.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    executions: HashMap<String, usize>,
    let_go: usize,
    waiting: usize,
    connections: usize,
}

impl Service {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<(Mutex<State>, Condvar)>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                shared.0.lock().unwrap().connections += 1;
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state }
    }

    /// How often each path was executed.
    pub(crate) fn executions(&self) -> HashMap<String, usize> {
        self.state.0.lock().unwrap().executions.clone()
    }

    pub(crate) fn executed(&self) -> usize {
        self.executions().values().sum()
    }

    /// How often somebody connected.
    pub(crate) fn connections(&self) -> usize {
        self.state.0.lock().unwrap().connections
    }

    /// Waits until so many requests for `/slow` wait.
    pub(crate) fn has_slow_ones(&self, count: usize) {
        let (state, changed) = &*self.state;
        drop(changed.wait_while(state.lock().unwrap(), |state| state.waiting < count).unwrap());
    }

    /// Lets so many requests for `/slow` go on.
    pub(crate) fn let_go(&self, count: usize) {
        self.state.0.lock().unwrap().let_go += count;
        self.state.1.notify_all();
    }
}

fn serve(mut stream: TcpStream, (state, changed): &(Mutex<State>, Condvar)) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
        if lines.read_line(&mut first).ok()? == 0 {
            return None;
        }
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).ok()?;
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().ok()?;
            }
        }
        lines.read_exact(&mut vec![0; length]).ok()?;
        let path = first.split(' ').nth(1)?.to_owned();
        let mut state = state.lock().unwrap();
        *state.executions.entry(path.clone()).or_default() += 1;
        if path == "/slow" {
            state.waiting += 1;
            changed.notify_all();
            state = changed.wait_while(state, |state| state.let_go == 0).unwrap();
            (state.let_go, state.waiting) = (state.let_go - 1, state.waiting - 1);
        }
        drop(state);
        stream.write_all(ANSWER.as_bytes()).ok()?;
    }
}
