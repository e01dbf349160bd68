//! Reads what `/metrics` says, so that what is exported is the same by construction.

use std::collections::BTreeMap;

/// Metrics of one name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Family<'a> {
    pub(super) name: &'a str,
    pub(super) help: &'a str,
    pub(super) unit: &'a str,
    pub(super) kind: &'a str,
    pub(super) series: BTreeMap<Labels, Series>,
}

/// Names and values, in the order in which they are written.
pub(super) type Labels = Vec<(String, String)>;

/// The values of one set of labels: by suffix, and a histogram's buckets by their upper bounds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Series {
    /// Of a counter or a gauge.
    pub(super) value: Option<f64>,
    pub(super) sum: f64,
    pub(super) count: u64,
    /// Cumulative, the last one without a bound.
    pub(super) buckets: Vec<(f64, u64)>,
}

/// The metrics of a text that we wrote ourselves. What is not understood is left out.
pub(super) fn read(text: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            describe(&mut families, comment);
        } else if let Some(family) = families.last_mut() {
            let _not_understood = sample(family, line);
        }
    }
    families
}

fn describe<'a>(families: &mut Vec<Family<'a>>, comment: &'a str) {
    let mut words = comment.splitn(3, ' ');
    let (Some(what), Some(name), Some(said)) = (words.next(), words.next(), words.next()) else { return };
    if families.last().is_none_or(|family| family.name != name) {
        families.push(Family { name, ..Family::default() });
    }
    let Some(family) = families.last_mut() else { return };
    match what {
        "HELP" => family.help = said,
        "UNIT" => family.unit = said,
        "TYPE" => family.kind = said,
        _ => {}
    }
}

fn sample(family: &mut Family<'_>, line: &str) -> Option<()> {
    let (series, value) = line.rsplit_once(' ')?;
    let value: f64 = value.parse().ok()?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, read_labels(labels.strip_suffix('}')?)?),
        None => (series, Labels::new()),
    };
    let (bound, labels): (Labels, Labels) = labels.into_iter().partition(|(name, _)| name == "le");
    let series = family.series.entry(labels).or_default();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count is whole and not negative"
    )]
    match name.strip_prefix(family.name)? {
        "" | "_total" => series.value = Some(value),
        "_sum" => series.sum = value,
        "_count" => series.count = value as u64,
        "_bucket" => series.buckets.push((bound.first()?.1.parse().ok()?, value as u64)),
        _ => return None,
    }
    Some(())
}

/// `name="value",name="value"`, where a backslash escapes a quote, a backslash or a line's end.
fn read_labels(text: &str) -> Option<Labels> {
    let mut labels = Labels::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use semel::observe::{Event, Observer as _, StoreCall};
    use std::time::Duration;

    #[test]
    fn what_we_write_is_read_again() {
        let metrics = Metrics::new(["a \"b\"\\ c"]);
        metrics.count("a \"b\"\\ c", Event::ReserveReplay);
        metrics.store_call(StoreCall::Create, Duration::from_millis(2), true);
        let text = metrics.render();
        let families = read(&text);
        let family = |name: &str| families.iter().find(|family| family.name == name).unwrap();
        let replays = family("api_idempotency_reserve_replay");
        assert_eq!(replays.kind, "counter");
        let operation = |name: &str| vec![("operation".to_owned(), name.to_owned())];
        assert_eq!(replays.series[&operation("a \"b\"\\ c")].value, Some(1.0));
        assert_eq!(replays.series[&operation("unconfigured")].value, Some(0.0));
        let store = family("api_idempotency_store_seconds");
        assert_eq!((store.kind, store.unit), ("histogram", "seconds"));
        let creates = store
            .series
            .iter()
            .find(|(labels, _)| {
                labels.contains(&("call".into(), "create".into()))
                    && labels.contains(&("result".into(), "ok".into()))
            })
            .unwrap()
            .1;
        assert_eq!((creates.count, creates.sum), (1, 0.002));
        assert_eq!(creates.buckets.last(), Some(&(f64::INFINITY, 1)));
        assert_eq!(creates.buckets.iter().find(|(bound, _)| *bound == 0.001), Some(&(0.001, 0)));
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        let read: usize = families
            .iter()
            .flat_map(|family| family.series.values())
            .map(|series| if series.value.is_some() { 1 } else { 2 + series.buckets.len() })
            .sum();
        assert_eq!(read, lines, "every line is read: {text}");
    }
}
