//! Protocol buffers, written: the few parts of the encoding that OTLP and the details of a gRPC status need.

/// A message that is being written.
#[derive(Default)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    /// An empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The message as it is sent.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Adds an integer, as a varint.
    pub fn number(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// Adds an integer of eight bytes.
    pub fn fixed64(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend(value.to_le_bytes());
    }

    /// Adds a floating-point number.
    pub fn double(&mut self, field: u64, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// Adds bytes.
    pub fn bytes(&mut self, field: u64, value: &[u8]) {
        self.tag(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// Adds text.
    pub fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Adds a message within this one.
    pub fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::new();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// Adds integers of eight bytes, one after the other.
    pub fn packed64(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let packed: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &packed);
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_protocol_buffers_have_them() {
        let mut message = Message::new();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.number(1, 0));
        message.fixed64(16, 1);
        message.packed64(4, [2]);
        let expected = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g'],
            &[0x1a, 0x02, 0x08, 0x00],
            &[0x81, 0x01, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x22, 0x08, 2, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(message.into_bytes(), expected.concat());
    }
}
