//! `[limits]`: the gateway's bounds.

use super::section::Section;
use crate::limits::Limits;
use crate::setting::{show_duration, show_size};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SHORTEST: Duration = Duration::from_millis(10);
/// What comes after the longest `timeout` before a stop gives up on its request: time to store the outcome.
const TO_STORE: Duration = Duration::from_secs(5);

/// What large bodies may take of the memory.
pub(super) const BODY_MEMORY: usize = 128 << 20;

/// How long the operations of all routes may take: the one that may take least, and the one that may take most.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) shortest: Duration,
    pub(super) longest: Duration,
}

/// The bounds, by how long operations may take; and what large bodies may take of the memory, where the largest has `largest` bytes.
pub(super) fn read(mut section: Section<'_, '_>, timeouts: Timeouts, largest: usize) -> (Limits, usize) {
    let Timeouts { shortest, longest: slowest } = timeouts;
    let default = Limits::default();
    let mut limits = Limits {
        // That nothing was sent has to be known before the operation's time is over, or it ends in doubt. HTTP/2 takes up to twice as
        // long: it connects, and asks for a sign of life.
        connect_timeout: default.connect_timeout.min(shortest / 3),
        // Nobody stops, or gives up on the service, before the slowest operation had its time.
        upstream_give_up: default.upstream_give_up.max(slowest * 2),
        drain: default.drain.max(slowest + TO_STORE),
        ..default
    };
    let Limits {
        header_bytes,
        header_timeout,
        body_timeout,
        min_body_rate,
        pass_through_timeout,
        idle_timeout,
        connections,
        requests_in_flight,
        pass_through_body,
        connect_timeout,
        upstream_give_up,
        upstream_idle_timeout,
        upstream_idle_connections,
        drain,
    } = &mut limits;
    for (name, example, field) in [
        ("header_timeout", "10s", header_timeout),
        ("body_timeout", "30s", body_timeout),
        ("pass_through_timeout", "1h", pass_through_timeout),
        ("idle_timeout", "75s", idle_timeout),
        ("upstream_idle_timeout", "30s", upstream_idle_timeout),
        ("drain", "30s", drain),
    ] {
        if let Some(given) = section.duration(name, example, SHORTEST..=DAY) {
            *field = given.value;
        }
    }
    if let Some(given) = section.duration("connect_timeout", "3s", SHORTEST..=DAY) {
        if given.value > shortest / 2 {
            let most = show_duration(shortest / 2);
            section.wrong(
                &given.at,
                "an operation could end in doubt before the service is known to be unreachable",
                format!("write at most \"{most}\", half of the shortest `timeout` of a route"),
            );
        }
        *connect_timeout = given.value;
    }
    if let Some(given) = section.duration("upstream_give_up", "10m", SHORTEST..=DAY * 7) {
        if given.value < slowest {
            let timeout = show_duration(slowest);
            let problem = "the gateway would give up on the service before its `timeout`";
            section.wrong(
                &given.at,
                problem,
                format!("write at least \"{timeout}\", the longest `timeout` of a route"),
            );
        }
        *upstream_give_up = given.value;
    }
    let mut number = |name, least, field: &mut usize| {
        let given = section.number(name, least..=1_000_000);
        if let Some(number) = given.and_then(|given| usize::try_from(given.value).ok()) {
            *field = number;
        }
    };
    number("connections", 1, connections);
    number("requests_in_flight", 1, requests_in_flight);
    // Kept for the next burst: as many as may be in use at once.
    *upstream_idle_connections = *requests_in_flight;
    number("upstream_idle_connections", 0, upstream_idle_connections);
    let bytes = section.size("header_bytes", "32KiB", 8 << 10..=1 << 20);
    if let Some(bytes) = bytes.and_then(|given| usize::try_from(given.value).ok()) {
        *header_bytes = bytes;
    }
    if let Some(rate) = section.size("min_body_rate", "240B", 1..=1 << 30) {
        *min_body_rate = rate.value;
    }
    let mut body_memory = BODY_MEMORY.max(largest);
    if let Some(given) = section.size("body_memory", "128MiB", 1 << 20..=1 << 40) {
        body_memory = usize::try_from(given.value).unwrap_or(usize::MAX);
        if body_memory < largest {
            let problem = "`body_memory` is smaller than a route's `max_request_body`";
            let right = format!(
                "write at least \"{}\", the largest `max_request_body` of a route",
                show_size(largest as u64)
            );
            section.wrong(&given.at, problem, right);
        }
    }
    if let Some(bytes) = section.size("pass_through_body", "100MiB", 1..=1 << 40) {
        *pass_through_body = Some(bytes.value);
    }
    section.end();
    (limits, body_memory)
}
