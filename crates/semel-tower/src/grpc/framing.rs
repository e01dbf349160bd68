//! Messages, as they lie in a body: a flag of one byte, a length of four, and that many bytes.

/// A second message has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a second message began")]
pub(crate) struct SecondMessage;

/// Follows a body that may have one message.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    /// How much of the head was read.
    head: u8,
    /// Whether the message is compressed; another value is invalid.
    flag: u8,
    /// How much of the message is to come.
    left: u32,
}

/// Flag and length.
const HEAD: u8 = 5;

impl Framing {
    /// Reads the next piece of the body.
    ///
    /// # Errors
    /// A second message began with it.
    pub(crate) fn read(&mut self, mut piece: &[u8]) -> Result<(), SecondMessage> {
        while let Some((byte, rest)) = piece.split_first() {
            if self.head < HEAD {
                match self.head {
                    0 => self.flag = *byte,
                    _ => self.left = self.left << 8 | u32::from(*byte),
                }
                self.head += 1;
                piece = rest;
                continue;
            }
            if self.left == 0 {
                return Err(SecondMessage);
            }
            let taken = piece.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= u32::try_from(taken).unwrap_or(self.left);
            piece = &piece[taken..];
        }
        Ok(())
    }

    /// Whether what was read is one whole message.
    pub(crate) fn is_one_message(&self) -> bool {
        self.head == HEAD && self.left == 0 && self.flag <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8], piece: usize) -> (Result<(), SecondMessage>, bool) {
        let mut framing = Framing::default();
        let read = body.chunks(piece).try_for_each(|piece| framing.read(piece));
        (read, framing.is_one_message())
    }

    #[test]
    fn one_message_is_told_from_none_from_a_part_and_from_two() {
        let one = [&[0, 0, 0, 1, 2][..], &[7; 258]].concat();
        let empty = [0, 0, 0, 0, 0];
        for piece in [1, 2, 3, 5, 6, 100, 1000] {
            assert_eq!(read(&one, piece), (Ok(()), true), "{piece}");
            assert_eq!(read(&empty, piece), (Ok(()), true), "an empty message, in pieces of {piece}");
            assert_eq!(read(&one[..200], piece), (Ok(()), false), "{piece}");
            assert_eq!(read(&one[..4], piece), (Ok(()), false), "{piece}");
            assert_eq!(read(&[&one[..], &[0]].concat(), piece).0, Err(SecondMessage), "{piece}");
            assert_eq!(read(&[empty, empty].concat(), piece).0, Err(SecondMessage), "{piece}");
        }
        assert_eq!(read(&[], 1), (Ok(()), false));
        assert_eq!(read(&[1, 0, 0, 0, 1, 9], 6), (Ok(()), true), "compressed");
        assert_eq!(read(&[2, 0, 0, 0, 1, 9], 6), (Ok(()), false), "there is no such flag");
    }
}
