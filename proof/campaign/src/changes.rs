//! Configurations that change while everything runs: reloads, and encryption keys that are replaced.

use crate::client::{Call, call};
use crate::config::{AUTHORIZATION, Changeable};
use crate::outcome::Outcome;
use crate::processes::Processes;
use crate::rain::Rain;
use fastrand::Rng;
use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

/// How long a gateway may take to put a configuration in force, with everything else that goes wrong.
const PATIENCE: Duration = Duration::from_secs(6);
/// How long rekeying may take.
const REKEYING: Duration = Duration::from_secs(20);

impl Rain<'_> {
    /// Changes what duplicates get, and puts it in force at every gateway that is there.
    pub(crate) async fn reload(&self, rng: &mut Rng) -> Outcome<()> {
        let Ok(mut changeable) = self.processes.changing.try_lock() else { return Ok(()) };
        changeable.waits = rng.bool();
        self.processes.in_force(&changeable).await.map(drop)
    }

    /// Replaces the key that seals, while requests and faults go on. Any step may be as far as it gets: the next change goes on from there.
    pub(crate) async fn rekey(&self, rng: &mut Rng) -> Outcome<()> {
        let Ok(mut changeable) = self.processes.changing.try_lock() else { return Ok(()) };
        // One in three is killed on the way, and run again.
        let killed_after = (rng.u32(0..3) == 0).then(|| Duration::from_millis(rng.u64(1..200)));
        if self.processes.replace_key(&mut changeable, killed_after).await? {
            self.log.lock().keys_taken_away += 1;
        }
        Ok(())
    }
}

impl Processes {
    /// The same once everything has settled: now nothing may be left that needs an older key.
    pub(crate) async fn replace_key_at_last(&self) -> Outcome<bool> {
        let mut changeable = self.changing.lock().await;
        self.replace_key(&mut changeable, None).await
    }

    /// The steps of `docs/operating/encryption.md`, one after the other; true: the old keys were taken away.
    async fn replace_key(
        &self,
        changeable: &mut Changeable,
        killed_after: Option<Duration>,
    ) -> Outcome<bool> {
        let next = changeable.keys.iter().max().map_or(1, |newest| newest + 1);
        changeable.keys.push(next);
        if !self.in_force(changeable).await? {
            return Ok(false);
        }
        changeable.sealing = next;
        if !self.in_force(changeable).await? {
            return Ok(false);
        }
        if let Some(patience) = killed_after {
            self.seal_anew(patience).await?;
        }
        if !self.seal_anew(REKEYING).await? {
            return Ok(false);
        }
        changeable.keys.retain(|key| *key == next);
        self.in_force(changeable).await
    }

    /// Writes the files and has every gateway and the worker read them; false: somebody has not said that it did.
    async fn in_force(&self, changeable: &Changeable) -> Outcome<bool> {
        self.configure(changeable)?;
        let mut all = true;
        for site in &self.sites {
            let until = Instant::now() + PATIENCE;
            let mut reloaded = false;
            while !reloaded && Instant::now() < until {
                let headers = &[("authorization", AUTHORIZATION)];
                let reload = Call { method: "POST", path: "/v1/reload", headers, body: String::new() };
                reloaded = call(site.admin, reload, PATIENCE).await.is_ok_and(|answer| answer.status == 200);
                if !reloaded {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            all &= reloaded;
        }
        // It has no admin API that would say when: whoever is started reads the file.
        if let Some(worker) = &self.worker {
            worker.end().await?;
            worker.start().await?;
        }
        Ok(all)
    }

    /// Runs `semel rekey`; true: it says that nothing is left which only an older key opens.
    async fn seal_anew(&self, patience: Duration) -> Outcome<bool> {
        let mut rekey = Command::new(&self.semel);
        rekey.arg("rekey").arg("--config").arg(self.file(0)).kill_on_drop(true);
        let log = self.file(0).with_file_name("rekey.log");
        let log = File::options().create(true).append(true).open(log)?;
        rekey.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        match tokio::time::timeout(patience, rekey.status()).await {
            Ok(status) => Ok(status?.success()),
            Err(_) => Ok(false),
        }
    }
}
