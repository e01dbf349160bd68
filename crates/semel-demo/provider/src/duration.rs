//! Durations as people write them: `1500ms`, `60s`.

use serde::{Deserialize as _, Deserializer, Serializer};
use std::time::Duration;

/// The longest that is taken: an hour is longer than any test, and far from where adding to a clock overflows.
const LONGEST: Duration = Duration::from_secs(3600);

pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let number = |digits: &str| digits.parse::<u64>().ok();
    let parsed = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(millis), _) => number(millis).map(Duration::from_millis),
        (None, Some(seconds)) => number(seconds).map(Duration::from_secs),
        (None, None) => None,
    };
    match parsed {
        Some(duration) if duration <= LONGEST => Ok(duration),
        Some(_) => Err(format!("{text:?} is longer than {}s", LONGEST.as_secs())),
        None => Err(format!("{text:?} is not a duration: write it as \"1500ms\" or \"60s\"")),
    }
}

pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let text = match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    };
    serializer.serialize_str(&text)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_and_an_end() {
        assert_eq!(parse("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("60s"), Ok(Duration::from_secs(60)));
        for text in ["", "s", "ms", "2", "-1s", "2m", "3601s", "99999999999999999999s"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
