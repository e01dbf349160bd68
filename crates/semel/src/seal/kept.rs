//! Headers and body of an answer as one run of bytes, and back.
//!
//! ```text
//! number of headers (4) | for each: length of the name (4), name, length of the value (4), value | body
//! ```

use bytes::{Buf, Bytes};

type Headers = Vec<(String, Bytes)>;

/// How long the run of these will be.
pub(super) fn packed_length(headers: &Headers, body: &[u8]) -> usize {
    let headers: usize = headers.iter().map(|(name, value)| 8 + name.len() + value.len()).sum();
    4 + headers + body.len()
}

/// Appends the run of these.
pub(super) fn pack(headers: &Headers, body: &[u8], bytes: &mut Vec<u8>) {
    // What a server takes of headers is far from four gigabytes, and so is their number.
    bytes.extend_from_slice(&(headers.len() as u32).to_le_bytes());
    for (name, value) in headers {
        for part in [name.as_bytes(), value] {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(body);
}

/// The headers and the body of a run of bytes; `None` if they are malformed. Only the headers' names are copied.
pub(super) fn unpack(mut bytes: Bytes) -> Option<(Headers, Bytes)> {
    let count = bytes.try_get_u32_le().ok()?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let name = part(&mut bytes)?;
        let value = part(&mut bytes)?;
        headers.push((String::from_utf8(name.into()).ok()?, value));
    }
    Some((headers, bytes))
}

fn part(bytes: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(bytes.try_get_u32_le().ok()?).ok()?;
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_body_come_back_as_they_were() {
        let headers = vec![
            ("content-type".to_owned(), Bytes::from("application/json")),
            ("link".to_owned(), Bytes::from_static(&[0, 255])),
            ("link".to_owned(), Bytes::new()),
        ];
        for (headers, body) in
            [(&headers, &b"{}"[..]), (&headers, b""), (&Vec::new(), b"body"), (&Vec::new(), b"")]
        {
            let mut bytes = Vec::new();
            pack(headers, body, &mut bytes);
            assert_eq!(bytes.len(), packed_length(headers, body));
            assert_eq!(unpack(bytes.into()), Some((headers.clone(), Bytes::copy_from_slice(body))));
        }
    }

    #[test]
    fn what_is_no_run_is_none() {
        for wrong in [&b""[..], &[1, 0, 0], &[1, 0, 0, 0], &[1, 0, 0, 0, 255, 255, 255, 255, b'a']] {
            assert_eq!(unpack(Bytes::copy_from_slice(wrong)), None, "{wrong:?}");
        }
    }
}
