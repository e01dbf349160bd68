//! A network between a gateway and its database that can be cut, slowed down, or go deaf one way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the network does at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Weather {
    Fair,
    /// Every packet comes late.
    Slow(Duration),
    /// What the database says is lost: commits happen, and nobody hears of them.
    DeafToAnswers,
    /// Nothing gets through, and what was connected is cut off.
    Cut,
}

#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    weather: Arc<watch::Sender<Weather>>,
}

impl Proxy {
    pub(crate) async fn before(server: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (weather, watching) = watch::channel(Weather::Fair);
        let this = Self { address: listener.local_addr()?, weather: Arc::new(weather) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *watching.borrow() != Weather::Cut {
                    tokio::spawn(connect(client, server, watching.clone()));
                }
            }
        });
        Ok(this)
    }

    pub(crate) fn turn(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

async fn connect(client: TcpStream, server: SocketAddr, weather: watch::Receiver<Weather>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = weather.clone();
    tokio::select! {
        () = pass(from_client, to_server, weather.clone(), false) => {}
        () = pass(from_server, to_client, weather, true) => {}
        _ = cut.wait_for(|weather| *weather == Weather::Cut) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    weather: watch::Receiver<Weather>,
    answers: bool,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let now = *weather.borrow();
        match now {
            Weather::Slow(by) => tokio::time::sleep(by).await,
            Weather::DeafToAnswers if answers => {
                // Once something was lost, the rest of the conversation makes no sense.
                let mut weather = weather.clone();
                let _ = weather.wait_for(|weather| *weather != Weather::DeafToAnswers).await;
                return;
            }
            _ => {}
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
