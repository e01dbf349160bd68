//! Requests over HTTP/2: many streams share the one connection that there is to each gateway, and break off with it.

use crate::client::{Call, Failed, read};
use crate::log::Answer;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// The way to one gateway.
pub(crate) struct Connection {
    to: SocketAddr,
    open: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Connection {
    pub(crate) fn new(to: SocketAddr) -> Self {
        Self { to, open: Mutex::default() }
    }

    /// Sends it and waits for the answer, for `patience` at most. Whoever is dropped resets its stream and nothing else.
    pub(crate) async fn call(&self, call: Call<'_>, patience: Duration) -> Result<Answer, Failed> {
        let sender = tokio::time::timeout(patience, self.sender()).await.ok().flatten();
        let mut sender = sender.ok_or(Failed::Unconnected)?;
        let mut request =
            Request::builder().method(call.method).uri(format!("http://{}{}", self.to, call.path));
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(call.body))).map_err(|_| Failed::Unconnected)?;
        let exchange = async { read(sender.send_request(request).await.ok()?).await };
        tokio::time::timeout(patience, exchange).await.ok().flatten().ok_or(Failed::Broken)
    }

    /// The connection; a new one if the last has ended.
    async fn sender(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut open = self.open.lock().await;
        if let Some(sender) = open.as_ref().filter(|sender| !sender.is_closed()) {
            return Some(sender.clone());
        }
        let stream = TcpStream::connect(self.to).await.ok()?;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        *open = Some(sender.clone());
        Some(sender)
    }
}
