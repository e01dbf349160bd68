//! What is hashed: parts with a name and a length each, so that no byte can move from one to the next unseen.

use super::secret::FingerprintSecret;
use crate::canonical::Sink;
use hmac::{Hmac, Mac};
use http::HeaderMap;
use sha2::{Digest, Sha256};

/// A hash in the making, plain or keyed. Both take an unbounded input and give 32 bytes.
pub(super) enum Parts {
    Plain(Sha256),
    Keyed(Hmac<Sha256>),
}

impl Parts {
    /// Starts a hash for one purpose: what is hashed for another never meets it, even under the same secret.
    pub(super) fn new(purpose: &str, secret: Option<&FingerprintSecret>) -> Self {
        let mut parts = match secret {
            None => Self::Plain(Sha256::new()),
            Some(secret) => Self::Keyed(secret.hmac()),
        };
        parts.piece(purpose.as_bytes());
        parts
    }

    /// Adds bytes whose length was added before.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(hash) => Digest::update(hash, bytes),
            Self::Keyed(hash) => Mac::update(hash, bytes),
        }
    }

    /// Adds a number of things to come.
    pub(super) fn count(&mut self, count: usize) {
        self.raw(&(count as u64).to_be_bytes());
    }

    /// Adds bytes, after their length.
    pub(super) fn piece(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    /// Adds a part: its name and its bytes, each after its length.
    pub(super) fn part(&mut self, name: &str, bytes: &[u8]) {
        self.piece(name.as_bytes());
        self.piece(bytes);
    }

    /// Adds all values of a header, each after its length, after their number: no header is not an empty one.
    pub(super) fn header(&mut self, name: &str, headers: &HeaderMap) {
        let values = headers.get_all(name);
        self.piece(name.as_bytes());
        self.count(values.iter().count());
        values.iter().for_each(|value| self.piece(value.as_bytes()));
    }

    pub(super) fn finish(self) -> [u8; 32] {
        match self {
            Self::Plain(hash) => hash.finalize().into(),
            Self::Keyed(hash) => hash.finalize().into_bytes().into(),
        }
    }
}

/// Hashes text that comes in small pieces, gathered so that the hash function sees few large ones.
pub(super) struct Gathered {
    hash: Sha256,
    buffer: [u8; 1024],
    filled: usize,
}

impl Gathered {
    pub(super) fn new() -> Self {
        Self { hash: Sha256::new(), buffer: [0; 1024], filled: 0 }
    }

    fn make_room_for(&mut self, piece: &[u8]) {
        self.hash.update(&self.buffer[..self.filled]);
        self.filled = 0;
        if piece.len() > self.buffer.len() {
            self.hash.update(piece);
        } else {
            self.write(piece);
        }
    }

    pub(super) fn finish(mut self) -> [u8; 32] {
        self.hash.update(&self.buffer[..self.filled]);
        self.hash.finalize().into()
    }
}

impl Sink for Gathered {
    #[inline]
    fn write(&mut self, piece: &[u8]) {
        match self.buffer.get_mut(self.filled..self.filled + piece.len()) {
            Some(room) => {
                room.copy_from_slice(piece);
                self.filled += piece.len();
            }
            None => self.make_room_for(piece),
        }
    }
}
