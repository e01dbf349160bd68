//! A router on a socket of its own.

use axum::Router;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// Serves for as long as it lives.
pub struct Server {
    pub address: SocketAddr,
    serving: AbortHandle,
}

impl Server {
    pub async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::accepting(listener, |listener| async move { axum::serve(listener, router).await.unwrap() })
    }

    /// Serves as told.
    pub fn accepting<F>(listener: TcpListener, serve: impl FnOnce(TcpListener) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        Self { address, serving: tokio::spawn(serve(listener)).abort_handle() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
