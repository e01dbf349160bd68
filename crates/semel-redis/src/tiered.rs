//! The store with Redis in front of it.

use crate::connection::Put;
use crate::counts::{Counts, Refused};
use crate::entry::{self, Kind};
use crate::judge::{GUARD, Hit, Judge, ends, is_final};
use crate::known::Known;
use crate::link::Link;
use crate::options::{InvalidOptions, TierOptions};
use crate::recent_time::RecentTime;
use crate::secret::Secret;
use crate::url::RedisUrl;
use bytes::Bytes;
use semel::{Body, Draft, Now, OperationId, Record, RecordKey, State, Store};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Larger values are not kept in Redis: they would make others wait behind them, longer than the time-out.
const MAX_VALUE: usize = 128 * 1024;

/// How long a marker stands where nothing but a guard can be in the way of the truth: longer than any guard counts.
const MARKER: Duration = Duration::from_secs(5);

/// By how much the marker of an operator's act outlives every entry that may be on its way.
const OUTLIVES: Duration = Duration::from_secs(60);

/// How long a look at the store's clock may take, which no request waits for.
const LOOK: Duration = Duration::from_secs(2);

/// A store with Redis in front of it. Cheap to clone; clones are the same one.
///
/// Decides exactly as the store alone would, except that a replay is served from Redis until its window ends, and that a duplicate may be told for
/// up to two seconds that its operation is in progress when it has just ended on another instance and Redis was lost at that moment.
///
/// What Redis is asked for takes at most the time-out. Once it fails, it is left alone until a probe has succeeded.
#[derive(Clone)]
pub struct Tiered {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) tier: Arc<Tier>,
}

pub(crate) struct Tier {
    inner: Arc<dyn Store>,
    link: Arc<Link>,
    options: TierOptions,
    pub(crate) time: RecentTime,
    known: Known,
    secret: Mutex<Option<Secret>>,
    counts: Arc<Counts>,
    looking: AtomicBool,
}

/// What Redis has for a batch: a hit, or nothing that is of use, for each draft.
pub(crate) struct Found {
    pub(crate) hits: Vec<Option<Box<Record>>>,
    /// What time the hits were judged at.
    pub(crate) now: Now,
}

impl std::fmt::Debug for Tiered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tiered").field("options", &self.tier.options).finish_non_exhaustive()
    }
}

impl Tiered {
    /// `store`, with the Redis at `redis` in front of it.
    ///
    /// Nothing is connected yet; a Redis that cannot be reached is one that is not used.
    #[must_use]
    pub fn new(store: impl Store, redis: RedisUrl) -> Self {
        Self::made(Arc::new(store), redis, TierOptions::default())
    }

    /// The same, with other settings.
    ///
    /// # Errors
    /// A setting is outside its limits.
    pub fn with_options(
        store: Arc<dyn Store>,
        redis: RedisUrl,
        options: TierOptions,
    ) -> Result<Self, InvalidOptions> {
        options.check()?;
        Ok(Self::made(store, redis, options))
    }

    fn made(inner: Arc<dyn Store>, redis: RedisUrl, options: TierOptions) -> Self {
        let counts = Arc::new(Counts::default());
        let link = Link::new(redis, options.ca.clone(), options.timeout, Arc::clone(&counts));
        // Connects meanwhile.
        let _ = link.is_used();
        let tier = Tier {
            inner: Arc::clone(&inner),
            link,
            options,
            time: RecentTime::default(),
            known: Known::default(),
            secret: Mutex::new(None),
            counts,
            looking: AtomicBool::new(false),
        };
        Self { inner, tier: Arc::new(tier) }
    }

    /// What it did so far.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.tier.counts)
    }
}

impl Tier {
    pub(crate) fn boottime(&self) -> Duration {
        self.options.environment.boottime()
    }

    /// Takes note of the store's time in an answer to what was asked at `asked`.
    pub(crate) fn observe(&self, now: Now, asked: Duration) {
        self.time.observe(now, asked, self.boottime());
    }

    /// The secret of this store: made by whichever instance is the first.
    async fn secret(&self) -> Option<Secret> {
        let known = self.secret.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return known;
        }
        let halves = [self.options.environment.owner(), self.options.environment.owner()];
        let fresh = Bytes::from(halves.map(|half| *half.as_bytes()).concat());
        let remembered = match self.inner.recall(Secret::NAME.into()).await.ok()? {
            Some(remembered) => remembered,
            None => self.inner.remember(Secret::NAME.into(), fresh).await.ok()?,
        };
        let secret = Secret::new(&remembered);
        *self.secret.lock().unwrap_or_else(PoisonError::into_inner) = Some(secret.clone());
        Some(secret)
    }

    /// Looks up a batch of drafts in Redis.
    pub(crate) async fn look_up(self: &Arc<Self>, drafts: &[Draft]) -> Option<Found> {
        let unasked = || self.counts.unasked.fetch_add(drafts.len() as u64, Ordering::Relaxed);
        let secret = if self.link.is_used() { self.secret().await } else { None };
        let Some(secret) = secret else {
            unasked();
            return None;
        };
        let names: Vec<_> = drafts.iter().map(|draft| secret.name(&draft.key)).collect();
        let Some(values) = self.link.read(&names).await else {
            unasked();
            return None;
        };
        let time = self.time.at(self.boottime());
        let judge = Judge {
            secret: &secret,
            time,
            max_age: self.options.max_age,
            guard: self.options.guard,
            has_later: |id: &OperationId, version| self.known.has_later(id, version),
        };
        let hits = drafts.iter().zip(names.iter().zip(values)).map(|(draft, (name, value))| {
            let Some(value) = value else {
                self.counts.misses.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            match judge.judge(draft, name, &value) {
                Ok(Hit::Ended(record)) => {
                    self.counts.replays.fetch_add(1, Ordering::Relaxed);
                    Some(record)
                }
                Ok(Hit::InProgress(record)) => {
                    self.counts.in_progress.fetch_add(1, Ordering::Relaxed);
                    Some(record)
                }
                Err(why) => {
                    self.counts.refuse(why);
                    if matches!(why, Refused::Mac | Refused::Garbage) {
                        tracing::debug!(why = why.as_str(), "a value in Redis is refused");
                    }
                    None
                }
            }
        });
        let hits: Vec<_> = hits.collect();
        let time = time.filter(|_| hits.iter().any(Option::is_some))?;
        if time.is_ageing {
            self.look_at_the_clock();
        }
        Some(Found { hits, now: time.now })
    }

    /// Asks the store what time it is, so that hits go on being judged by a recent one. One at a time, and beside the requests.
    fn look_at_the_clock(self: &Arc<Self>) {
        if self.looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let tier = Arc::clone(self);
        tokio::spawn(async move {
            let asked = tier.boottime();
            if let Ok(Ok(answer)) = tokio::time::timeout(LOOK, tier.inner.read(Vec::new())).await {
                tier.observe(answer.moment(), asked);
            }
            tier.looking.store(false, Ordering::Release);
        });
    }

    /// Whoever writes needs the secret, also one that never looks anything up, such as a worker: its writes take guards away.
    pub(crate) async fn prepare(&self) {
        if self.link.is_used() {
            let _ = self.secret().await;
        }
    }

    /// What is to be written to Redis once the store has said, at `now`, that this is the record.
    pub(crate) fn seen(&self, record: &Record, now: Now, by_operator: bool) -> Option<Put> {
        let secret = self.secret.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let name = secret.name(&record.key);
        let write = |kind, lasts| {
            let value = entry::write(&secret, &name, kind, record, now.earliest);
            (value.len() <= MAX_VALUE).then(|| Put { name: name.clone(), value, lasts, always: false })
        };
        match record.state {
            State::InProgress if self.options.guard => write(Kind::Guard, GUARD),
            State::InProgress => None,
            _ if is_final(record) => {
                let has_answer = |body: &Body| body.is_kept() || *body == Body::NotStored;
                let is_whole = record.response.as_ref().is_none_or(|response| has_answer(&response.body));
                let lasts = ends(record)?.after(now.earliest).min(self.options.max_age);
                let entry = (is_whole && lasts > Duration::ZERO).then(|| write(Kind::Entry, lasts)).flatten();
                // Whatever is not kept must at least not be called in progress.
                entry.or_else(|| self.gone(&record.key, record.operation_id, record.version, by_operator))
            }
            _ => self.gone(&record.key, record.operation_id, record.version, by_operator),
        }
    }

    /// The marker of an operation that has no answer to be kept.
    pub(crate) fn gone(
        &self,
        key: &RecordKey,
        id: OperationId,
        version: u64,
        by_operator: bool,
    ) -> Option<Put> {
        let secret = self.secret.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let lasts = if by_operator { self.options.max_age + OUTLIVES } else { MARKER };
        Some(Put { name: secret.name(key), value: entry::marker(id, version), lasts, always: true })
    }

    /// From now on, this instance believes nothing of the operation that is of an earlier version.
    pub(crate) fn know(&self, id: OperationId, version: u64) {
        self.known.note(id, version, self.boottime(), MARKER);
    }

    /// Writes to Redis before the caller is answered: with a guard in the way, a client that is told the outcome here could be told on another
    /// instance that it is in progress.
    pub(crate) async fn write(&self, puts: Vec<Put>) {
        if puts.is_empty() {
            return;
        }
        if self.options.guard {
            self.link.write(&puts).await;
        } else {
            self.write_beside(puts);
        }
    }

    /// Writes to Redis beside the requests.
    pub(crate) fn write_beside(&self, puts: Vec<Put>) {
        if !puts.is_empty() {
            let link = Arc::clone(&self.link);
            tokio::spawn(async move { link.write(&puts).await });
        }
    }
}
