//! `[cache]`: the Redis in front of the store.

use super::section::{Section, TextForm};
use crate::setting::InvalidValue;
use semel_redis::{RedisUrl, TierOptions};
use std::path::PathBuf;
use std::time::Duration;

/// The Redis in front of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheConfig {
    /// Where it is.
    pub url: RedisUrl,
    /// How long an answer is used after the store last confirmed it. Default 1 h.
    pub max_age: Duration,
    /// How long a call to Redis may take. Default 5 ms.
    pub timeout: Duration,
    /// Whether duplicates of an operation in progress are told so from Redis. Default: yes.
    pub guard: bool,
    /// Whom to believe, as PEM. Default: the system's authorities.
    pub ca: Option<PathBuf>,
}

const URL: TextForm = TextForm { what: "an address", example: "redis://127.0.0.1" };
const FILE: TextForm = TextForm { what: "the path of a file", example: "/etc/semel/redis-ca.crt" };

/// `None`: there is no such section.
pub(super) fn read(mut section: Section<'_, '_>) -> Option<CacheConfig> {
    section.hide_credentials("url");
    let url = section.parsed("url", URL, |text| {
        text.parse::<RedisUrl>().map_err(|error| InvalidValue::new("invalid Redis URL", error.to_string()))
    });
    let max_age = section.duration("max_age", "1h", TierOptions::MAX_AGE);
    let timeout = section.duration("timeout", "5ms", TierOptions::TIMEOUT);
    let guard = section.flag("guard");
    let ca = section.parsed("ca", FILE, |text| match text.is_empty() {
        true => Err(InvalidValue::new("`ca` is empty", "write the path of a file")),
        false => Ok(PathBuf::from(text)),
    });
    if section.is_there() && !section.has("url") {
        section.missing("url", URL.example);
    }
    if let (Some(url), Some(ca)) = (&url, &ca)
        && !url.value.is_tls()
    {
        let cure = "write url = \"rediss://…\", or remove `ca`";
        section.wrong(&ca.at, "`ca` has no effect: `url` does not begin with rediss", cure);
    }
    section.end();
    let default = TierOptions::default();
    Some(CacheConfig {
        url: url?.value,
        max_age: max_age.map_or(default.max_age, |given| given.value),
        timeout: timeout.map_or(default.timeout, |given| given.value),
        guard: guard.map_or(default.guard, |given| given.value),
        ca: ca.map(|given| given.value),
    })
}
