//! The network between clients, gateways, service and provider: it loses, delays and cuts, one way or both ways. Messages overtake each other, as
//! each takes as long as is drawn for it.

use crate::dice::Dice;
use crate::fault::Fault;
use crate::faults::Faults;
use crate::trace::{Place, Trace};
use semel::OperationId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A process, as the network knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Host {
    Clients,
    Gateway(usize),
    Service,
    Provider,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clients => f.write_str("clients"),
            Self::Gateway(number) => write!(f, "gateway {number}"),
            Self::Service => f.write_str("service"),
            Self::Provider => f.write_str("provider"),
        }
    }
}

/// Whose message it is: so that its lines are found with the others of that operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// The operation of this number in the plan.
    Number(u32),
    Id(OperationId),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "#{number}"),
            Self::Id(id) => id.fmt(f),
        }
    }
}

/// The way of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) from: Host,
    pub(crate) to: Host,
    pub(crate) about: About,
}

impl Way {
    pub(crate) fn new(from: Host, to: Host, about: About) -> Self {
        Self { from, to, about }
    }

    fn back(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.about, self.from, self.to)
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoAnswer {
    /// There was no connection: nothing was sent, for certain.
    NotSent,
    /// Nobody can say what became of it.
    Silence,
}

/// Whoever serves a message broke the connection.
pub(crate) struct Broken;

pub(crate) struct Network {
    faults: Arc<Faults>,
    dice: Dice,
    trace: Arc<Trace>,
    /// Which way is cut, and until when.
    cuts: Mutex<BTreeMap<(Host, Host), Instant>>,
}

impl Network {
    pub(crate) fn new(faults: Arc<Faults>, dice: Dice, trace: Arc<Trace>) -> Self {
        Self { faults, dice, trace, cuts: Mutex::default() }
    }

    /// Cuts one way.
    pub(crate) fn cut(&self, from: Host, to: Host, span: Duration) {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner).insert((from, to), Instant::now() + span);
    }

    fn is_cut(&self, Way { from, to, .. }: Way) -> bool {
        let cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        cuts.get(&(from, to)).is_some_and(|until| *until > Instant::now()) && !self.faults.are_healed()
    }

    /// Sends a message, has it served on a task of its own, and waits for the answer no longer than `patience`. The message is served whether or not
    /// anybody waits.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        way: Way,
        patience: Duration,
        serve: impl Future<Output = Result<T, Broken>> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        if self.faults.strikes(Fault::Refused) {
            self.pause().await;
            self.trace.note(Place::Faults, format_args!("{way}: connection refused"));
            return Err(NoAnswer::NotSent);
        }
        let is_lost = self.faults.strikes(Fault::MessageLost) || self.is_cut(way);
        if is_lost {
            self.trace.note(Place::Faults, format_args!("{way}: message lost"));
            tokio::time::sleep(patience).await;
            return Err(NoAnswer::Silence);
        }
        let (reply, answer) = oneshot::channel();
        let network = Arc::clone(self);
        tokio::spawn(async move {
            network.travel(way).await;
            let Ok(served) = serve.await else { return };
            if network.faults.strikes(Fault::AnswerLost) || network.is_cut(way.back()) {
                network.trace.note(Place::Faults, format_args!("{}: answer lost", way.back()));
                // The connection is open still, as far as the other side knows.
                tokio::time::sleep(patience).await;
                return;
            }
            network.travel(way.back()).await;
            let _ = reply.send(served);
        });
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(served)) => Ok(served),
            Ok(Err(_)) | Err(_) => Err(NoAnswer::Silence),
        }
    }

    async fn travel(&self, way: Way) {
        if self.faults.strikes(Fault::MessageLate) {
            let late = self.dice.millis(500, 8_000);
            self.trace.note(Place::Faults, format_args!("{way}: late by {} ms", late.as_millis()));
            tokio::time::sleep(late).await;
        }
        self.pause().await;
    }

    async fn pause(&self) {
        let pause = if self.dice.chance(0.02) { self.dice.millis(5, 150) } else { self.dice.millis(0, 4) };
        if pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(pause).await;
        }
    }
}
