//! What this process has counted since it started: retries that were told "unknown", and what settled doubt.

use super::Console;
use super::visitor::Visitor;
use super::words::grouped;
use crate::escape::escape;
use std::collections::BTreeMap;

/// Counts of one operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Signals {
    /// Retries that were told that the outcome is unknown: their clients still wait.
    retries: u64,
    /// Settled by a poll, a webhook or an operator.
    settled: u64,
    /// Given up: dead letters.
    given_up: u64,
}

/// A row of the overview.
pub(super) struct SignalRow {
    pub(super) operation: String,
    pub(super) retries: String,
    pub(super) settled: String,
    pub(super) given_up: String,
}

/// What came of webhooks of one source.
pub(super) struct WebhookRow {
    pub(super) source: String,
    pub(super) result: String,
    pub(super) count: String,
}

/// The counts, where this user may see them: they cover all tenants.
pub(super) async fn counted(console: &Console, visitor: &Visitor) -> (Vec<SignalRow>, Vec<WebhookRow>) {
    let Some(text) = console.api.text(visitor, "/metrics").await else { return (Vec::new(), Vec::new()) };
    let (signals, webhooks) = parse(&text);
    let rows = signals.into_iter().map(|(operation, signals)| SignalRow {
        operation: escape(&operation),
        retries: grouped(signals.retries),
        settled: grouped(signals.settled),
        given_up: grouped(signals.given_up),
    });
    let webhooks = webhooks.into_iter().map(|((source, result), count)| WebhookRow {
        source: escape(&source),
        result: escape(&result),
        count: grouped(count),
    });
    (rows.collect(), webhooks.collect())
}

type Webhooks = BTreeMap<(String, String), u64>;

/// Reads the lines of Prometheus's text format that say it. Operations without any of it are left out.
fn parse(text: &str) -> (BTreeMap<String, Signals>, Webhooks) {
    let (mut signals, mut webhooks) = (BTreeMap::<String, Signals>::new(), Webhooks::new());
    for line in text.lines().filter_map(|line| line.strip_prefix("api_idempotency_")) {
        let Some((name, rest)) = line.split_once('{') else { continue };
        let Some((labels, value)) = rest.rsplit_once('}') else { continue };
        let count = value.trim().parse::<f64>().unwrap_or_default();
        if count < 1.0 {
            continue;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count, and at least one"
        )]
        let count = count as u64;
        let label = |wanted: &str| {
            let (_, after) = labels.split_once(&format!("{wanted}=\""))?;
            after.split_once('"').map(|(value, _)| value.to_owned())
        };
        if name == "webhooks_total" {
            if let (Some(source), Some(result)) = (label("source"), label("result")) {
                webhooks.insert((source, result), count);
            }
            continue;
        }
        let Some(operation) = label("operation") else { continue };
        let of = |signals: &mut BTreeMap<String, Signals>, set: fn(&mut Signals, u64)| {
            set(signals.entry(operation.clone()).or_default(), count);
        };
        match name {
            "reserve_unknown_total" => of(&mut signals, |signals, count| signals.retries = count),
            "reconcile_resolved_total" => of(&mut signals, |signals, count| signals.settled = count),
            "reconcile_failed_total" => of(&mut signals, |signals, count| signals.given_up = count),
            _ => {}
        }
    }
    (signals, webhooks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_by_operation() {
        let text = "# HELP api_idempotency_reserve_unknown_total Retries\n\
                    api_idempotency_reserve_unknown_total{operation=\"pay\"} 3\n\
                    api_idempotency_reserve_unknown_total{operation=\"refund\"} 0\n\
                    api_idempotency_reconcile_resolved_total{operation=\"pay\"} 2\n\
                    api_idempotency_webhooks_total{source=\"bank\",result=\"settled\"} 4\n\
                    api_idempotency_clock_hold_seconds 0\n";
        let (signals, webhooks) = parse(text);
        let pay = Signals { retries: 3, settled: 2, given_up: 0 };
        assert_eq!(signals, BTreeMap::from([("pay".to_owned(), pay)]));
        assert_eq!(webhooks, BTreeMap::from([(("bank".into(), "settled".into()), 4)]));
    }
}
