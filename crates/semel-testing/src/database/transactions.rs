//! Counts the transactions of PostgreSQL's clients, by what the server answers. What the server does for itself is not among them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A kind, and a length.
const HEAD: usize = 5;

/// How many transactions have ended: the server is ready for the next statement, outside of any.
#[derive(Clone, Default)]
pub(super) struct Transactions(Arc<AtomicUsize>);

impl Transactions {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Follows what is answered over one more connection.
    pub(super) fn on_a_connection(&self) -> FollowingAnswers {
        FollowingAnswers {
            transactions: self.clone(),
            head: Vec::new(),
            rest: 0,
            is_first: true,
            has_worked: false,
        }
    }
}

/// What the server answers one client, message by message, in whatever pieces it comes.
pub(super) struct FollowingAnswers {
    transactions: Transactions,
    /// What has come of a message's kind and length.
    head: Vec<u8>,
    /// How much of the message is yet to come after that.
    rest: usize,
    /// The answer to a client that asks for encryption is one letter, and comes before everything else.
    is_first: bool,
    /// A statement has ended since the last transaction did. Signs of life that a connection is asked for have none.
    has_worked: bool,
}

impl FollowingAnswers {
    pub(super) fn sees(&mut self, mut piece: &[u8]) {
        if self.is_first && !piece.is_empty() {
            self.is_first = false;
            piece = piece.strip_prefix(b"N").unwrap_or(piece);
        }
        while let [byte, others @ ..] = piece {
            if self.head.len() < HEAD {
                self.head.push(*byte);
                piece = others;
                if self.head.len() == HEAD {
                    let length = u32::from_be_bytes(self.head[1..].try_into().unwrap());
                    self.rest = length as usize - 4;
                }
            } else {
                // "CommandComplete"; "ReadyForQuery", and idle.
                self.has_worked |= self.head[0] == b'C';
                if self.head[0] == b'Z' && *byte == b'I' && std::mem::take(&mut self.has_worked) {
                    self.transactions.0.fetch_add(1, Ordering::SeqCst);
                }
                let passed = self.rest.min(piece.len());
                self.rest -= passed;
                piece = &piece[passed..];
            }
            if self.head.len() == HEAD && self.rest == 0 {
                self.head.clear();
            }
        }
    }
}
