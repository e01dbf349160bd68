//! The body of a request to the admin API: not long, and soon there.

use super::problem::AdminProblem;
use axum::body::{Body, Bytes, to_bytes};
use std::time::Duration;

/// How long it may take. The API serves few requests at once: a client must not hold a place by sending byte by byte.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a body could not be read.
pub(super) enum NotRead {
    /// It broke off, or is longer than this.
    TooLong(usize),
    TooSlow,
}

/// Reads it, up to so many bytes.
pub(super) async fn read(body: Body, most: usize) -> Result<Bytes, NotRead> {
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, most)).await.map_err(|_| NotRead::TooSlow)?;
    read.map_err(|_| NotRead::TooLong(most))
}

impl From<NotRead> for AdminProblem {
    fn from(why: NotRead) -> Self {
        match why {
            NotRead::TooLong(most) => Self::body_too_large(most),
            NotRead::TooSlow => Self::body_too_slow(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    struct NeverComes;

    impl http_body::Body for NeverComes {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        assert!(matches!(read(Body::new(NeverComes), 100).await, Err(NotRead::TooSlow)));
        assert!(matches!(read(Body::from("{}"), 1).await, Err(NotRead::TooLong(1))));
        assert_eq!(read(Body::from("{}"), 2).await.ok(), Some(Bytes::from_static(b"{}")));
    }
}
