//! The kinds of faults, and where each of them can strike.

use crate::profile::Profile;
use crate::scene::Scene;
use std::fmt;

/// One kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub(crate) enum Fault {
    KillGateway,
    KillShop,
    KillProvider,
    KillWorker,
    /// For longer than a lease: when it goes on, it is a late owner.
    FreezeGateway,
    FreezeShop,
    /// Asked to end and started again, one after the other: a deployment.
    RollingRestart,
    /// Ahead or behind by minutes or days, for a while.
    WrongClock,
    /// A fault during the recovery from a fault: killed, and killed again while it starts.
    StruckAgain,
    /// A call of the store goes wrong, in a gateway or a worker.
    FailPoint,
    /// In a stored answer.
    FlipBit,
    FullDisk,
    /// What was not synced is gone.
    PowerCut,
    CrashDatabase,
    KillBackends,
    CutNetwork,
    SlowNetwork,
    /// Commits are carried out, and their answers lost.
    LoseAnswers,
    /// While processes run by it.
    StepClock,
    /// While statements run by it.
    StepServerClock,
    FailSync,
    SlowSync,
    /// And started again, empty; or a master of a Cluster, whose replica takes over.
    KillRedis,
    /// Stopped for a while: it keeps its connections and answers nothing.
    HoldRedis,
    /// Emptied.
    FlushRedis,
    /// Filled until it evicts.
    FillRedis,
    /// Another configuration is put in force.
    Reload,
    /// The encryption key is rotated: everything is sealed with a new key, and the old one is removed.
    Rekey,
}

impl Fault {
    const ANYWHERE: [Self; 10] = [
        Self::KillGateway,
        Self::KillShop,
        Self::KillProvider,
        Self::KillWorker,
        Self::FreezeGateway,
        Self::FreezeShop,
        Self::RollingRestart,
        Self::WrongClock,
        Self::StruckAgain,
        Self::FailPoint,
    ];
    const WITH_A_SERVER: [Self; 5] =
        [Self::CrashDatabase, Self::KillBackends, Self::CutNetwork, Self::SlowNetwork, Self::LoseAnswers];
    const WITH_REDIS: [Self; 4] = [Self::KillRedis, Self::HoldRedis, Self::FlushRedis, Self::FillRedis];
    /// A gateway that ends in any other way would leave behind what was not synced.
    const WITH_POWER_CUTS: [Self; 6] = [
        Self::PowerCut,
        Self::PowerCut,
        Self::KillShop,
        Self::KillProvider,
        Self::FreezeGateway,
        Self::FreezeShop,
    ];
    /// What has nobody to strike where services protect themselves.
    const AT_A_GATEWAY: [Self; 5] =
        [Self::KillShop, Self::KillProvider, Self::KillWorker, Self::FreezeShop, Self::FailPoint];

    /// What can happen in a scene under a profile, on a server or in a file, with a Redis in front or without.
    pub(crate) fn possible(scene: Scene, profile: Profile, has_server: bool, has_redis: bool) -> Vec<Self> {
        let server: &[Self] = if has_server { &Self::WITH_A_SERVER } else { &[] };
        let special: &[Self] = match scene {
            // A key that is taken away takes damaged answers with it.
            Scene::Plain | Scene::Sealed if profile == Profile::Reload => &[],
            Scene::Plain | Scene::Sealed => &[Self::FlipBit],
            Scene::SmallDisk => &[Self::FullDisk],
            Scene::SteppingClock if has_server => {
                &[Self::StepClock, Self::StepServerClock, Self::StepServerClock]
            }
            Scene::SteppingClock => &[Self::StepClock, Self::StepClock],
            Scene::FaultySync => &[Self::FailSync, Self::SlowSync],
            Scene::PowerCuts => &[],
        };
        let changes: &[Self] = match profile {
            // Rekeying is a second process that writes, and its power would have to be cut as well.
            Profile::Reload if scene == Scene::PowerCuts => &[Self::Reload],
            Profile::Reload => &[Self::Reload, Self::Rekey, Self::Rekey],
            _ => &[],
        };
        let anywhere: &[Self] =
            if scene == Scene::PowerCuts { &Self::WITH_POWER_CUTS } else { &Self::ANYWHERE };
        let redis: &[Self] = if has_redis && !profile.has_no_gateway() { &Self::WITH_REDIS } else { &[] };
        let mut possible = [anywhere, server, special, changes, redis].concat();
        possible.retain(|fault| !profile.has_no_gateway() || !Self::AT_A_GATEWAY.contains(fault));
        possible
    }

    /// Whether it is one gateway that is struck, and with it what that one has in progress.
    pub(crate) fn strikes_one_gateway(self) -> bool {
        use Fault::{
            CutNetwork, FailPoint, FreezeGateway, KillGateway, LoseAnswers, PowerCut, SlowNetwork,
            StruckAgain, WrongClock,
        };
        let one = [
            KillGateway,
            FreezeGateway,
            WrongClock,
            StruckAgain,
            FailPoint,
            PowerCut,
            CutNetwork,
            SlowNetwork,
            LoseAnswers,
        ];
        one.contains(&self)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillGateway => "kill -9 of a gateway",
            Self::KillShop => "kill -9 of the service",
            Self::KillProvider => "kill -9 of the provider",
            Self::KillWorker => "kill -9 of the worker",
            Self::FreezeGateway => "a gateway frozen beyond its lease",
            Self::FreezeShop => "the service frozen beyond the time-out",
            Self::RollingRestart => "gateways restarted one after the other",
            Self::WrongClock => "a gateway with a wrong clock",
            Self::StruckAgain => "a gateway or worker killed again while it recovers",
            Self::FailPoint => "a call of the store going wrong (fail points)",
            Self::FlipBit => "a bit flipped in a stored answer",
            Self::FullDisk => "the disk full",
            Self::PowerCut => "the power cut, unsynced writes lost",
            Self::CrashDatabase => "the database crashed",
            Self::KillBackends => "the database's connections ended",
            Self::CutNetwork => "the network to the database cut",
            Self::SlowNetwork => "the network to the database slow",
            Self::LoseAnswers => "the database's answers lost",
            Self::StepClock => "the gateways' clocks stepped while they run",
            Self::StepServerClock => "the database server's clock stepped while it runs",
            Self::FailSync => "syncing the disk fails",
            Self::SlowSync => "syncing the disk is slow",
            Self::KillRedis => "kill -9 of Redis",
            Self::HoldRedis => "Redis stopped for a while",
            Self::FlushRedis => "Redis emptied",
            Self::FillRedis => "Redis filled until it evicts",
            Self::Reload => "another configuration put in force",
            Self::Rekey => "encryption keys replaced",
        })
    }
}
