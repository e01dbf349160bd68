//! A network that cuts a connection at the worst moment: once, when the client sends a message of a chosen kind. And counts what passes.

use super::statements::{Following, Statements};
use super::transactions::{FollowingAnswers, Transactions};
use sqlx::postgres::PgConnectOptions;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Which message is cut off, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// A prepared statement reaches the server; its answer, commit and all, does not reach the client.
    AnswerOfStatement,
    /// A prepared statement does not reach the server.
    Statement,
    /// A COMMIT reaches the server; its answer does not reach the client.
    AnswerOfCommit,
    /// A COMMIT does not reach the server.
    Commit,
}

impl Cut {
    fn is_at(self, message: &[u8]) -> bool {
        match self {
            // "Bind", with which the execution of a prepared statement begins.
            Self::AnswerOfStatement | Self::Statement => message.first() == Some(&b'B'),
            Self::AnswerOfCommit | Self::Commit => {
                message.first() == Some(&b'Q') && message[5..].starts_with(b"COMMIT")
            }
        }
    }
}

/// Between a client and the server.
#[derive(Clone)]
pub struct Proxy {
    port: u16,
    cut: Arc<Mutex<Option<Cut>>>,
    statements: Statements,
    transactions: Transactions,
}

impl Proxy {
    /// A proxy before the server of `options`, and how to connect by way of it.
    pub async fn before(options: PgConnectOptions) -> (Self, PgConnectOptions) {
        let proxy = Self::to(options.get_host().into(), options.get_port()).await;
        let options = options.host("127.0.0.1").port(proxy.port);
        (proxy, options)
    }

    async fn to(host: String, port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let (statements, transactions) = (Statements::default(), Transactions::default());
        let proxy = Self { port: own_port, cut: Arc::default(), statements, transactions };
        let counting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((host.as_str(), port)).await.unwrap();
                let cut = counting.cut.clone();
                let asked = counting.statements.on_a_connection();
                let answered = counting.transactions.on_a_connection();
                tokio::spawn(pass(client, server, cut, asked, answered));
            }
        });
        proxy
    }

    /// Cuts off the next message of this kind.
    pub fn cut_next(&self, cut: Cut) {
        *self.cut.lock().unwrap() = Some(cut);
    }

    /// How many statements have passed.
    pub fn statements(&self) -> usize {
        self.statements.count()
    }

    /// How many transactions have ended, each statement outside of one counted as one.
    pub fn transactions(&self) -> usize {
        self.transactions.count()
    }

    pub fn has_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }
}

/// Whether answers still pass, and whether one has come since they do not.
#[derive(Default)]
struct Answers {
    stopped: AtomicBool,
    heard: Notify,
}

async fn pass(
    client: TcpStream,
    server: TcpStream,
    cut: Arc<Mutex<Option<Cut>>>,
    asked: Following,
    answered: FollowingAnswers,
) {
    let (mut from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answers = Arc::new(Answers::default());
    let passing = tokio::spawn(pass_answers(from_server, to_client, answers.clone(), answered));
    let _ended = pass_requests(&mut from_client, to_server, &cut, &answers, asked).await;
    // Both connections end with their halves.
    passing.abort();
}

async fn pass_answers(
    mut from_server: OwnedReadHalf,
    mut to_client: OwnedWriteHalf,
    answers: Arc<Answers>,
    mut following: FollowingAnswers,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
        following.sees(&buffer[..length]);
        if answers.stopped.load(Ordering::SeqCst) {
            answers.heard.notify_one();
        } else if to_client.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// Passes the client's messages on until one is to be cut off.
async fn pass_requests(
    from_client: &mut OwnedReadHalf,
    mut to_server: OwnedWriteHalf,
    cut: &Mutex<Option<Cut>>,
    answers: &Answers,
    mut following: Following,
) -> Option<()> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = from_client.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        let message = &buffer[..length];
        following.sees(message);
        let due = {
            let mut cut = cut.lock().unwrap();
            if cut.is_some_and(|cut| cut.is_at(message)) { cut.take() } else { None }
        };
        match due {
            None => to_server.write_all(message).await.ok()?,
            Some(Cut::Statement | Cut::Commit) => return None,
            Some(Cut::AnswerOfStatement | Cut::AnswerOfCommit) => {
                answers.stopped.store(true, Ordering::SeqCst);
                to_server.write_all(message).await.ok()?;
                // The server answers after the commit: what it has to say is said, and nobody hears it.
                answers.heard.notified().await;
                return None;
            }
        }
    }
}
