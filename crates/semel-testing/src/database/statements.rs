//! Counts what clients of PostgreSQL ask the server for, by what they send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many statements were sent to be parsed or executed. Each one is a turn: the client waits for the server's answer. Signs of life
/// that a connection is asked for after a pause are not among them.
#[derive(Clone, Default)]
pub(super) struct Statements(Arc<AtomicUsize>);

impl Statements {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Follows what is sent over one more connection.
    pub(super) fn on_a_connection(&self) -> Following {
        Following { statements: self.clone(), head: Vec::new(), rest: 0, started: false }
    }
}

/// What one client sends, message by message, in whatever pieces it comes.
pub(super) struct Following {
    statements: Statements,
    /// What has come of a message's kind and length.
    head: Vec<u8>,
    /// How much of the message is yet to come after that.
    rest: usize,
    /// The first message, and one that asks for encryption before it, has no kind.
    started: bool,
}

impl Following {
    pub(super) fn sees(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.rest > 0 {
                let passed = self.rest.min(piece.len());
                self.rest -= passed;
                piece = &piece[passed..];
                continue;
            }
            self.head.push(piece[0]);
            piece = &piece[1..];
            let kinds = usize::from(self.started);
            if self.head.len() == kinds + 4 {
                self.begins(kinds);
            }
        }
    }

    fn begins(&mut self, kinds: usize) {
        let length = u32::from_be_bytes(self.head[kinds..].try_into().unwrap());
        self.rest = length as usize - 4;
        match self.head[0] {
            // "Parse", "Execute" and "Query".
            b'P' | b'E' | b'Q' if self.started => {
                self.statements.0.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
        // What asks for encryption is two numbers long, and the first message longer.
        self.started |= length != 8;
        self.head.clear();
    }
}
