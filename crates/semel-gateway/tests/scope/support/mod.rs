//! A service behind a whole gateway, on sockets of their own, and what signs tokens for it.

mod issuer;
mod shop;

pub(crate) use issuer::{AUDIENCE, ISSUER, Issuer, SECRET, key_file, now, public};
pub(crate) use shop::{Answer, Shop};

use axum::Router;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Serves on a port of its own until the test ends.
pub(crate) async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
