//! What goes wrong, when, by the seed.

use crate::processes::{GATEWAYS, LEASE, Outcome, Processes};
use crate::proxy::Weather;
use fastrand::Rng;
use semel_private_postgres::Stop;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// One kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
    /// Five minutes ahead or behind, for a while.
    WrongClock,
    CrashDatabase,
    KillBackends,
    CutNetwork,
    SlowNetwork,
    /// Commits are carried out, and their answers lost.
    LoseAnswers,
}

impl Fault {
    const ANYWHERE: [Self; 8] = [
        Self::KillGateway,
        Self::KillShop,
        Self::KillProvider,
        Self::KillWorker,
        Self::FreezeGateway,
        Self::FreezeShop,
        Self::RollingRestart,
        Self::WrongClock,
    ];
    const WITH_A_SERVER: [Self; 5] =
        [Self::CrashDatabase, Self::KillBackends, Self::CutNetwork, Self::SlowNetwork, Self::LoseAnswers];

    fn possible(processes: &Processes) -> Vec<Self> {
        let server: &[Self] = if processes.database.is_some() { &Self::WITH_A_SERVER } else { &[] };
        [&Self::ANYWHERE, server].concat()
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
            Self::WrongClock => "a gateway with a clock five minutes off",
            Self::CrashDatabase => "the database crashed",
            Self::KillBackends => "the database's connections ended",
            Self::CutNetwork => "the network to the database cut",
            Self::SlowNetwork => "the network to the database slow",
            Self::LoseAnswers => "the database's answers lost",
        })
    }
}

/// What was done.
#[derive(Default)]
pub(crate) struct FaultLog(Mutex<BTreeMap<Fault, u32>>);

impl FaultLog {
    pub(crate) fn counts(&self) -> BTreeMap<Fault, u32> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn note(&self, fault: Fault) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).entry(fault).or_default() += 1;
    }
}

/// Does one fault after the other until it is dropped, in two places at once: some strike while others are being recovered from.
pub(crate) async fn rain(processes: &Processes, seed: u64, begun: Instant, log: &FaultLog) -> Outcome<()> {
    let shower = |number| shower(processes, Rng::with_seed(seed ^ number), begun, log);
    tokio::try_join!(shower(0xFA17), shower(0xFA18)).map(drop)
}

async fn shower(processes: &Processes, mut rng: Rng, begun: Instant, log: &FaultLog) -> Outcome<()> {
    let possible = Fault::possible(processes);
    loop {
        tokio::time::sleep(Duration::from_millis(rng.u64(50..500))).await;
        let fault = *rng.choice(&possible).ok_or("no fault is possible")?;
        let gateway = rng.usize(0..GATEWAYS);
        let pause = Duration::from_millis(rng.u64(50..400));
        crate::report::fault(begun.elapsed(), fault, gateway);
        log.note(fault);
        do_one(processes, fault, gateway, pause).await?;
    }
}

async fn do_one(processes: &Processes, fault: Fault, number: usize, pause: Duration) -> Outcome<()> {
    let (gateway, shop) = (&processes.gateways[number], &processes.shops[number]);
    match fault {
        Fault::KillGateway => restart(gateway, pause).await?,
        Fault::KillShop => restart(shop, pause).await?,
        Fault::KillProvider => restart(&processes.provider, pause).await?,
        Fault::KillWorker => restart(&processes.worker, pause).await?,
        Fault::FreezeGateway => gateway.freeze(LEASE + pause).await?,
        Fault::FreezeShop => shop.freeze(LEASE + pause).await?,
        Fault::RollingRestart => {
            for gateway in &processes.gateways {
                gateway.end().await?;
                gateway.start().await?;
            }
        }
        Fault::WrongClock => {
            gateway.kill().await?;
            gateway.start_with_clock(if pause.as_millis().is_multiple_of(2) { "+5m" } else { "-5m" }).await?;
            tokio::time::sleep(pause * 3).await;
            restart(gateway, Duration::ZERO).await?;
        }
        Fault::CrashDatabase
        | Fault::KillBackends
        | Fault::CutNetwork
        | Fault::SlowNetwork
        | Fault::LoseAnswers => {
            at_the_database(processes, fault, number, pause).await?;
        }
    }
    Ok(())
}

async fn restart(process: &crate::processes::Process, pause: Duration) -> Outcome<()> {
    process.kill().await?;
    tokio::time::sleep(pause).await;
    process.start().await
}

async fn at_the_database(processes: &Processes, fault: Fault, number: usize, pause: Duration) -> Outcome<()> {
    let Some(database) = &processes.database else { return Ok(()) };
    let network = &database.networks[number];
    let weather = match fault {
        Fault::CrashDatabase => {
            let _alone = database.crashing.lock().await;
            tokio::task::block_in_place(|| database.cluster.stop(Stop::Immediate))?;
            tokio::time::sleep(pause).await;
            tokio::task::block_in_place(|| database.cluster.start_again())?;
            return Ok(());
        }
        Fault::KillBackends => return database.kill_backends().await,
        Fault::CutNetwork => Weather::Cut,
        Fault::SlowNetwork => Weather::Slow(pause / 2),
        _ => Weather::DeafToAnswers,
    };
    network.turn(weather);
    tokio::time::sleep(pause * 4).await;
    network.turn(Weather::Fair);
    Ok(())
}
