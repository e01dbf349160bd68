//! What goes wrong, when, by the seed.

use crate::armed;
use crate::client::{Call, call};
use crate::config::{AUTHORIZATION, LEASE};
use crate::damage::Damaged;
use crate::fault::Fault;
use crate::inside::Inside;
use crate::off::Off;
use crate::outcome::Outcome;
use crate::pairs::{Census, Pairs, State};
use crate::process::Process;
use crate::processes::Processes;
use crate::proxy::Weather;
use fastrand::Rng;
use semel_testing::servers::Stop;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What was done.
#[derive(Default)]
pub(crate) struct FaultLog(Mutex<Done>);

#[derive(Clone, Default)]
pub(crate) struct Done {
    pub(crate) counts: BTreeMap<Fault, u32>,
    pub(crate) pairs: Pairs,
    /// Fail points that were armed.
    pub(crate) armed: BTreeSet<String>,
    /// Answers that were damaged, by operation id.
    pub(crate) damaged: BTreeMap<String, Damaged>,
    /// What was seen while faults struck, and should not have been.
    pub(crate) objections: Vec<String>,
    /// By how much the clock was off that the store goes by.
    pub(crate) steps: Vec<Off>,
    /// Encryption keys that were taken away once nothing needed them any more.
    pub(crate) keys_taken_away: u32,
}

impl FaultLog {
    pub(crate) fn done(&self) -> Done {
        self.lock().clone()
    }

    pub(crate) fn count(&self) -> u32 {
        self.lock().counts.values().sum()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What faults are done to, and what has to be known for it.
pub(crate) struct Rain<'a> {
    pub(crate) processes: &'a Processes,
    pub(crate) inside: &'a Inside,
    /// How many requests each gateway has at the moment.
    pub(crate) under_way: &'a [AtomicUsize],
    /// How many operations have begun.
    pub(crate) operations: &'a AtomicUsize,
    /// One fault for so many of them: on a slow machine there would be nothing but faults otherwise.
    pub(crate) per_fault: usize,
    /// Only these, if any are named.
    pub(crate) only: &'a [Fault],
    pub(crate) seed: u64,
    pub(crate) begun: Instant,
    pub(crate) log: &'a FaultLog,
}

/// One fault, and the chance in it.
struct Strike {
    fault: Fault,
    gateway: usize,
    pause: Duration,
    rng: Rng,
}

impl Rain<'_> {
    /// Does one fault after the other until it is dropped, in three places at once: some strike while others are being recovered from.
    pub(crate) async fn fall(&self) -> Outcome<()> {
        let shower = |number: u64| self.shower(Rng::with_seed(self.seed ^ (0xFA17 + number)));
        // A gateway that is alone has to be there at times.
        if self.processes.gateways.len() == 1 {
            return shower(0).await;
        }
        tokio::try_join!(shower(0), shower(1), shower(2)).map(drop)
    }

    async fn shower(&self, mut rng: Rng) -> Outcome<()> {
        let Processes { scene, profile, database, cache, .. } = self.processes;
        let mut possible = Fault::possible(*scene, *profile, database.is_some(), cache.is_some());
        possible.retain(|fault| self.only.is_empty() || self.only.contains(fault));
        loop {
            tokio::time::sleep(Duration::from_millis(rng.u64(50..500))).await;
            while self.log.count() as usize * self.per_fault > self.operations.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let fault = *rng.choice(&possible).ok_or("no fault is possible")?;
            let gateway = rng.usize(0..self.processes.gateways.len());
            let pause = Duration::from_millis(rng.u64(50..400));
            tell(self.begun.elapsed(), fault, gateway);
            self.note(fault, gateway).await;
            self.strike(Strike { fault, gateway, pause, rng: rng.fork() }).await?;
        }
    }

    /// Counts it, and what it strikes.
    async fn note(&self, fault: Fault, gateway: usize) {
        *self.log.lock().counts.entry(fault).or_default() += 1;
        // A flipped bit strikes one record, and is noted with it.
        if fault == Fault::FlipBit {
            return;
        }
        let Some(mut there) = self.inside.census().await else { return };
        if fault.strikes_one_gateway() && self.under_way[gateway].load(Ordering::Relaxed) == 0 {
            there.remove(&State::InProgress);
        }
        self.log.lock().pairs.note(fault, &there);
    }

    async fn strike(&self, strike: Strike) -> Outcome<()> {
        let Strike { fault, gateway: number, pause, mut rng } = strike;
        let gateway = &self.processes.gateways[number];
        // Without shops the gateway is struck.
        let shop = self.processes.shops.get(number).unwrap_or(gateway);
        // What else the fault could strike.
        let worker = self.processes.worker.as_ref().filter(|_| rng.u32(0..4) == 0);
        match fault {
            Fault::KillGateway => restart(gateway, pause).await?,
            Fault::KillShop => restart(shop, pause).await?,
            Fault::KillProvider => restart(&self.processes.provider, pause).await?,
            Fault::KillWorker => {
                if let Some(worker) = &self.processes.worker {
                    restart(worker, pause).await?;
                }
            }
            Fault::FreezeGateway => gateway.freeze(LEASE + pause).await?,
            Fault::FreezeShop => shop.freeze(LEASE + pause).await?,
            Fault::RollingRestart => {
                for gateway in &self.processes.gateways {
                    gateway.end().await?;
                    if rng.bool() { gateway.start().await? } else { gateway.start_other().await? }
                }
            }
            Fault::WrongClock => {
                let off = self.off(fault, &mut rng);
                gateway.kill().await?;
                // Another fault may have started it in the meantime, on a machine whose clock is right.
                let started = gateway.start_with_clock(off).await?.map(|id| (id, off));
                self.watch_wrong_clock(number, started, Instant::now() + pause * 3).await;
                restart(gateway, Duration::ZERO).await?;
            }
            Fault::StruckAgain => {
                let victim = worker.unwrap_or(gateway);
                victim.kill().await?;
                for _ in 0..rng.u32(1..=3) {
                    victim.start_in_vain(Duration::from_millis(rng.u64(0..60))).await?;
                }
                restart(victim, Duration::ZERO).await?;
            }
            Fault::FailPoint => self.fail_point(worker.unwrap_or(gateway), number, pause).await?,
            Fault::FlipBit => self.flip_a_bit(&mut rng).await,
            Fault::FullDisk => {
                if let Some(disk) = &self.processes.disk {
                    let full = tokio::task::block_in_place(|| disk.fill())?;
                    tokio::time::sleep(pause * 4).await;
                    drop(full);
                }
            }
            Fault::PowerCut => {
                if let Some(disk) = &self.processes.disk {
                    gateway.kill_and(|| disk.lose_the_unsynced()).await?;
                    tokio::time::sleep(pause).await;
                    gateway.start().await?;
                }
            }
            Fault::StepClock => {
                if let Some(clock) = &self.processes.clock {
                    clock.step(self.off(fault, &mut rng))?;
                    tokio::time::sleep(pause * 8).await;
                    clock.step(Off::NONE)?;
                }
            }
            Fault::StepServerClock => {
                if let Some(clock) =
                    self.processes.database.as_ref().and_then(|database| database.clock.as_ref())
                {
                    clock.step(self.off(fault, &mut rng)).await;
                    tokio::time::sleep(pause * 8).await;
                    clock.put_right().await;
                }
            }
            Fault::FailSync | Fault::SlowSync => {
                if let Some(disk) = &self.processes.disk {
                    let delay = if fault == Fault::SlowSync { Some(rng.u32(50..2_500)) } else { None };
                    disk.trouble(delay)?;
                    tokio::time::sleep(pause * 4).await;
                    disk.untrouble()?;
                }
            }
            Fault::KillRedis | Fault::HoldRedis | Fault::FlushRedis | Fault::FillRedis => {
                if let Some(cache) = &self.processes.cache {
                    tokio::task::block_in_place(|| cache.strike(fault, pause))?;
                }
            }
            Fault::Reload => self.reload(&mut rng).await?,
            Fault::Rekey => self.rekey(&mut rng).await?,
            Fault::CrashDatabase
            | Fault::KillBackends
            | Fault::CutNetwork
            | Fault::SlowNetwork
            | Fault::LoseAnswers => self.at_the_database(fault, number, pause).await?,
        }
        Ok(())
    }

    /// By how much a clock is going to be off; noted, if the store goes by that clock.
    fn off(&self, fault: Fault, rng: &mut Rng) -> Off {
        let off = *rng.choice(&Off::ALL).unwrap_or(&Off::NONE);
        let servers = self.processes.database.is_some();
        if servers == (fault == Fault::StepServerClock) {
            self.log.lock().steps.push(off);
        }
        off
    }

    /// Waits until then. A gateway whose clock was far behind its store's mark when it started serves nothing, as long as it is that process.
    async fn watch_wrong_clock(&self, number: usize, started: Option<(u32, Off)>, until: Instant) {
        let (gateway, site) = (&self.processes.gateways[number], &self.processes.sites[number]);
        // Where clocks step while gateways run, the store may have seen this one before. A server has a clock of its own.
        let tells_nothing = self.processes.clock.is_some() || self.processes.database.is_some();
        let mut asked = started.filter(|(_, off)| {
            off.is_far_behind() && !tells_nothing && !self.processes.profile.has_no_gateway()
        });
        while Instant::now() < until {
            if let Some((id, off)) = asked {
                let question = Call { method: "GET", path: "/readyz", headers: &[], body: String::new() };
                let answer = call(site.admin, question, Duration::from_millis(500)).await;
                let is_there = gateway.id().await == Some(id);
                if is_there && answer.is_ok_and(|answer| answer.status == 200) {
                    let objection = format!("I15 gateway {number} serves by a clock that is off by {off}");
                    self.log.lock().objections.push(objection);
                }
                asked = asked.filter(|_| is_there);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Arms the next fail point in a process, and has it come by every call.
    async fn fail_point(&self, victim: &Process, gateway: usize, pause: Duration) -> Outcome<()> {
        let point = {
            let mut log = self.log.lock();
            // Rounds in a row go on where the last one ended, or nearly so.
            let number = usize::try_from(self.seed * 12).unwrap_or_default() + log.armed.len();
            let point = armed::point(number);
            log.armed.insert(point.clone());
            point
        };
        victim.kill().await?;
        victim.try_with(&[("FAILPOINTS", &point)], Duration::from_secs(1)).await?;
        let until = Instant::now() + pause * 4;
        while Instant::now() < until {
            self.look_at_everything(gateway).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        restart(victim, Duration::ZERO).await
    }

    /// Requests alone never list, and never ask for a history.
    async fn look_at_everything(&self, gateway: usize) {
        let at = self.processes.sites[gateway].admin;
        let ask = async |path: &str| {
            let headers = &[("authorization", AUTHORIZATION)];
            let question = Call { method: "GET", path, headers, body: String::new() };
            call(at, question, Duration::from_millis(500)).await.ok()
        };
        ask("/v1/stats").await;
        let Some(listed) = ask("/v1/operations?limit=1").await else { return };
        if let Some(id) = listed.json()["operations"][0]["operation_id"].as_str() {
            ask(&format!("/v1/operations/{id}")).await;
        }
    }

    async fn flip_a_bit(&self, rng: &mut Rng) {
        let begun = self.begun.elapsed();
        let Some(flipped) = self.inside.flip_a_bit(rng).await else { return };
        let done = self.begun.elapsed();
        let Some(state) = State::named(&flipped.state) else { return };
        let mut log = self.log.lock();
        log.pairs.note(Fault::FlipBit, &Census::from([(state, 1)]));
        let damaged = log.damaged.entry(flipped.operation_id).or_insert(Damaged { begun, done });
        // The same bit twice would be no damage at all, which nobody can rule out from here.
        damaged.done = if damaged.begun == begun { done } else { Duration::MAX };
    }

    async fn at_the_database(&self, fault: Fault, number: usize, pause: Duration) -> Outcome<()> {
        let Some(database) = &self.processes.database else { return Ok(()) };
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
}

async fn restart(process: &Process, pause: Duration) -> Outcome<()> {
    process.kill().await?;
    tokio::time::sleep(pause).await;
    process.start().await
}

/// The log of faults: with the seed, what there is to know of what was done.
#[expect(clippy::print_stdout, reason = "a log for whoever asks for it")]
fn tell(at: Duration, fault: Fault, gateway: usize) {
    if std::env::var_os("SEMEL_CAMPAIGN_FAULTS").is_some() {
        println!("{:8.3} s  {fault} ({gateway})", at.as_secs_f64());
    }
}
