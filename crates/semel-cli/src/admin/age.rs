//! Moments as people say them: by how far they are from now, on the store's clock.

use jiff::Timestamp;

/// `3m ago`, `in 23h`, or the text itself where it is no moment.
pub(crate) fn relative(moment: &str, now: Timestamp) -> String {
    let Ok(moment) = moment.parse::<Timestamp>() else { return moment.to_owned() };
    let seconds = now.as_second() - moment.as_second();
    match seconds {
        0 => "now".into(),
        1.. => format!("{} ago", length(seconds.unsigned_abs())),
        _ => format!("in {}", length(seconds.unsigned_abs())),
    }
}

/// In the largest unit of which there are at least two, or the only one there is.
fn length(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let now: Timestamp = "2025-06-15T12:00:00Z".parse().unwrap();
        for (moment, said) in [
            ("2025-06-15T12:00:00.000Z", "now"),
            ("2025-06-15T11:59:59.000Z", "1s ago"),
            ("2025-06-15T11:58:01Z", "119s ago"),
            ("2025-06-15T11:57:00Z", "3m ago"),
            ("2025-06-15T09:30:00Z", "2h ago"),
            ("2025-06-03T12:00:00Z", "12d ago"),
            ("2025-06-16T11:00:00Z", "in 23h"),
            ("never", "never"),
        ] {
            assert_eq!(relative(moment, now), said, "{moment}");
        }
    }
}
