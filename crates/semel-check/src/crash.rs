//! Crashes: the API is killed at different moments of a request, started again, and asked until it says what happened.

use crate::answer::{Answer, Reply};
use crate::check::Check;
use crate::polls::Polls;
use crate::request::{Draft, Request, Subject};
use crate::settings::{Crash, Settings};
use crate::shell;
use crate::target::Partly;
use crate::trial::{End, Moment, Trial, Trials};
use crate::verdict::Ended;
use std::time::{Duration, Instant};

/// Seconds after the restart at which a retry is sent. Locks of 30, 60 and 120 seconds are common: each of these is just past one.
pub(crate) const RETRIES: [u64; 8] = [0, 1, 2, 5, 10, 31, 61, 121];
/// How long a killed process may take to be gone, and a started one to be ready.
const DYING: Duration = Duration::from_secs(10);
const STARTING: Duration = Duration::from_secs(60);
/// Points over the measured latency at which to kill, where the effect cannot be watched.
const SWEEP: u32 = 10;
/// How often to try to kill at the effect, where it can be watched.
const WATCHED: u32 = 3;

/// How many crashes there are at most: before, at once, watched, swept, and after the answer.
const CRASHES: usize = (2 + WATCHED + SWEEP + 1) as usize;

/// How many writes all crashes send at most: each a first request, a retry at once, and those of the schedule.
pub(crate) fn most_writes(plan: &Settings) -> usize {
    CRASHES * (2 + retries(plan).count())
}

/// How often all crashes count the effects of a reference at most: right after each, and in the end.
pub(crate) fn most_counts() -> usize {
    2 * CRASHES
}

/// How many times at most the API is asked whether it has the effect, and whether it is ready, in these crashes and in so many others.
pub(crate) fn most_polls(plan: &Settings, others: usize) -> usize {
    let at_effect = (WATCHED as usize + others) * Polls::most(plan.timeout);
    let is_ready = (CRASHES + others) * (Polls::most(DYING) + Polls::most(STARTING));
    at_effect + if plan.crash.as_ref().is_some_and(|crash| crash.ready.is_some()) { is_ready } else { 0 }
}

/// When retries are sent after a restart, within the plan's patience.
pub(crate) fn retries(plan: &Settings) -> impl Iterator<Item = Duration> {
    let patience = plan.patience;
    let before = RETRIES.into_iter().map(Duration::from_secs).filter(move |at| *at < patience);
    let is_longest = RETRIES.last().is_some_and(|last| Duration::from_secs(*last) < patience);
    before.chain((!is_longest).then_some(patience))
}

impl Check<'_> {
    /// The crashes, which are made once and judged by several cases.
    pub(crate) async fn trials(&self) -> Result<&Trials, Ended> {
        self.trials.get_or_try_init(|| self.crash_at_every_moment()).await
    }

    async fn crash_at_every_moment(&self) -> Result<Trials, Ended> {
        self.target.limits.allow_more(most_writes(self.plan));
        let mut trials = vec![self.killed_before().await?, self.killed_after(Duration::ZERO).await?];
        let mut saw_effect = false;
        let is_watched = self.effects.is_some() && self.plan.mark.is_some();
        for _ in 0..WATCHED {
            if saw_effect || !is_watched {
                break;
            }
            let trial = self.killed_at_effect().await?;
            saw_effect = trial.moment == Moment::Effect;
            trials.push(trial);
        }
        for point in 1..=SWEEP {
            if saw_effect {
                break;
            }
            let trial = self.killed_after(self.latency() * point / SWEEP).await?;
            saw_effect = trial.moment == Moment::Effect;
            trials.push(trial);
        }
        trials.push(self.killed_after_answer().await?);
        for trial in &mut trials {
            self.retry_on(trial).await?;
        }
        for trial in &mut trials {
            trial.effects = self.count_of_reference(&trial.subject).await?.unwrap_or(0);
            if let (Some(first), Some(again)) = (&trial.first, &trial.retried) {
                trial.names_two_things = self.name_two_things(first, again);
            }
        }
        Ok(Trials { trials })
    }

    /// Killed while the body was still on its way.
    async fn killed_before(&self) -> Result<Trial, Ended> {
        let subject = self.subject().await?;
        let request = self.request(self.slowed(&subject))?;
        let begun = self.target.begin(&request, Partly::Half).await;
        self.restart().await?;
        drop(begun);
        self.trial(subject, None, true).await
    }

    /// Killed as soon as the effect is seen.
    async fn killed_at_effect(&self) -> Result<Trial, Ended> {
        let subject = self.subject().await?;
        let request = self.request(self.slowed(&subject))?;
        let answering = self.target.send(&request);
        let seeing = async {
            let mut polls = Polls::new(self.plan.timeout);
            while polls.next().await && self.count_now(&subject).await == 0 {}
        };
        tokio::pin!(answering);
        let early = tokio::select! {
            reply = &mut answering => Some(reply),
            () = seeing => None,
        };
        let kill = self.kill();
        // The answer may come while the API is being killed.
        let (killed, reply) = match early {
            Some(reply) => (kill.await, reply),
            None => tokio::join!(kill, answering),
        };
        killed?;
        self.start().await?;
        self.trial(subject, answered(reply), true).await
    }

    /// Killed so long after the request was sent.
    async fn killed_after(&self, wait: Duration) -> Result<Trial, Ended> {
        let subject = self.subject().await?;
        let request = self.request(self.slowed(&subject))?;
        let killing = async {
            tokio::time::sleep(wait).await;
            self.kill().await
        };
        let (killed, reply) = tokio::join!(killing, self.target.send(&request));
        killed?;
        self.start().await?;
        self.trial(subject, answered(reply), true).await
    }

    async fn killed_after_answer(&self) -> Result<Trial, Ended> {
        let subject = self.subject().await?;
        let first = self.first(&subject).await?;
        self.restart().await?;
        self.trial(subject, Some(first), false).await
    }

    /// What is known right after the restart, and the first retry.
    async fn trial(&self, subject: Subject, first: Option<Answer>, slowed: bool) -> Result<Trial, Ended> {
        let effects = self.count_of_reference(&subject).await?;
        let moment = match (&first, effects) {
            (Some(_), _) => Moment::Answered,
            (None, None) => Moment::Unanswered,
            (None, Some(0)) => Moment::Before,
            (None, Some(_)) => Moment::Effect,
        };
        let effects = effects.unwrap_or(0);
        let end = End::Stuck("never asked".into());
        let mut trial = Trial {
            subject,
            moment,
            first,
            retried: None,
            end,
            effects,
            names_two_things: false,
            restarted: Instant::now(),
            slowed,
        };
        self.retry(&mut trial).await;
        Ok(trial)
    }

    /// The count of the subject alone. Without `--mark`, all subjects of a run would be counted together, and retries of one come after
    /// the crash of the next.
    async fn count_of_reference(&self, subject: &Subject) -> Result<Option<u64>, Ended> {
        if self.plan.mark.is_some() { self.count(subject).await } else { Ok(None) }
    }

    async fn retry(&self, trial: &mut Trial) {
        let reply = self.send_expecting_failure(self.like_the_first(trial)).await;
        trial.end = match &reply {
            Ok(answer) if answer.is_success() => {
                trial.retried = Some(answer.clone());
                End::Answered
            }
            Ok(answer) if answer.is_doubt(self.plan.profile.doubt) => End::Doubt,
            other => End::Stuck(crate::answer::told(other)),
        };
    }

    fn like_the_first(&self, trial: &Trial) -> Draft<'_> {
        if trial.slowed { self.slowed(&trial.subject) } else { self.draft(&trial.subject) }
    }

    /// Retries by the schedule until it ends, or patience does.
    async fn retry_on(&self, trial: &mut Trial) -> Result<(), Ended> {
        for at in retries(self.plan) {
            if matches!(trial.end, End::Answered | End::Doubt) {
                break;
            }
            self.goes_on()?;
            tokio::time::sleep_until((trial.restarted + at).into()).await;
            self.retry(trial).await;
        }
        Ok(())
    }

    /// The subject's request, slowed down if there is a way.
    pub(crate) fn slowed(&self, subject: &Subject) -> Draft<'_> {
        let draft = self.draft(subject);
        match &self.plan.slow {
            Some(slow) => draft.with(slow),
            None => draft,
        }
    }

    pub(crate) fn request(&self, draft: Draft<'_>) -> Result<Request, Ended> {
        draft.build().ok_or_else(|| Ended::Inconclusive("the request cannot be sent".into()))
    }

    fn crash(&self) -> Result<&Crash, Ended> {
        self.plan.crash.as_ref().ok_or_else(|| Ended::NotRun("use --kill and --start".into()))
    }

    pub(crate) async fn restart(&self) -> Result<(), Ended> {
        self.kill().await?;
        self.start().await
    }

    /// Kills the API, and sees that it is dead.
    pub(crate) async fn kill(&self) -> Result<(), Ended> {
        shell::output("--kill", &self.crash()?.kill, "", DYING).await.map_err(Ended::Abort)?;
        let mut polls = Polls::new(DYING);
        while polls.next().await {
            if !self.is_alive().await {
                return Ok(());
            }
        }
        Err(Ended::Inconclusive("the API still accepts connections after --kill: it did not stop".into()))
    }

    pub(crate) async fn start(&self) -> Result<(), Ended> {
        shell::start("--start", &self.crash()?.start, Duration::from_secs(1)).await.map_err(Ended::Abort)?;
        let mut polls = Polls::new(STARTING);
        while polls.next().await {
            if self.is_alive().await {
                return Ok(());
            }
        }
        Err(Ended::Abort("after --start the API is not ready".into()))
    }

    async fn is_alive(&self) -> bool {
        if !self.target.accepts().await {
            return false;
        }
        let Some(ready) = self.plan.crash.as_ref().and_then(|crash| crash.ready.as_ref()) else {
            return true;
        };
        let nobody = Subject { key: String::new(), reference: String::new() };
        let draft = self.draft(&nobody).call(ready).body(crate::body::Body::Empty).keys([]);
        let Some(request) = draft.build() else { return false };
        matches!(self.target.ask(&request).await, Ok(answer) if answer.is_success())
    }
}

/// The API's own answer, if it succeeded. A 502 or 504 comes from a proxy and does not count.
fn answered(reply: Reply) -> Option<Answer> {
    match reply {
        Ok(answer) if answer.is_success() => Some(answer),
        Ok(_) | Err(_) => None,
    }
}
