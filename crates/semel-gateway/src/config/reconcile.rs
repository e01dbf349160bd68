//! `[route.reconcile]`: how doubt is settled by asking.

use super::section::{Section, TextForm};
use super::tls;
use crate::route::{PollUrl, ReconcileConfig};
use std::time::Duration;

const EXAMPLE: &str = PollUrl::EXAMPLE;

pub(super) fn read(mut section: Section<'_, '_>) -> Option<ReconcileConfig> {
    let longest = Duration::from_secs(24 * 60 * 60);
    let there = section.is_there();
    section.hide_credentials("poll");
    let given = section.has("poll");
    let poll = section.parsed("poll", TextForm { what: "an address", example: EXAMPLE }, PollUrl::parse);
    let every = section.duration("every", "5s", Duration::from_millis(100)..=longest);
    let attempts = section.number("attempts", 1..=1000);
    let absence_is_proof = section.flag("absence_is_proof");
    if there && !given {
        section.missing("poll", EXAMPLE);
    }
    let is_https = poll.as_ref().is_none_or(|given| given.value.is_https());
    let tls = tls::read_client(section.section("tls", "[route.reconcile.tls]"), "poll", is_https);
    section.end();
    Some(ReconcileConfig {
        poll: poll?.value,
        tls,
        every: every.map_or(Duration::from_secs(5), |every| every.value),
        attempts: attempts.and_then(|attempts| u32::try_from(attempts.value).ok()).unwrap_or(12),
        absence_is_proof: absence_is_proof.is_some_and(|flag| flag.value),
    })
}
