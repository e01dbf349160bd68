//! Where the primary is: found among the hosts of a URL, and found again after a failover.
//!
//! Each new connection is asked who is behind it. Another database system, or a timeline below the highest that was seen, is a server that was left
//! behind by a failover: what it lacks may have been acknowledged. With several hosts all of them are asked: a second one that takes writes means
//! that nobody can say which of the two will stay.

mod hosts;
mod identity;
mod known;

pub(crate) use hosts::addresses;
pub(crate) use identity::{Identity, check_product};
pub(crate) use known::{Known, Misplaced};

use crate::error::{OpenError, explained, may_be_starting};
use hosts::shown;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, PgPool};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a server that refuses connections is tried again: it may be starting at the same time, or another one may be about to be promoted.
const STARTING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How long one that is silent is waited for, at the start and later: a later call has a time limit of its own.
const SILENT_AT_START: Duration = Duration::from_secs(5);
const SILENT: Duration = Duration::from_secs(1);
/// How long the other hosts are waited for once one takes writes.
const OTHERS: Duration = Duration::from_millis(500);

/// The servers that a URL names, and which one is the primary. Clones share what they know.
#[derive(Clone, Debug)]
pub(crate) struct Primary(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    addresses: Vec<PgConnectOptions>,
    /// Whether sessions are the store's own, and may be set up. Behind a pooler they are not.
    own_sessions: bool,
    known: Mutex<Known>,
    /// Of several that look for the primary at once, one does; and what it found, and when.
    finding: tokio::sync::Mutex<Option<(Instant, Found)>>,
    /// Counts the moves from one host to another.
    moves: watch::Sender<u64>,
}

/// The primary, or why no host is one, and what the hosts answered.
type Found = Result<usize, (Misplaced, String)>;

/// A host's answer.
type Answer = Result<(PgConnection, Identity), OpenError>;

impl Primary {
    pub(crate) fn new(addresses: Vec<PgConnectOptions>, own_sessions: bool) -> Self {
        Self(Arc::new(Inner {
            addresses,
            own_sessions,
            known: Mutex::default(),
            finding: tokio::sync::Mutex::default(),
            moves: watch::Sender::new(0),
        }))
    }

    pub(crate) fn has_several_hosts(&self) -> bool {
        self.0.addresses.len() > 1
    }

    /// The address of the host that is believed to be the primary.
    pub(crate) fn address(&self) -> PgConnectOptions {
        let at = self.known().at;
        self.0.addresses.get(at).or_else(|| self.0.addresses.first()).cloned().unwrap_or_default()
    }

    /// How often the primary has moved.
    pub(crate) fn moves(&self) -> watch::Receiver<u64> {
        self.0.moves.subscribe()
    }

    /// The first connection: errors are for people, and a silent server is given some time.
    pub(crate) async fn first_connection(&self) -> Result<PgConnection, OpenError> {
        self.connect_within(SILENT_AT_START).await
    }

    /// A new connection to the primary.
    pub(crate) async fn connect(&self) -> Result<PgConnection, OpenError> {
        self.connect_within(SILENT).await
    }

    async fn connect_within(&self, silent: Duration) -> Result<PgConnection, OpenError> {
        let begun = Instant::now();
        loop {
            let error = match self.try_connect(silent).await {
                Ok(conn) => return Ok(conn),
                Err(error) => error,
            };
            if !error.may_pass() || begun.elapsed() > STARTING {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_connect(&self, silent: Duration) -> Result<PgConnection, OpenError> {
        if !self.has_several_hosts() {
            let (conn, identity) = open(self.address(), self.0.own_sessions, silent).await?;
            // A lone standby is told apart by each statement, and may be promoted.
            self.known().check(0, &identity).map_err(|why| self.misplaced(why, String::new()))?;
            return Ok(conn);
        }
        // The one that was the primary a moment ago. Whether there is a second one by now is looked at all the time beside the requests.
        let at = self.known().confirmed();
        if let Some(at) = at
            && let Ok(Some(conn)) = self.connect_to(at, silent).await
        {
            return Ok(conn);
        }
        self.find(silent).await
    }

    /// Asks all hosts, and connects to the one that takes writes.
    pub(crate) async fn find(&self, silent: Duration) -> Result<PgConnection, OpenError> {
        let begun = Instant::now();
        let mut last = self.0.finding.lock().await;
        // Somebody else has asked meanwhile. Whoever waited does not ask again: a silent host would take each of them half a second.
        if let Some((_, found)) = last.as_ref().filter(|(when, _)| *when > begun) {
            let found = found.clone();
            drop(last);
            let at = found.map_err(|(why, hosts)| self.misplaced(why, hosts))?;
            return self.connect_to(at, silent).await?.ok_or(OpenError::Standby);
        }
        let mut answers = self.ask_all(silent).await;
        let seen: Vec<Option<Identity>> = answers
            .iter()
            .map(|answer| answer.as_ref().and_then(|answer| Some(answer.as_ref().ok()?.1.clone())))
            .collect();
        let chosen = self.known().choose(&seen);
        let hosts = self.reports(&answers);
        let moved = match chosen {
            Ok(moved) => moved,
            Err(why) => {
                // Connections that are open already are not gone on with either.
                let was_settled = self.known().unsettle();
                *last = Some((Instant::now(), Err((why.clone(), hosts.clone()))));
                let error = self.misplaced(why, hosts);
                if was_settled {
                    self.0.moves.send_modify(|moves| *moves += 1);
                    tracing::warn!(%error, "the primary is lost, looking for it");
                }
                return Err(error);
            }
        };
        *last = Some((Instant::now(), Ok(moved.at)));
        if moved.is_new {
            self.0.moves.send_modify(|moves| *moves += 1);
            tracing::info!(host = shown(&self.0.addresses[moved.at]), "found the primary");
        }
        match answers.swap_remove(moved.at) {
            Some(Ok((conn, _))) => Ok(conn),
            _ => Err(OpenError::NoPrimary { hosts }),
        }
    }

    /// A connection to this host, if it may be worked with.
    async fn connect_to(&self, at: usize, silent: Duration) -> Result<Option<PgConnection>, OpenError> {
        let address = self.0.addresses.get(at).cloned().unwrap_or_default();
        let (conn, identity) = open(address, self.0.own_sessions, silent).await?;
        let fits = identity.takes_writes() && self.known().check(at, &identity).is_ok();
        Ok(fits.then_some(conn))
    }

    /// Looks for the primary, and points the pool at it.
    pub(crate) async fn look(&self, pool: &PgPool) -> Result<PgConnection, OpenError> {
        let found = self.find(SILENT).await;
        if found.is_ok() {
            pool.set_connect_options(self.address());
        }
        found
    }

    /// What each host answered, in their order; `None`: nothing yet.
    async fn ask_all(&self, silent: Duration) -> Vec<Option<Answer>> {
        let mut asking = JoinSet::new();
        for (at, address) in self.0.addresses.iter().cloned().enumerate() {
            let own_sessions = self.0.own_sessions;
            asking.spawn(async move { (at, open(address, own_sessions, silent).await) });
        }
        let mut answers: Vec<Option<Answer>> = self.0.addresses.iter().map(|_| None).collect();
        let mut until = Instant::now() + silent + silent;
        while let Ok(Some(answered)) = tokio::time::timeout_at(until, asking.join_next()).await {
            let Ok((at, answer)) = answered else { continue };
            if matches!(&answer, Ok((_, identity)) if identity.takes_writes()) {
                until = until.min(Instant::now() + OTHERS);
            }
            answers[at] = Some(answer);
        }
        answers
    }

    fn reports(&self, answers: &[Option<Answer>]) -> String {
        let report = |(address, answer): (&PgConnectOptions, &Option<Answer>)| match answer {
            Some(Ok((_, identity))) if identity.standby => format!("{} is a standby", shown(address)),
            Some(Ok(_)) => format!("{} is read-only", shown(address)),
            Some(Err(error)) => format!("{}: {error}", shown(address)),
            None => format!("{} does not answer", shown(address)),
        };
        self.0.addresses.iter().zip(answers).map(report).collect::<Vec<_>>().join("; ")
    }

    /// Whether a connection of the pool's is one to the primary.
    pub(crate) async fn check(&self, conn: &mut PgConnection) -> Result<(), OpenError> {
        let identity = Identity::of(conn).await?;
        if self.has_several_hosts() && !identity.takes_writes() {
            return Err(OpenError::Standby);
        }
        let at = self.known().at;
        self.known().check(at, &identity).map_err(|why| self.misplaced(why, String::new()))
    }

    fn misplaced(&self, why: Misplaced, hosts: String) -> OpenError {
        let host = |at: usize| self.0.addresses.get(at).map(shown).unwrap_or_default();
        match why {
            Misplaced::NoPrimary => OpenError::NoPrimary { hosts },
            Misplaced::TwoPrimaries(first, second) => {
                OpenError::TwoPrimaries { first: host(first), second: host(second) }
            }
            Misplaced::AnotherSystem { at, found, expected } => {
                OpenError::AnotherSystem { host: host(at), found, expected }
            }
            Misplaced::LeftBehind { at, found, highest } => {
                OpenError::LeftBehind { host: host(at), found, highest }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A few numbers that are each valid at any time.
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects, sets the session up, and asks who is there.
async fn open(address: PgConnectOptions, own_sessions: bool, silent: Duration) -> Answer {
    let opening = async {
        let mut conn = address.connect().await.map_err(|error| explained(error, &shown(&address)))?;
        set_up(&mut conn, own_sessions).await?;
        let identity = match Identity::of(&mut conn).await {
            Ok(identity) => identity,
            Err(error) => {
                // Not whatever failed, if it is that the server is no PostgreSQL.
                check_product(&mut conn).await?;
                return Err(error.into());
            }
        };
        Ok((conn, identity))
    };
    match tokio::time::timeout(silent, opening).await {
        Ok(answer) => answer,
        Err(_) => Err(OpenError::Silent { address: shown(&address), after: silent }),
    }
}

/// Has the server compile no statement on this connection, and tell its warnings. Among millions of records short statements look long to it, and
/// compiling one takes longer than running it. Behind PgBouncer, where other clients reuse the session, it is left as it is.
pub(crate) async fn set_up(conn: &mut PgConnection, own_sessions: bool) -> Result<(), sqlx::Error> {
    if !own_sessions {
        return Ok(());
    }
    match sqlx::raw_sql("SET jit = off; SET client_min_messages = warning").execute(conn).await {
        // A server that does not know the setting does not compile.
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

impl OpenError {
    /// Whether the next attempt, a moment later, may go well.
    fn may_pass(&self) -> bool {
        match self {
            Self::ConnectionRefused { .. } | Self::NoPrimary { .. } => true,
            Self::Starting(_) => true,
            Self::Sqlx(error) => may_be_starting(error),
            _ => false,
        }
    }
}
