//! Bytes, written and read.

use bytes::Bytes;

/// Reads what was written, front to back. Whatever does not fit is `None`.
pub(super) struct Reader(Bytes);

impl Reader {
    pub(super) fn of(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<Bytes> {
        (length <= self.0.len()).then(|| self.0.split_to(length))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?[..].try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.u32()?).ok()?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    /// What may be absent. The outer `None`: it cannot be read.
    pub(super) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.u8()? {
            0 => Some(None),
            1 => read(self).map(Some),
            _ => None,
        }
    }
}

pub(super) fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    // Nothing that is kept is that long: see `MAX_VALUE`. Should it ever be, the MAC is over what cannot be read.
    to.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend(bytes);
}

pub(super) fn put_optional<T>(value: Option<&T>, to: &mut Vec<u8>, put: impl FnOnce(&T, &mut Vec<u8>)) {
    to.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(value, to);
    }
}
