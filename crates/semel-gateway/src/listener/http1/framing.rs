//! Where one request ends and the next begins: read strictly, before the HTTP library sees a byte.
//!
//! Two servers in a row that disagree on that can be made to take one client's body for another's request. The library is lenient
//! where that is dangerous: it takes a request with both `Content-Length` and `Transfer-Encoding`, or with the same length twice, and
//! tidies it up so that nobody can tell afterwards. So every byte that comes in passes here first. What is refused is everything
//! that a correct client never sends and that somebody could read differently: see [`Violation`].

use std::mem;

/// Follows the framing of one connection's requests. It looks and keeps nothing but an unfinished line.
pub(crate) struct Framing {
    state: State,
    /// The beginning of a line whose end has not come yet.
    unfinished: Vec<u8>,
    longest_line: usize,
}

#[derive(Clone, Copy)]
enum State {
    Start { skipped_a_line: bool },
    Fields(Head),
    Body { left: u64 },
    ChunkSize,
    Chunk { left: u64 },
    ChunkEnd,
    Trailers,
}

/// What the fields so far say of the body.
#[derive(Clone, Copy, Default)]
struct Head {
    http_1_0: bool,
    length: Option<u64>,
    chunked: bool,
}

/// Where in a request the next byte belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    /// Between two requests.
    Boundary,
    Head,
    Body,
}

/// Why a connection is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Violation {
    #[error("a line does not end in CR LF, or has a CR inside")]
    LineEnd,
    #[error("a line is too long")]
    LineLength,
    #[error("there are empty lines before the request")]
    EmptyLines,
    #[error("the request target has a fragment")]
    Fragment,
    #[error("a field is folded over several lines")]
    Folded,
    #[error("the Content-Length is not a plain number")]
    Length,
    #[error("there is more than one Content-Length")]
    SeveralLengths,
    #[error("there is both a Content-Length and a Transfer-Encoding")]
    LengthAndEncoding,
    #[error("the Transfer-Encoding must be exactly `chunked`")]
    Encoding,
    #[error("HTTP/1.0 has no Transfer-Encoding")]
    EncodingInHttp10,
    #[error("a chunk's size is not a plain hexadecimal number")]
    ChunkSize,
    #[error("a chunk is longer than its size")]
    ChunkEnd,
}

/// A violation, and how many of the bytes before it may pass.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub(crate) passing: usize,
    pub(crate) violation: Violation,
}

impl Framing {
    /// For a new connection. No line may be longer than `longest_line`.
    pub(crate) fn new(longest_line: usize) -> Self {
        Self { state: State::Start { skipped_a_line: false }, unfinished: Vec::new(), longest_line }
    }

    pub(crate) fn position(&self) -> Position {
        match self.state {
            State::Start { .. } if self.unfinished.is_empty() => Position::Boundary,
            State::Start { .. } | State::Fields(_) => Position::Head,
            _ => Position::Body,
        }
    }

    /// Looks at the next bytes.
    pub(crate) fn inspect(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match self.state {
                State::Body { left } => {
                    let (taken, left) = take(left, rest);
                    self.state = if left == 0 { State::START } else { State::Body { left } };
                    taken
                }
                State::Chunk { left } => {
                    let (taken, left) = take(left, rest);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk { left } };
                    taken
                }
                _ => self.line(rest).map_err(|violation| Refused { passing: at, violation })?,
            };
        }
        Ok(())
    }

    /// Takes the rest of a line, or what there is of it.
    fn line(&mut self, rest: &[u8]) -> Result<usize, Violation> {
        let end = rest.iter().position(|&byte| byte == b'\n');
        // Whether its end came with it or not: the verdict is the same however the bytes come in.
        if self.unfinished.len() + end.unwrap_or(rest.len()) > self.longest_line {
            return Err(Violation::LineLength);
        }
        let Some(end) = end else {
            self.unfinished.extend_from_slice(rest);
            return Ok(rest.len());
        };
        let line = &rest[..end];
        self.state = if self.unfinished.is_empty() {
            self.state.after(whole(line)?)?
        } else {
            let mut unfinished = mem::take(&mut self.unfinished);
            unfinished.extend_from_slice(line);
            let next = self.state.after(whole(&unfinished)?)?;
            unfinished.clear();
            self.unfinished = unfinished;
            next
        };
        Ok(end + 1)
    }
}

fn take(left: u64, rest: &[u8]) -> (usize, u64) {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
    (taken, left - taken as u64)
}

/// A line without its end, which is CR LF and nothing else.
fn whole(line: &[u8]) -> Result<&[u8], Violation> {
    match line.iter().position(|&byte| byte == b'\r') {
        Some(at) if at + 1 == line.len() => Ok(&line[..at]),
        _ => Err(Violation::LineEnd),
    }
}

impl State {
    const START: Self = Self::Start { skipped_a_line: false };

    /// The state after this line.
    fn after(self, line: &[u8]) -> Result<Self, Violation> {
        match self {
            // Some clients end a body with a line end that they do not count: RFC 9112 asks to be patient with one.
            Self::Start { skipped_a_line: false } if line.is_empty() => {
                Ok(Self::Start { skipped_a_line: true })
            }
            Self::Start { .. } if line.is_empty() => Err(Violation::EmptyLines),
            // The library would drop it silently, and the service get another target than was sent.
            Self::Start { .. } if line.contains(&b'#') => Err(Violation::Fragment),
            Self::Start { .. } => {
                Ok(Self::Fields(Head { http_1_0: line.ends_with(b"HTTP/1.0"), ..Head::default() }))
            }
            Self::Fields(head) if line.is_empty() => Ok(head.body()),
            Self::Fields(head) => head.with(line).map(Self::Fields),
            Self::ChunkSize => match chunk_size(line)? {
                0 => Ok(Self::Trailers),
                left => Ok(Self::Chunk { left }),
            },
            Self::ChunkEnd if line.is_empty() => Ok(Self::ChunkSize),
            Self::ChunkEnd => Err(Violation::ChunkEnd),
            Self::Trailers if line.is_empty() => Ok(Self::START),
            Self::Trailers => not_folded(line).map(|()| self),
            // Bodies are not made of lines.
            Self::Body { .. } | Self::Chunk { .. } => Ok(self),
        }
    }
}

impl Head {
    fn with(mut self, line: &[u8]) -> Result<Self, Violation> {
        not_folded(line)?;
        // A line without a colon, or with a space before it, is refused by the library.
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            return Ok(self);
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10, Violation::Length)?;
            if self.length.replace(length).is_some() {
                return Err(Violation::SeveralLengths);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.http_1_0 {
                return Err(Violation::EncodingInHttp10);
            }
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Violation::Encoding);
            }
            self.chunked = true;
        }
        if self.chunked && self.length.is_some() {
            return Err(Violation::LengthAndEncoding);
        }
        Ok(self)
    }

    fn body(self) -> State {
        match (self.chunked, self.length) {
            (true, _) => State::ChunkSize,
            (false, None | Some(0)) => State::START,
            (false, Some(left)) => State::Body { left },
        }
    }
}

fn not_folded(line: &[u8]) -> Result<(), Violation> {
    if line.starts_with(b" ") || line.starts_with(b"\t") { Err(Violation::Folded) } else { Ok(()) }
}

/// The size, without the extensions that may follow it and have no meaning here.
fn chunk_size(line: &[u8]) -> Result<u64, Violation> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
    number(digits, 16, Violation::ChunkSize)
}

/// Digits and nothing else: no sign, no space, no list. 15 of them are more than any body needs, and cannot overflow.
fn number(digits: &[u8], radix: u32, otherwise: Violation) -> Result<u64, Violation> {
    if digits.is_empty() || digits.len() > 15 {
        return Err(otherwise);
    }
    digits.iter().try_fold(0, |number: u64, &digit| {
        let digit = char::from(digit).to_digit(radix).ok_or(otherwise)?;
        Ok(number * u64::from(radix) + u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 64;

    /// Whole, and in pieces of every size: where the bytes are cut must not matter.
    fn judged(bytes: &[u8]) -> Result<Position, Violation> {
        let mut verdicts = (1..=bytes.len()).map(|size| {
            let mut framing = Framing::new(LONGEST);
            for piece in bytes.chunks(size) {
                framing.inspect(piece).map_err(|refused| refused.violation)?;
            }
            Ok(framing.position())
        });
        let verdict = verdicts.next().unwrap();
        assert!(verdicts.all(|other| other == verdict), "{:?}", String::from_utf8_lossy(bytes));
        verdict
    }

    fn head(fields: &str) -> Result<Position, Violation> {
        judged(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes())
    }

    #[test]
    fn requests_are_followed_to_their_end() {
        for request in [
            "GET / HTTP/1.1\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\ncontent-length:  5 \r\n\r\nhello",
            "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTRANSFER-ENCODING: Chunked\r\n\r\n5;a=b\r\nh\nl\ro\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        ] {
            assert_eq!(judged(request.as_bytes()), Ok(Position::Boundary), "{request:?}");
            let twice = format!("{request}{request}");
            assert_eq!(judged(twice.as_bytes()), Ok(Position::Boundary), "{twice:?}");
        }
    }

    #[test]
    fn the_position_is_known_at_every_byte() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi";
        let (head, body) = (request.len() - 2, request.len());
        for end in 1..head {
            assert_eq!(judged(&request[..end]), Ok(Position::Head), "{end}");
        }
        assert_eq!(judged(&request[..head]), Ok(Position::Body));
        assert_eq!(judged(&request[..head + 1]), Ok(Position::Body));
        assert_eq!(judged(&request[..body]), Ok(Position::Boundary));
    }

    #[test]
    fn ambiguous_lengths_are_refused() {
        let length = "Content-Length: 5\r\n";
        let chunked = "Transfer-Encoding: chunked\r\n";
        assert_eq!(head(&format!("{length}{chunked}")), Err(Violation::LengthAndEncoding));
        assert_eq!(head(&format!("{chunked}{length}")), Err(Violation::LengthAndEncoding));
        assert_eq!(head(&format!("{length}{length}")), Err(Violation::SeveralLengths));
        assert_eq!(head(&format!("{chunked}{chunked}")), Err(Violation::Encoding));
        for value in ["+5", "-5", "5,5", "5, 5", "5 5", "0x5", "", "٥", "5.0", "1000000000000000"] {
            assert_eq!(head(&format!("Content-Length: {value}\r\n")), Err(Violation::Length), "{value}");
        }
        for value in [
            "gzip",
            "gzip, chunked",
            "chunked, gzip",
            "chunked, chunked",
            "x",
            "",
            "chunked;a=b",
            "\"chunked\"",
        ] {
            let field = format!("Transfer-Encoding: {value}\r\n");
            assert_eq!(head(&field), Err(Violation::Encoding), "{value}");
        }
        let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(judged(old), Err(Violation::EncodingInHttp10));
    }

    #[test]
    fn lines_that_others_might_split_elsewhere_are_refused() {
        assert_eq!(judged(b"GET / HTTP/1.1\nHost: a\n\n"), Err(Violation::LineEnd));
        assert_eq!(head("X: a\nContent-Length: 5\r\n"), Err(Violation::LineEnd));
        assert_eq!(head("X: a\rContent-Length: 5\r\n"), Err(Violation::LineEnd));
        assert_eq!(head("X: a\r\n b\r\n"), Err(Violation::Folded));
        assert_eq!(head("X: a\r\n\tb\r\n"), Err(Violation::Folded));
        assert_eq!(judged(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"), Err(Violation::EmptyLines));
        assert_eq!(judged(b"GET /a#b HTTP/1.1\r\n\r\n"), Err(Violation::Fragment));
    }

    #[test]
    fn chunks_are_exactly_as_long_as_they_say() {
        let chunked = |body: &str| {
            judged(format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}").as_bytes())
        };
        for size in ["", " 5", "5 ", "+5", "0x5", "5\n", "g", "1000000000000000"] {
            let verdict = chunked(&format!("{size}\r\nhello\r\n0\r\n\r\n"));
            assert!(
                matches!(verdict, Err(Violation::ChunkSize | Violation::LineEnd)),
                "{size:?}: {verdict:?}"
            );
        }
        assert_eq!(chunked("4\r\nhello\r\n0\r\n\r\n"), Err(Violation::ChunkEnd));
        assert_eq!(chunked("5\r\nhello\n0\r\n\r\n"), Err(Violation::LineEnd));
        assert_eq!(chunked("0\r\nX: a\n\r\n"), Err(Violation::LineEnd));
    }

    #[test]
    fn what_comes_before_a_violation_may_pass() {
        let mut framing = Framing::new(LONGEST);
        let good = "GET / HTTP/1.1\r\n\r\n";
        let bad = format!("{good}POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello");
        let refused = framing.inspect(bad.as_bytes()).unwrap_err();
        assert_eq!(refused.violation, Violation::Length);
        assert_eq!(&bad[..refused.passing], "GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\n");
    }

    #[test]
    fn a_line_is_bounded_whether_its_end_has_come_or_not() {
        let mut framing = Framing::new(LONGEST);
        framing.inspect(&[b'a'; LONGEST]).unwrap();
        assert_eq!(framing.inspect(b"a").unwrap_err().violation, Violation::LineLength);
        let whole = format!("GET /{} HTTP/1.1\r\n", "a".repeat(LONGEST));
        assert_eq!(judged(whole.as_bytes()), Err(Violation::LineLength));
    }
}
