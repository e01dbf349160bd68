//! How a body is compared by recipes of version 2: the media type, and the parts of a multipart form, as plainly as possible.

/// A media type in lower case, and its parameters.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct MediaType {
    pub(crate) essence: String,
    pub(crate) parameters: Vec<(String, Vec<u8>)>,
}

const TOKEN: &str = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

impl MediaType {
    /// Reads a header's value, character by character; `None` where others might read something else.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut reader = Reader { text: line.iter().map(|byte| char::from(*byte)).collect(), at: 0 };
        reader.spaces();
        let kind = reader.while_in(TOKEN);
        reader.expect('/')?;
        let subtype = reader.while_in(TOKEN);
        if kind.is_empty() || subtype.is_empty() {
            return None;
        }
        let mut parameters: Vec<(String, Vec<u8>)> = Vec::new();
        loop {
            reader.spaces();
            if reader.peek().is_none() {
                break;
            }
            reader.expect(';')?;
            reader.spaces();
            if matches!(reader.peek(), None | Some(';')) {
                continue;
            }
            let name = reader.while_in(TOKEN).to_lowercase();
            reader.expect('=')?;
            let value = if reader.peek() == Some('"') { reader.quoted()? } else { reader.bare()? };
            if name.is_empty() || name.contains('*') || parameters.iter().any(|(other, _)| *other == name) {
                return None;
            }
            parameters.push((name, value.into_iter().map(|character| character as u8).collect()));
        }
        let essence = format!("{kind}/{subtype}").to_lowercase();
        (parameters.len() <= 16).then_some(Self { essence, parameters })
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.parameters.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_slice())
    }

    pub(crate) fn is_utf_8(&self) -> bool {
        let charset = self.parameter("charset").map(<[u8]>::to_ascii_lowercase);
        charset.is_none_or(|charset| charset == b"utf-8" || charset == b"utf8")
    }

    pub(crate) fn boundary(&self) -> Option<&[u8]> {
        let boundary = self.parameter("boundary")?;
        let fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(byte);
        (!boundary.is_empty() && boundary.len() <= 70 && boundary.iter().all(fit)).then_some(boundary)
    }
}

struct Reader {
    text: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, character: char) -> Option<()> {
        (self.peek()? == character).then(|| self.at += 1)
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    fn while_in(&mut self, all: &str) -> String {
        let begin = self.at;
        while self.peek().is_some_and(|character| all.contains(character)) {
            self.at += 1;
        }
        self.text[begin..self.at].iter().collect()
    }

    fn quoted(&mut self) -> Option<Vec<char>> {
        self.at += 1;
        let mut value = Vec::new();
        loop {
            let character = self.peek()?;
            self.at += 1;
            match character {
                '"' => return Some(value),
                '\\' => {
                    value.push(self.peek()?);
                    self.at += 1;
                }
                other => value.push(other),
            }
        }
    }

    fn bare(&mut self) -> Option<Vec<char>> {
        let mut value = Vec::new();
        while let Some(character) = self.peek().filter(|character| !"; \t".contains(*character)) {
            if !('!'..='~').contains(&character) || "\"\\,".contains(character) {
                return None;
            }
            value.push(character);
            self.at += 1;
        }
        (!value.is_empty()).then_some(value)
    }
}

/// A part's header and content.
pub(crate) type Part = (Vec<u8>, Vec<u8>);

/// The parts of a multipart form, and whether its last line ends; `None` where others might find other parts.
pub(crate) fn parts(boundary: &[u8], body: &[u8]) -> Option<(Vec<Part>, bool)> {
    let delimiter = [b"--", boundary].concat();
    let begins: Vec<usize> = (0..body.len()).filter(|at| body[*at..].starts_with(&delimiter)).collect();
    if begins.first() != Some(&0) {
        return None;
    }
    let mut parts = Vec::new();
    for pair in begins.windows(2) {
        let between = body.get(pair[0] + delimiter.len()..pair[1])?;
        let part = between.strip_prefix(b"\r\n")?.strip_suffix(b"\r\n")?;
        let empty_line = if part.starts_with(b"\r\n") { 0 } else { position(part, b"\r\n\r\n")? + 2 };
        let header = &part[..empty_line.saturating_sub(2)];
        let text = String::from_utf8_lossy(header).into_owned();
        if text.split("\r\n").any(|line| line.contains(['\r', '\n'])) {
            return None;
        }
        parts.push((header.to_vec(), part[empty_line + 2..].to_vec()));
    }
    let rest = &body[begins.last()? + delimiter.len()..];
    match rest {
        b"--" => Some((parts, false)),
        b"--\r\n" => Some((parts, true)),
        _ => None,
    }
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    (0..text.len()).find(|at| text[*at..].starts_with(wanted))
}

/// The host in lower case and without its port, all loopback names as one.
pub(crate) fn host(host: &str) -> String {
    let host = host.trim();
    let name = match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (name.ends_with(']') || !name.contains(':')) =>
        {
            name
        }
        _ => host,
    };
    let name = name.to_ascii_lowercase();
    let v4 = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&name);
    let is_v4 = v4.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.octets()[0] == 127);
    let v6 = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_v6 = v6.and_then(|name| name.parse::<std::net::Ipv6Addr>().ok()).is_some_and(|address| {
        address == std::net::Ipv6Addr::LOCALHOST
            || address.to_ipv4_mapped().is_some_and(|address| address.octets()[0] == 127)
    });
    if name == "localhost" || is_v4 || is_v6 { "localhost".into() } else { name }
}
