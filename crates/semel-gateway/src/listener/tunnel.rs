//! A connection that has changed its protocol: bytes both ways, until one side ends, or nothing comes for too long.

use super::told_to_stop;
use bytes::Bytes;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::sync::watch;

/// Something to read from and to write to.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The service's end.
pub(crate) struct OtherEnd {
    pub(crate) stream: Box<dyn Duplex>,
    /// What came after the head of its answer.
    pub(crate) early: Bytes,
    /// How many bytes have passed, either way.
    pub(crate) passed: Box<dyn Fn() -> u64 + Send + Sync>,
    /// After how long without one the tunnel is closed.
    pub(crate) give_up: Duration,
}

/// Passes bytes on until the end; when everything is to stop, for `grace` more.
pub(super) async fn run(
    mut client: impl Duplex,
    early: Bytes,
    mut other: OtherEnd,
    mut stopping: watch::Receiver<bool>,
    grace: Duration,
) -> io::Result<()> {
    let OtherEnd { stream, early: others_early, passed, give_up } = &mut other;
    let passing = async {
        stream.write_all(&early).await?;
        client.write_all(others_early).await?;
        client.flush().await?;
        copy_bidirectional(&mut client, stream).await.map(drop)
    };
    let silence = async {
        loop {
            let before = passed();
            tokio::time::sleep(*give_up).await;
            if passed() == before {
                return;
            }
        }
    };
    let stopped = async {
        told_to_stop(&mut stopping).await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        ended = passing => ended,
        () = silence => Err(io::ErrorKind::TimedOut.into()),
        () = stopped => Ok(()),
    }
}
