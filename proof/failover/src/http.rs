//! HTTP/1.1 as far as it is needed: one request, one answer with a length.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer, or a request.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The first line.
    pub(crate) head: String,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// Sends a request over a connection of its own.
pub(crate) fn send(
    address: SocketAddr,
    line: &str,
    fields: &[(&str, &str)],
    body: &str,
    patience: Duration,
) -> io::Result<Message> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut request = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        request += &format!("{name}: {value}\r\n");
    }
    (&stream).write_all(format!("{request}\r\n{body}").as_bytes())?;
    read(&mut BufReader::new(stream))
}

/// Reads a request or an answer.
pub(crate) fn read(from: &mut BufReader<TcpStream>) -> io::Result<Message> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut lines = lines.into_iter();
    let head = lines.next().unwrap_or_default();
    let field = |line: String| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    let fields: BTreeMap<String, String> = lines.filter_map(field).collect();
    let mut body = Vec::new();
    match fields.get("content-length").and_then(|length| length.parse().ok()) {
        Some(length) => {
            body.resize(length, 0);
            from.read_exact(&mut body)?;
        }
        // An answer without a length ends with its connection.
        None if head.starts_with("HTTP/") => drop(from.read_to_end(&mut body)?),
        None => {}
    }
    Ok(Message { head, fields, body })
}
