//! The way to a database: a proxy that can refuse, fall silent, and let through again; and counts what is asked for.

use super::empty::Database;
use super::statements::{Following, Statements};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of what is sent that way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// It gets through.
    Open,
    /// Connections are cut, and new ones too: the server was stopped.
    Refused,
    /// It waits, and nobody hears of it: the network is gone. It arrives once the way is open again.
    Silent,
    /// It gets through, and takes so long there and back: the server is in another region.
    Far(Duration),
}

impl Passing {
    fn lets_through(&self) -> bool {
        matches!(self, Self::Open | Self::Far(_))
    }
}

pub struct Way {
    /// The database's address by this way.
    pub url: String,
    passing: watch::Sender<Passing>,
    statements: Statements,
}

impl Way {
    pub async fn to(database: &Database) -> Self {
        let server = database.authority().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let url = database.url().replacen(&server, &address.to_string(), 1);
        let (passing, state) = watch::channel(Passing::Open);
        let statements = Statements::default();
        let counting = statements.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(connection(stream, server.clone(), state.clone(), counting.on_a_connection()));
            }
        });
        Self { url, passing, statements }
    }

    /// How many statements were sent that way.
    pub fn statements(&self) -> usize {
        self.statements.count()
    }

    pub fn becomes(&self, passing: Passing) {
        self.passing.send(passing).unwrap();
    }
}

async fn connection(
    client: TcpStream,
    server: String,
    state: watch::Receiver<Passing>,
    mut following: Following,
) {
    let mut cut = state.clone();
    let exchange = async {
        if state.clone().wait_for(Passing::lets_through).await.is_err() {
            return;
        }
        let server = TcpStream::connect(&server).await.unwrap();
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::select! {
            () = pass(from_client, to_server, state.clone(), |piece| following.sees(piece)) => {}
            () = pass(from_server, to_client, state, |_| ()) => {}
        }
    };
    tokio::select! {
        biased;
        _ = cut.wait_for(|passing| *passing == Passing::Refused) => {}
        () = exchange => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<Passing>,
    mut see: impl FnMut(&[u8]),
) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        see(&piece[..count]);
        let Ok(passing) = state.wait_for(Passing::lets_through).await.map(|passing| *passing) else { return };
        if let Passing::Far(there_and_back) = passing {
            tokio::time::sleep(there_and_back / 2).await;
        }
        if to.write_all(&piece[..count]).await.is_err() {
            return;
        }
    }
}
