//! How the provider behaves. All of it can be changed while it runs, and nothing of it is kept: a new process begins with what its
//! command line says.

use crate::duration;
use crate::misbehaviour::Misbehaviour;
use crate::secret::{InvalidWebhook, Secret};
use axum::http::Uri;
use axum::http::uri::Scheme;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// How a provider behaves.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Whether a request that comes again under its identity has no second effect. Default: yes.
    pub deduplicates: bool,
    /// Whether it can be asked what became of an identity. Default: yes.
    pub queryable: bool,
    /// What goes wrong, and how often. Default: nothing.
    pub misbehave: Misbehaviour,
    /// What the dice are seeded with. Default 0.
    pub seed: u64,
    /// How long a stall is. Default 60 s.
    #[serde(with = "duration")]
    pub stall: Duration,
    /// Where outcomes are told. Default: nowhere.
    pub webhook: Option<Webhook>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deduplicates: true,
            queryable: true,
            misbehave: Misbehaviour::default(),
            seed: 0,
            stall: Duration::from_secs(60),
            webhook: None,
        }
    }
}

/// Where outcomes are told, and how well.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Webhook {
    #[serde(serialize_with = "as_text")]
    pub(crate) url: Uri,
    #[serde(skip)]
    pub(crate) secret: Secret,
    /// How often each message is tried in the life of a process. Default 12.
    pub attempts: u32,
    /// How long after the first try the second comes; each later one waits twice as long. Default 250 ms.
    #[serde(with = "duration")]
    pub first_retry: Duration,
    /// The longest wait between two tries. Default 30 s.
    #[serde(with = "duration")]
    pub longest_retry: Duration,
    /// How many messages are under way at the same time. With 1, first tries go out in order. Default 8.
    pub concurrent: usize,
    /// The share of messages that are sent once more after they were taken. Default 0.
    pub duplicate: f64,
    /// Messages are held back at random for up to this long. Default 0.
    #[serde(with = "duration")]
    pub delay: Duration,
    /// Messages are gathered in blocks of this many (or of fewer, after half a second) and sent in random order. Default 0: not.
    pub shuffle: usize,
}

impl Webhook {
    /// A webhook to this URL, signed with this secret.
    ///
    /// # Errors
    /// The URL is not of the form `http://host[:port][/path]`.
    pub fn new(url: &str, secret: Secret) -> Result<Self, InvalidWebhook> {
        let parsed = url.parse::<Uri>().ok();
        let usable = parsed.filter(|url| url.scheme() == Some(&Scheme::HTTP) && url.host().is_some());
        let Some(url) = usable else {
            let detail = format!(
                "{url:?} is not a webhook URL: write it as \"http://127.0.0.1:8081/v1/webhooks/provider\""
            );
            return Err(InvalidWebhook(detail));
        };
        Ok(Self {
            url,
            secret,
            attempts: 12,
            first_retry: Duration::from_millis(250),
            longest_retry: Duration::from_secs(30),
            concurrent: 8,
            duplicate: 0.0,
            delay: Duration::ZERO,
            shuffle: 0,
        })
    }

    fn check(self) -> Result<Self, InvalidWebhook> {
        if self.attempts == 0 || self.concurrent == 0 || self.concurrent > 1024 {
            let detail = "a webhook has attempts from 1 up, and from 1 to 1024 messages concurrent";
            return Err(InvalidWebhook(detail.to_owned()));
        }
        if !(0.0..=1.0).contains(&self.duplicate) {
            let detail =
                format!("the share of duplicate webhooks must be from 0 to 1, not {}", self.duplicate);
            return Err(InvalidWebhook(detail));
        }
        Ok(self)
    }
}

fn as_text<S: serde::Serializer>(url: &Uri, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(url)
}

impl Settings {
    pub(crate) fn check(self) -> Result<Self, InvalidWebhook> {
        let webhook = self.webhook.map(Webhook::check).transpose()?;
        Ok(Self { webhook, ..self })
    }
}

/// A change of the settings: what is not named stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    deduplicates: Option<bool>,
    queryable: Option<bool>,
    misbehave: Option<Misbehaviour>,
    seed: Option<u64>,
    #[serde(default, deserialize_with = "some_duration")]
    stall: Option<Duration>,
    /// Not named: stays as it is. `null`: none any more.
    #[serde(default, deserialize_with = "named")]
    webhook: Option<Option<WebhookChange>>,
}

/// A webhook, or a change of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookChange {
    url: Option<String>,
    secret: Option<Secret>,
    attempts: Option<u32>,
    #[serde(default, deserialize_with = "some_duration")]
    first_retry: Option<Duration>,
    #[serde(default, deserialize_with = "some_duration")]
    longest_retry: Option<Duration>,
    concurrent: Option<usize>,
    duplicate: Option<f64>,
    #[serde(default, deserialize_with = "some_duration")]
    delay: Option<Duration>,
    shuffle: Option<usize>,
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration::deserialize(deserializer).map(Some)
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<WebhookChange>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Change {
    /// Whether the dice are to start again.
    pub(crate) fn is_about_fates(&self) -> bool {
        self.seed.is_some() || self.misbehave.is_some()
    }

    pub(crate) fn apply(self, old: &Settings) -> Result<Settings, InvalidWebhook> {
        let webhook = match self.webhook {
            None => old.webhook.clone(),
            Some(None) => None,
            Some(Some(change)) => Some(change.apply(old.webhook.as_ref())?),
        };
        let changed = Settings {
            deduplicates: self.deduplicates.unwrap_or(old.deduplicates),
            queryable: self.queryable.unwrap_or(old.queryable),
            misbehave: self.misbehave.unwrap_or_else(|| old.misbehave.clone()),
            seed: self.seed.unwrap_or(old.seed),
            stall: self.stall.unwrap_or(old.stall),
            webhook,
        };
        changed.check()
    }
}

impl WebhookChange {
    fn apply(self, old: Option<&Webhook>) -> Result<Webhook, InvalidWebhook> {
        let secret = self.secret.or_else(|| old.map(|old| old.secret.clone()));
        let mut webhook = match (self.url, secret, old) {
            (Some(url), Some(secret), None) => Webhook::new(&url, secret)?,
            (Some(url), Some(secret), Some(old)) => {
                Webhook { url: Webhook::new(&url, secret.clone())?.url, secret, ..old.clone() }
            }
            (None, Some(secret), Some(old)) => Webhook { secret, ..old.clone() },
            _ => return Err(InvalidWebhook("a webhook needs a url and a secret".to_owned())),
        };
        let Webhook { attempts, first_retry, longest_retry, concurrent, duplicate, delay, shuffle, .. } =
            &mut webhook;
        replace(attempts, self.attempts);
        replace(first_retry, self.first_retry);
        replace(longest_retry, self.longest_retry);
        replace(concurrent, self.concurrent);
        replace(duplicate, self.duplicate);
        replace(delay, self.delay);
        replace(shuffle, self.shuffle);
        Ok(webhook)
    }
}

fn replace<T>(old: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *old = new;
    }
}
