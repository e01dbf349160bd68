//! The provider's word, signed: finds the record that it is about and settles it.
//!
//! Nothing of a delivery is remembered but what it did to the record. A delivery that comes again finds its own doing: the settler's
//! token is derived from source and message id, and the history names both. So deliveries may come any number of times, in any
//! order, at any instance.

mod answer;
mod event;

pub use answer::{WebhookAnswer, WebhookResult};
pub use semel_http::webhook::{InvalidSecret, WebhookSecret};

use crate::evidence::{Submitted, refused, set_down, submit};
use crate::rules::Rules;
use bytes::Bytes;
use event::{Event, Subject};
use http::HeaderMap;
use semel::transition::{About, Evidence, Refusal, Settlement, Windows, settle};
use semel::{Actor, Engine, KeyScope, Owner, Record, StoreError, Timestamp};
use semel_http::webhook::SignedMessage;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// How far a message's time may be off, by the store's clock, where nothing else is said.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// A body's length at most, where nothing else is said: a stored response of a mebibyte, as base64 and some more.
const LONGEST_BODY: usize = 2 * 1024 * 1024;

/// When to come again after an error of the store.
const RETRY_STORE: Duration = Duration::from_secs(5);

/// What all sources are counted under that are not configured: strangers must not make series of counters.
const NOBODY: &str = "unknown";

/// Takes webhooks in, whatever the web framework. Cheap to clone; clones count together.
///
/// ```
/// use semel::{Engine, MemoryStore, Policy};
/// use semel_worker::{OperationRules, WebhookIntake, WebhookSecret};
/// use std::sync::Arc;
///
/// # async fn handle(headers: http::HeaderMap, body: bytes::Bytes) -> Result<(), semel_worker::InvalidSecret> {
/// let engine = Engine::new(MemoryStore::new());
/// let rules: semel_worker::Rules = Arc::new(|_| Some(OperationRules::new(Policy::default())));
/// let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let intake = WebhookIntake::new(engine, rules).source("provider", [secret]);
/// let answer = intake.handle("provider", &headers, body).await.into_response();
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct WebhookIntake {
    engine: Engine,
    rules: Rules,
    sources: BTreeMap<String, Source>,
    nobody: Arc<Counters>,
    max_body: usize,
    tolerance: Duration,
}

#[derive(Clone)]
struct Source {
    secrets: Arc<[WebhookSecret]>,
    counters: Arc<Counters>,
}

type Counters = [AtomicU64; WebhookResult::ALL.len()];

impl WebhookIntake {
    /// An intake that knows no source yet.
    #[must_use]
    pub fn new(engine: Engine, rules: Rules) -> Self {
        Self {
            engine,
            rules,
            sources: BTreeMap::new(),
            nobody: Arc::default(),
            max_body: LONGEST_BODY,
            tolerance: TOLERANCE,
        }
    }

    /// Takes in what this source signs with one of these secrets: several while one replaces another.
    #[must_use]
    pub fn source(
        mut self,
        name: impl Into<String>,
        secrets: impl IntoIterator<Item = WebhookSecret>,
    ) -> Self {
        let source = Source { secrets: secrets.into_iter().collect(), counters: Arc::default() };
        self.sources.insert(name.into(), source);
        self
    }

    /// Counts on where an earlier intake of the same process is, whose place this one takes.
    #[must_use]
    pub fn counting_on(mut self, earlier: &Self) -> Self {
        self.nobody = Arc::clone(&earlier.nobody);
        for (name, source) in &mut self.sources {
            if let Some(earlier) = earlier.sources.get(name) {
                source.counters = Arc::clone(&earlier.counters);
            }
        }
        self
    }

    /// Bodies may have so many bytes. Default 2 MiB.
    #[must_use]
    pub fn with_max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Messages may have been sent so long ago, or so far in the future, by the store's clock. Default 5 minutes.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// How many bytes of a body are worth reading: a longer one is refused.
    #[must_use]
    pub fn max_body(&self) -> usize {
        self.max_body
    }

    /// A body that was not read to its end because it is longer than [`max_body`](Self::max_body).
    #[must_use]
    pub fn too_large(&self, source: &str) -> WebhookAnswer {
        self.counted(source, self.refuse_length())
    }

    /// How often which source's webhooks came to what. Sources that are not configured count together, as `unknown`.
    #[must_use]
    pub fn counts(&self) -> Vec<(&str, WebhookResult, u64)> {
        let sources = self.sources.iter().map(|(name, source)| (name.as_str(), &*source.counters));
        sources
            .chain([(NOBODY, &*self.nobody)])
            .flat_map(|(name, counters)| {
                let count = move |(result, counter): (WebhookResult, &AtomicU64)| {
                    (name, result, counter.load(Ordering::Relaxed))
                };
                WebhookResult::ALL.into_iter().zip(counters).map(count)
            })
            .collect()
    }

    /// Takes a webhook of this source in. Whatever is not 2xx is to be delivered again.
    ///
    /// Dropping it midway leaves the outcome settled or not; the delivery comes again.
    pub async fn handle(&self, source: &str, headers: &HeaderMap, body: Bytes) -> WebhookAnswer {
        self.handle_after(source, headers, body, |_| std::future::ready(Ok::<_, Infallible>(()))).await
    }

    /// As [`handle`](Self::handle), and has `before` write what the outcome means for the service's own tables: once the message is
    /// known to be genuine and to settle this record, and before it does.
    ///
    /// If `before` fails nothing is settled, and the message comes again. So it does if the process dies between the two: what
    /// `before` writes has to be written once, however often it is called.
    pub async fn handle_after<E: Display, W: Future<Output = Result<(), E>> + Send>(
        &self,
        source: &str,
        headers: &HeaderMap,
        body: Bytes,
        before: impl FnOnce(Record) -> W + Send,
    ) -> WebhookAnswer {
        let answer = match self.take_in(source, headers, &body, before).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(source, %error, "webhook not stored");
                WebhookAnswer::of(WebhookResult::StoreError)
                    .because("The store is unavailable: deliver it again.")
                    .again_after(RETRY_STORE)
            }
        };
        tracing::debug!(source, result = answer.result.as_str(), "a webhook");
        self.counted(source, answer)
    }

    async fn take_in<E: Display, W: Future<Output = Result<(), E>> + Send>(
        &self,
        name: &str,
        headers: &HeaderMap,
        body: &Bytes,
        before: impl FnOnce(Record) -> W + Send,
    ) -> Result<WebhookAnswer, StoreError> {
        let Some(source) = self.sources.get(name) else {
            return Ok(WebhookAnswer::of(WebhookResult::UnknownSource)
                .because("No such source is configured: check the URL that webhooks are sent to."));
        };
        if body.len() > self.max_body {
            return Ok(self.refuse_length());
        }
        // Nothing is asked of the store for whoever cannot sign.
        let Some(signed) = SignedMessage::verified(headers, body, &source.secrets) else {
            return Ok(WebhookAnswer::of(WebhookResult::BadSignature).because(
                "webhook-id, webhook-timestamp and webhook-signature are required, signed with a secret of this source.",
            ));
        };
        let malformed = |error: event::InvalidEvent| {
            WebhookAnswer::of(WebhookResult::Malformed).because(error.to_string())
        };
        let event = match Event::from_json(body) {
            Ok(event) => event,
            Err(error) => return Ok(malformed(error)),
        };
        if event.says_nothing() {
            return Ok(WebhookAnswer::of(WebhookResult::Ignored).because(
                "It has no `outcome`, or names neither an `operation_id` nor `tenant`, `operation` and `key`.",
            ));
        }
        let subject = match event.subject() {
            Ok(subject) => subject,
            Err(error) => return Ok(malformed(error)),
        };
        let by_key = matches!(subject, Subject::Key(_));
        let (now, found) = match subject {
            Subject::Operation(id) => self.engine.find(id).await?,
            Subject::Key(key) => {
                let key = self.engine.stored_key(&key).await?.in_scope(KeyScope::Operation);
                let (now, found) = self.engine.store().read(&key).await?;
                match found {
                    Some(found) => (now.earliest, Some(found)),
                    // Across operations the key finds a record of any; only one of the operation that was named is meant.
                    None => {
                        let key = key.in_scope(KeyScope::Tenant);
                        let (now, found) = self.engine.store().read(&key).await?;
                        (now.earliest, found.filter(|record| record.key.operation == key.operation))
                    }
                }
            }
        };
        // By the clock that its sender has too: the store's time may lag behind a clock that is not believed yet.
        if !self.in_time(signed.seconds, self.wall()) {
            return Ok(WebhookAnswer::of(WebhookResult::OutOfTime)
                .because("webhook-timestamp is too far from now: sign each delivery when it is sent."));
        }
        let record =
            found.and_then(|record| (self.rules)(&record.key.operation).map(|rules| (record, rules)));
        let Some((record, rules)) = record else {
            return Ok(nothing_there(by_key));
        };
        let said = match event.outcome() {
            Ok(said) => said.as_str(),
            Err(error) => return Ok(malformed(error)),
        };
        let about = About { operation_id: record.operation_id, attempt: event.attempt };
        let evidence = match event.evidence(rules.policy.store_response) {
            Ok(evidence) => evidence,
            Err(error) => return Ok(malformed(error)),
        };
        let message = signed.id;
        let settlement = Settlement {
            settler: settler(name, message, &record),
            actor: Actor::Webhook(name.into()),
            evidence,
            note: Some(format!("{said}, message {message}")),
            windows: Windows::from(&*rules.policy),
        };
        // A key may have stood for another operation when the message was written: one that was released, or whose window is over. That
        // the other one failed is no proof that this one did nothing, and that the other one happened is no proof that this one did.
        if by_key {
            let known = set_down(&self.engine, &record, &settlement, now).await?;
            let answer = if known {
                WebhookAnswer::of(WebhookResult::Known)
            } else {
                WebhookAnswer::of(WebhookResult::Kept).because(
                    "It names a key, and a key may stand for several operations over time: without an `operation_id` it \
                     settles nothing.",
                )
            };
            return Ok(answer.about(record.operation_id));
        }
        let heard = match settle(&record, &about, &settlement, now) {
            // What does not settle this record must not settle the one that it may become meanwhile: nothing was written before it.
            Err(refusal) if record.owner != settlement.settler => {
                refused(&self.engine, &about, &settlement, now, (refusal, Box::new(record))).await?
            }
            Err(_) => submit(&self.engine, &about, &settlement, now).await?,
            Ok(_) => {
                if let Err(error) = before(record).await {
                    tracing::warn!(source = name, operation_id = %about.operation_id, %error, "webhook evidence not \
                                                                                               stored, retrying");
                    return Ok(WebhookAnswer::of(WebhookResult::StoreError)
                        .because("The evidence could not be stored: deliver it again.")
                        .again_after(RETRY_STORE)
                        .about(about.operation_id));
                }
                submit(&self.engine, &about, &settlement, now).await?
            }
        };
        Ok(answer_to(&heard, &about, &settlement))
    }

    /// The time of day. Not store time: tests move that by hand, and senders of webhooks do not share it.
    fn wall(&self) -> Timestamp {
        let wall = self.engine.environment().wall();
        let now = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(0).plus(now)
    }

    fn in_time(&self, seconds: i64, now: Timestamp) -> bool {
        let sent = Timestamp::from_millis(seconds.saturating_mul(1000));
        now.after(sent).max(sent.after(now)) <= self.tolerance
    }

    fn refuse_length(&self) -> WebhookAnswer {
        WebhookAnswer::of(WebhookResult::TooLarge)
            .because(format!("The body is longer than {} bytes.", self.max_body))
    }

    fn counted(&self, source: &str, answer: WebhookAnswer) -> WebhookAnswer {
        let counters = self.sources.get(source).map_or(&*self.nobody, |source| &*source.counters);
        if let Some(counter) = counters.get(answer.result as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

/// The answer if the store has no such operation. A message by key never settles anything, so it need not be delivered again.
fn nothing_there(by_key: bool) -> WebhookAnswer {
    if by_key {
        return WebhookAnswer::of(WebhookResult::Ignored)
            .because("It names an unknown key; without an `operation_id` it settles nothing.");
    }
    WebhookAnswer::of(WebhookResult::NoSuchOperation).because("No such operation, or it was purged.")
}

/// Whether it says what is true of the operation, whichever attempt it is about.
fn for_good(settlement: &Settlement) -> bool {
    matches!(settlement.evidence, Evidence::Completed { .. })
}

/// Tells the sender what became of its evidence.
fn answer_to(heard: &Submitted, about: &About, settlement: &Settlement) -> WebhookAnswer {
    let answer = match heard {
        Submitted::Settled(_) => WebhookAnswer::of(WebhookResult::Settled),
        Submitted::Known => WebhookAnswer::of(WebhookResult::Known),
        Submitted::Kept(..) if about.attempt.is_none() && !for_good(settlement) => {
            WebhookAnswer::of(WebhookResult::Kept).because(
                "It does not say which attempt it is about: failed and not_executed settle nothing without an `attempt`, the request's Semel-Attempt.",
            )
        }
        Submitted::Kept(record, Refusal::OtherAttempt) => {
            let about = about.attempt.unwrap_or_default();
            WebhookAnswer::of(WebhookResult::Kept).because(format!(
                "It is about attempt {about}, and attempt {} is the one in doubt.",
                record.attempt
            ))
        }
        Submitted::Kept(record, _) => WebhookAnswer::of(WebhookResult::Kept)
            .because(format!("The outcome is not unknown: it is {}.", record.state.as_str())),
        Submitted::TooEarly(wait) => {
            let detail = match settlement.evidence {
                Evidence::Absent => "Its lease has not expired: deliver it again later.",
                _ => "It is still in progress: deliver it again later.",
            };
            WebhookAnswer::of(WebhookResult::TooEarly).because(detail).again_after(*wait)
        }
        Submitted::Missing => WebhookAnswer::of(WebhookResult::NoSuchOperation),
    };
    answer.about(about.operation_id)
}

/// The token of whoever settles by this message: the same whenever and wherever it is delivered.
fn settler(source: &str, message: &str, record: &Record) -> Owner {
    let mut hash = Sha256::new();
    hash.update(b"semel webhook settler\0");
    hash.update(record.operation_id.as_bytes());
    hash.update((source.len() as u64).to_be_bytes());
    hash.update(source);
    hash.update(message);
    let digest: [u8; 32] = hash.finalize().into();
    let mut token = [0; 16];
    token.copy_from_slice(&digest[..16]);
    Owner::from_bytes(token)
}
