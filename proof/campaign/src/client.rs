//! One request on a connection of its own.

use crate::config::AUTHORIZATION;
use crate::log::Answer;
use crate::outcome::Outcome;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// How long a client waits for one answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: String,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// Nobody was there: nothing was sent.
    Unconnected,
    /// It was sent, as a whole or in part.
    Broken,
}

/// Sends it and waits for the answer, for `patience` at most.
pub(crate) async fn call(to: SocketAddr, call: Call<'_>, patience: Duration) -> Result<Answer, Failed> {
    let connecting = tokio::time::timeout(patience, TcpStream::connect(to)).await;
    let Ok(Ok(stream)) = connecting else { return Err(Failed::Unconnected) };
    tokio::time::timeout(patience, exchange(to, stream, call)).await.ok().flatten().ok_or(Failed::Broken)
}

async fn exchange(to: SocketAddr, stream: TcpStream, call: Call<'_>) -> Option<Answer> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let driving = tokio::spawn(connection);
    let mut request = Request::builder().method(call.method).uri(call.path).header("host", to.to_string());
    for (name, value) in call.headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(call.body))).ok()?;
    let answer = read(sender.send_request(request).await.ok()?).await;
    driving.abort();
    answer
}

pub(crate) async fn read(response: Response<Incoming>) -> Option<Answer> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    let header = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
    Some(Answer {
        status: parts.status.as_u16(),
        replayed: parts.headers.contains_key("idempotent-replayed"),
        content_type: header("content-type").unwrap_or_default(),
        operation_id: header("semel-operation-id"),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// Sends it and is gone.
pub(crate) async fn send_and_hang_up(to: SocketAddr, call: Call<'_>) {
    let Ok(mut stream) = TcpStream::connect(to).await else { return };
    let mut text = format!(
        "{} {} HTTP/1.1\r\nhost: {to}\r\ncontent-length: {}\r\n",
        call.method,
        call.path,
        call.body.len()
    );
    for (name, value) in call.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(&call.body);
    let _ = stream.write_all(text.as_bytes()).await;
    // A moment, so that it is read before the connection is seen to be closed: what is to be cut off is the wait.
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// A document, as an operator asks for it.
pub(crate) async fn get(at: SocketAddr, path: &str) -> Outcome<Value> {
    let headers = &[("authorization", AUTHORIZATION)];
    let question = Call { method: "GET", path, headers, body: String::new() };
    let answer = call(at, question, PATIENCE).await.map_err(|failed| format!("{path}: {failed:?}"))?;
    if answer.status != 200 {
        return Err(format!("{path}: {} {}", answer.status, answer.body).into());
    }
    Ok(answer.json())
}
