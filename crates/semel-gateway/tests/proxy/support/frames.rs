//! HTTP/2 frame by frame: a service that does what no library would.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const ACK: u8 = 1;

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;

/// `:status: 200`, as HPACK has it.
pub(crate) const OK: &[u8] = &[0x88];

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// Goes away: what came after `last` was not looked at.
pub(crate) fn goes_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// What a client begins with.
pub(crate) fn greeting() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// The next frame: its kind, its flags, its stream and what is in it; none at the end.
pub(crate) async fn next_frame(stream: &mut TcpStream) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let length = u32::from_be_bytes([0, a, b, c]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((kind, flags, u32::from_be_bytes(id), payload))
}

/// How a service answers: frames, and whether it closes after them.
pub(crate) type Script = dyn Fn(usize, u32) -> (Vec<u8>, bool) + Send + Sync;

/// A service that answers the n-th whole request, on stream `id`, as its script says.
pub(crate) struct Scripted {
    pub(crate) port: u16,
    requests: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) async fn start(
        script: impl Fn(usize, u32) -> (Vec<u8>, bool) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let (counted, script): (_, Arc<Script>) = (Arc::clone(&requests), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&counted), Arc::clone(&script)));
            }
        });
        Self { port, requests }
    }

    /// How many whole requests have come.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, requests: Arc<AtomicUsize>, script: Arc<Script>) -> Option<()> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await.ok()?;
    assert_eq!(preface, PREFACE);
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()?;
    loop {
        let (kind, flags, id, payload) = next_frame(&mut stream).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await.ok()?,
            PING if flags & ACK == 0 => stream.write_all(&frame(PING, ACK, 0, &payload)).await.ok()?,
            HEADERS | DATA if flags & END_STREAM != 0 => {
                let number = requests.fetch_add(1, Ordering::SeqCst) + 1;
                let (frames, closes) = script(number, id);
                stream.write_all(&frames).await.ok()?;
                if closes {
                    return None;
                }
            }
            _ => {}
        }
    }
}

/// A whole answer.
pub(crate) fn answer(stream: u32, body: &[u8]) -> Vec<u8> {
    [frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, END_STREAM, stream, body)].concat()
}
