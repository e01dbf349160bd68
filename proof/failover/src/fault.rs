//! What is done to the group.

use crate::group::{Group, TTL, signal};
use clap::ValueEnum;
use std::thread::sleep;
use std::time::Duration;

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Debug)]
pub(crate) enum Fault {
    /// The primary's machine loses its power, and comes back after the failover.
    Kill,
    /// The primary stands still for longer than its lease on leadership, and goes on as if nothing had been.
    Freeze,
    /// Patroni hands over to the synchronous standby.
    Switchover,
    /// Nothing comes through from the primary to its standbys for some seconds.
    Cut,
    /// The synchronous standby is lost, and comes back.
    Standby,
    /// Both standbys are lost, and come back.
    Standbys,
    /// Standbys lag behind, and the primary is lost: with asynchronous replication that loses commits.
    Lag,
}

impl Fault {
    /// The ones that synchronous replication has to survive.
    pub(crate) const ALL: [Self; 6] =
        [Self::Kill, Self::Freeze, Self::Switchover, Self::Cut, Self::Standby, Self::Standbys];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9 of the primary",
            Self::Freeze => "SIGSTOP of the primary beyond the TTL",
            Self::Switchover => "switchover under load",
            Self::Cut => "stream from primary to standbys cut",
            Self::Standby => "synchronous standby lost and back",
            Self::Standbys => "both standbys lost and back",
            Self::Lag => "standbys lag, then kill -9 of the primary",
        }
    }

    /// Begins it. The node that is not to be taken for the new primary, and what has to be done in the end.
    pub(crate) fn begin(self, group: &mut Group) -> Result<(Option<usize>, End), String> {
        let leader = group.leader()?;
        let standbys: Vec<usize> = (0..group.nodes.len()).filter(|node| *node != leader).collect();
        Ok(match self {
            Self::Kill => {
                group.kill(leader);
                (Some(leader), End::Start(vec![leader]))
            }
            Self::Freeze => {
                group.freeze(leader, true);
                sleep(TTL);
                (Some(leader), End::Thaw(leader))
            }
            Self::Switchover => {
                let to = group.synchronous().ok_or("no synchronous standby")?;
                group.switchover(leader, to)?;
                (None, End::Nothing)
            }
            Self::Cut => {
                let receivers = group.processes(&standbys, "walreceiver");
                signal("STOP", &receivers);
                sleep(Duration::from_secs(8));
                signal("CONT", &receivers);
                (None, End::Nothing)
            }
            Self::Standby => {
                let standby = group.synchronous().ok_or("no synchronous standby")?;
                group.kill(standby);
                (None, End::Start(vec![standby]))
            }
            Self::Standbys => {
                standbys.iter().for_each(|standby| group.kill(*standby));
                sleep(Duration::from_secs(5));
                for standby in &standbys {
                    group.start_node(*standby)?;
                }
                (None, End::Nothing)
            }
            Self::Lag => {
                // Those that send: what they have sent already would arrive.
                signal("STOP", &group.processes(&[leader], "walsender"));
                sleep(Duration::from_secs(1));
                group.kill(leader);
                (Some(leader), End::Start(vec![leader]))
            }
        })
    }
}

/// What ends a fault, once the group serves again.
pub(crate) enum End {
    Nothing,
    Start(Vec<usize>),
    Thaw(usize),
}

impl End {
    pub(crate) fn act(self, group: &mut Group) -> Result<(), String> {
        match self {
            Self::Nothing => Ok(()),
            Self::Start(nodes) => nodes.into_iter().try_for_each(|node| group.start_node(node)),
            Self::Thaw(node) => {
                group.freeze(node, false);
                Ok(())
            }
        }
    }
}
