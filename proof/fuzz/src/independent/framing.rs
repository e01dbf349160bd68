//! Where the requests of one connection begin and end, read strictly (RFC 9112) and all at once.

/// One request whose head is complete.
#[derive(Debug)]
pub(crate) struct Request {
    /// The request line.
    pub(crate) line: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// All of its body is there.
    pub(crate) complete: bool,
}

/// How the bytes end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Boundary,
    Head,
    Body,
    /// Something is wrong; the name is that of the rule.
    Refused(&'static str),
}

/// What there is on a connection.
pub(crate) struct Connection {
    pub(crate) requests: Vec<Request>,
    pub(crate) end: End,
}

/// Reads all bytes of a connection.
pub(crate) fn read(bytes: &[u8], longest_line: usize) -> Connection {
    let mut reader = Reader { rest: bytes, longest_line };
    let mut requests = Vec::new();
    loop {
        match reader.request(&mut requests) {
            Ok(()) => {}
            Err(end) => return Connection { requests, end },
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    longest_line: usize,
}

impl<'a> Reader<'a> {
    /// The next line without its end; `otherwise` where the bytes end before it.
    fn line(&mut self, otherwise: End) -> Result<&'a [u8], End> {
        if self.rest.is_empty() {
            return Err(otherwise);
        }
        let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') else {
            let too_long = self.rest.len() > self.longest_line;
            return Err(if too_long {
                End::Refused("line length")
            } else if otherwise == End::Boundary {
                End::Head
            } else {
                otherwise
            });
        };
        let (line, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        if line.len() > self.longest_line {
            return Err(End::Refused("line length"));
        }
        self.rest = rest;
        match line.split_last() {
            Some((b'\r', line)) if !line.contains(&b'\r') => Ok(line),
            _ => Err(End::Refused("line end")),
        }
    }

    fn request(&mut self, requests: &mut Vec<Request>) -> Result<(), End> {
        let mut line = self.line(End::Boundary)?;
        if line.is_empty() {
            // One empty line is forgiven, and still belongs to no request.
            line = self.line(End::Boundary)?;
            if line.is_empty() {
                return Err(End::Refused("empty lines"));
            }
        }
        if line.contains(&b'#') {
            return Err(End::Refused("fragment"));
        }
        let old = line.ends_with(b"HTTP/1.0");
        let (mut length, mut chunked) = (None, false);
        loop {
            let field = self.line(End::Head)?;
            if field.is_empty() {
                break;
            }
            if [b' ', b'\t'].contains(&field[0]) {
                return Err(End::Refused("folded"));
            }
            let mut halves = field.splitn(2, |byte| *byte == b':');
            let name = halves.next().unwrap_or_default().to_ascii_lowercase();
            let Some(value) = halves.next() else { continue };
            let value = value.trim_ascii();
            match name.as_slice() {
                b"content-length" => {
                    let number = number(value, 10).ok_or(End::Refused("length"))?;
                    if length.is_some() {
                        return Err(End::Refused("several lengths"));
                    }
                    length = Some(number);
                }
                b"transfer-encoding" if old => return Err(End::Refused("encoding in 1.0")),
                b"transfer-encoding" => {
                    if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                        return Err(End::Refused("encoding"));
                    }
                    chunked = true;
                }
                _ => {}
            }
            if chunked && length.is_some() {
                return Err(End::Refused("length and encoding"));
            }
        }
        requests.push(Request { line: line.to_vec(), body: Vec::new(), complete: false });
        let mut body = Vec::new();
        let read =
            if chunked { self.chunks(&mut body) } else { self.counted(length.unwrap_or(0), &mut body) };
        if let Some(request) = requests.last_mut() {
            request.body = body;
            request.complete = read.is_ok();
        }
        read
    }

    fn counted(&mut self, length: u64, body: &mut Vec<u8>) -> Result<(), End> {
        let there = usize::try_from(length).unwrap_or(usize::MAX).min(self.rest.len());
        let (taken, rest) = self.rest.split_at(there);
        body.extend_from_slice(taken);
        self.rest = rest;
        if (there as u64) < length { Err(End::Body) } else { Ok(()) }
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> Result<(), End> {
        loop {
            let line = self.line(End::Body)?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size = number(size, 16).ok_or(End::Refused("chunk size"))?;
            if size == 0 {
                break;
            }
            self.counted(size, body)?;
            if !self.line(End::Body)?.is_empty() {
                return Err(End::Refused("chunk end"));
            }
        }
        loop {
            let trailer = self.line(End::Body)?;
            match trailer.first() {
                None => return Ok(()),
                Some(b' ' | b'\t') => return Err(End::Refused("folded")),
                Some(_) => {}
            }
        }
    }
}

/// One to fifteen digits.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let plain = (1..=15).contains(&text.len()) && text.chars().all(|digit| digit.is_digit(radix));
    if plain { u64::from_str_radix(text, radix).ok() } else { None }
}
