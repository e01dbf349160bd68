//! The servers that tests share: one of each kind, started when it is first asked for.
//!
//! Where a test's server comes from, in this order:
//! 1. a variable that names one, such as [`POSTGRES_URL`]: whoever has a server for the purpose sets it;
//! 2. the [`Host`] that [`HOST`] names: `cargo xtask test` is one, and all test processes of its run share its servers;
//! 3. the test process itself, which starts its own.
//!
//! Servers of a host and of a test process end with it, also when it is killed: see [`Directory`](super::Directory).

use super::dynoxide::Dynoxide;
use super::nats::Nats;
use super::postgres::{Cluster, PgBouncer};
use super::rabbitmq::RabbitMq;
use super::redis::Redis;
use super::variables::{DYNAMODB_URL, HOST, NATS_URL, PGBOUNCER_URL, POSTGRES_URL, RABBITMQ_URL, REDIS_URL};
use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

/// Room for many tests at once, and no checkpoint in their way.
const POSTGRES_SETTINGS: [&str; 3] =
    ["max_connections = 300", "max_wal_size = 4GB", "checkpoint_timeout = 1h"];

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// PgBouncer in transaction mode, in front of the same PostgreSQL.
    PgBouncer,
    /// NATS with JetStream.
    Nats,
    /// RabbitMQ, which takes ten seconds to start.
    RabbitMq,
    /// Redis.
    Redis,
    /// dynoxide, with the interface of DynamoDB.
    DynamoDb,
}

impl Server {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Postgres, Self::PgBouncer, Self::Nats, Self::RabbitMq, Self::Redis, Self::DynamoDb];

    /// The variable that names one.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Postgres => POSTGRES_URL,
            Self::PgBouncer => PGBOUNCER_URL,
            Self::Nats => NATS_URL,
            Self::RabbitMq => RABBITMQ_URL,
            Self::Redis => REDIS_URL,
            Self::DynamoDb => DYNAMODB_URL,
        }
    }

    /// The URL of the server for this process. Once this returns, the server answers.
    ///
    /// # Panics
    /// If no server is running and none can be started. The message says what to do.
    #[must_use]
    #[track_caller]
    #[allow(clippy::panic, reason = "a test without its server has failed")]
    pub fn url(self) -> String {
        static OWN: Servers = Servers::new();
        let url = match (given(self), env::var(HOST)) {
            (Some(url), _) => url,
            (None, Ok(host)) => ask(&host, self),
            (None, Err(_)) => OWN.url(self),
        };
        url.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// What the variables say of this kind.
fn given(server: Server) -> Option<Result<String, String>> {
    if let Ok(url) = env::var(server.variable()) {
        return Some(Ok(url));
    }
    let half = server == Server::PgBouncer && env::var_os(POSTGRES_URL).is_some();
    half.then(|| {
        Err(format!(
            "{POSTGRES_URL} is set and {PGBOUNCER_URL} is not: name a PgBouncer in transaction mode in front of the same server, \
             or unset both"
        ))
    })
}

type Started<S> = OnceLock<Result<S, String>>;

/// One server of each kind, none of them started yet.
#[derive(Debug)]
struct Servers {
    postgres: Started<Cluster>,
    pgbouncer: Started<PgBouncer>,
    nats: Started<Nats>,
    rabbitmq: Started<RabbitMq>,
    redis: Started<Redis>,
    dynamodb: Started<Dynoxide>,
}

impl Servers {
    const fn new() -> Self {
        Self {
            postgres: OnceLock::new(),
            pgbouncer: OnceLock::new(),
            nats: OnceLock::new(),
            rabbitmq: OnceLock::new(),
            redis: OnceLock::new(),
            dynamodb: OnceLock::new(),
        }
    }

    fn url(&self, server: Server) -> Result<String, String> {
        let url = match server {
            Server::Postgres => self.postgres().map(|cluster| cluster.url("postgres")),
            Server::PgBouncer => {
                let start = || PgBouncer::start(self.postgres().map_err(Clone::clone)?);
                self.pgbouncer.get_or_init(start).as_ref().map(PgBouncer::url)
            }
            Server::Nats => self.nats.get_or_init(Nats::start).as_ref().map(Nats::url),
            Server::DynamoDb => self.dynamodb.get_or_init(Dynoxide::start).as_ref().map(Dynoxide::url),
            Server::RabbitMq => {
                let start = || {
                    let mut broker = RabbitMq::begin()?;
                    broker.ready()?;
                    Ok(broker)
                };
                self.rabbitmq.get_or_init(start).as_ref().map(RabbitMq::url)
            }
            Server::Redis => self.redis.get_or_init(Redis::start).as_ref().map(Redis::url),
        };
        url.map_err(Clone::clone)
    }

    fn postgres(&self) -> Result<&Cluster, &String> {
        self.postgres.get_or_init(|| Cluster::start(&POSTGRES_SETTINGS)).as_ref()
    }
}

/// Starts servers for other processes, each when it is first asked for. They end with this value.
#[derive(Debug)]
pub struct Host {
    address: SocketAddr,
    servers: Arc<Servers>,
    ending: Arc<AtomicBool>,
    answering: Option<JoinHandle<()>>,
}

impl Host {
    /// Begins to listen. Nothing is started yet.
    ///
    /// # Errors
    /// It has no port to listen on.
    pub fn start() -> Result<Self, String> {
        let listening = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let (listener, address) = listening.map_err(|error| format!("no port to listen on: {error}"))?;
        let (servers, ending) = (Arc::new(Servers::new()), Arc::new(AtomicBool::new(false)));
        let answering = thread::spawn({
            let (servers, ending) = (Arc::clone(&servers), Arc::clone(&ending));
            move || answer_all(&listener, &servers, &ending)
        });
        Ok(Self { address, servers, ending, answering: Some(answering) })
    }

    /// The URL of the server that its variable names, or of one of this host's. Once this returns, it answers.
    ///
    /// # Errors
    /// It could not be started: what it said.
    pub fn url(&self, server: Server) -> Result<String, String> {
        given(server).unwrap_or_else(|| self.servers.url(server))
    }

    /// What other processes are told, so that their servers are this host's.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![(HOST, self.address.to_string())]
    }

    /// As [`settings`](Self::settings), for processes that look at the servers' own variables: these are started now.
    ///
    /// # Errors
    /// One could not be started: what it said.
    pub fn settings_of(&self, servers: &[Server]) -> Result<Vec<(&'static str, String)>, String> {
        let urls = servers.iter().map(|server| Ok((server.variable(), self.url(*server)?)));
        Ok(self.settings().into_iter().chain(urls.collect::<Result<Vec<_>, String>>()?).collect())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // Wakes the thread that listens.
        drop(TcpStream::connect(self.address));
        let _ended = self.answering.take().map(JoinHandle::join);
    }
}

/// Each question in a thread of its own: RabbitMQ takes ten seconds, and nobody else is to wait for it.
fn answer_all(listener: &TcpListener, servers: &Arc<Servers>, ending: &AtomicBool) {
    let mut answering = Vec::new();
    for stream in listener.incoming().map_while(Result::ok) {
        if ending.load(Ordering::SeqCst) {
            break;
        }
        let servers = Arc::clone(servers);
        answering.push(thread::spawn(move || answer(stream, &servers)));
        answering.retain(|thread| !thread.is_finished());
    }
    for thread in answering {
        let _answered = thread.join();
    }
}

/// The question is a variable's name on a line of its own. The answer is `+` and a URL, or `-` and the reason why there is no server.
fn answer(mut stream: TcpStream, servers: &Servers) {
    let mut question = String::new();
    let read = BufReader::new(&stream).read_line(&mut question);
    let asked = Server::ALL.into_iter().find(|server| server.variable() == question.trim());
    // Whoever has gone needs no answer.
    let _told = match asked.filter(|_| read.is_ok()).map(|server| servers.url(server)) {
        Some(Ok(url)) => write!(stream, "+{url}"),
        Some(Err(error)) => write!(stream, "-{error}"),
        None => write!(stream, "-no such server: {question}"),
    };
}

/// Asks a host for a server's URL.
fn ask(host: &str, server: Server) -> Result<String, String> {
    let asking = || {
        let mut stream = TcpStream::connect(host)?;
        writeln!(stream, "{}", server.variable())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = asking()
        .map_err(|error: std::io::Error| format!("{HOST} names {host}, which does not answer: {error}"))?;
    match answer.split_at_checked(1) {
        Some(("+", url)) => Ok(url.to_owned()),
        Some(("-", error)) => Err(error.to_owned()),
        _ => Err(format!("{HOST} names {host}, which broke off")),
    }
}
