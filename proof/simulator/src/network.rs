//! The network between clients, gateways, service and provider: it loses, delays and cuts, one way or both ways. Messages overtake each other, as
//! each takes as long as is drawn for it.

use crate::dice::Dice;
use crate::fault::Fault;
use crate::faults::Faults;
use crate::trace::Trace;
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

    fn is_cut(&self, from: Host, to: Host) -> bool {
        let cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        cuts.get(&(from, to)).is_some_and(|until| *until > Instant::now()) && !self.faults.are_healed()
    }

    /// Sends a message, has it served on a task of its own, and waits for the answer no longer than `patience`. The message is served whether or not
    /// anybody waits.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        (from, to): (Host, Host),
        patience: Duration,
        serve: impl Future<Output = Result<T, Broken>> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        if self.faults.strikes(Fault::Refused) {
            self.pause().await;
            self.trace.note(format_args!("{from} -> {to}: connection refused"));
            return Err(NoAnswer::NotSent);
        }
        let is_lost = self.faults.strikes(Fault::MessageLost) || self.is_cut(from, to);
        if is_lost {
            self.trace.note(format_args!("{from} -> {to}: message lost"));
            tokio::time::sleep(patience).await;
            return Err(NoAnswer::Silence);
        }
        let (reply, answer) = oneshot::channel();
        let network = Arc::clone(self);
        tokio::spawn(async move {
            network.travel(from, to).await;
            let Ok(served) = serve.await else { return };
            if network.faults.strikes(Fault::AnswerLost) || network.is_cut(to, from) {
                network.trace.note(format_args!("{to} -> {from}: answer lost"));
                // The connection is open still, as far as the other side knows.
                tokio::time::sleep(patience).await;
                return;
            }
            network.travel(to, from).await;
            let _ = reply.send(served);
        });
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(served)) => Ok(served),
            Ok(Err(_)) | Err(_) => Err(NoAnswer::Silence),
        }
    }

    async fn travel(&self, from: Host, to: Host) {
        if self.faults.strikes(Fault::MessageLate) {
            let late = self.dice.millis(500, 8_000);
            self.trace.note(format_args!("{from} -> {to}: late by {} ms", late.as_millis()));
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
