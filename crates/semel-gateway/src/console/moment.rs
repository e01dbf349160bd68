//! Moments: relative to now, with the exact one in the element.

use askama::filters::HtmlSafe;
use jiff::Timestamp;
use std::fmt;

/// A moment as pages show it. The script puts it into the reader's zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Moment {
    at: Option<Timestamp>,
    now: Timestamp,
}

impl Moment {
    /// The moment that the API tells, seen from its now.
    pub(super) fn new(at: &str, now: &str) -> Self {
        Self { at: at.parse().ok(), now: now.parse().unwrap_or_else(|_| Timestamp::now()) }
    }

    /// Seconds ago; negative: still to come.
    pub(super) fn seconds_ago(&self) -> i64 {
        self.at.map_or(0, |at| self.now.as_second() - at.as_second())
    }

    /// `3 min ago`, `in 12 s`.
    pub(super) fn relative(&self) -> String {
        if self.at.is_none() {
            return "never".into();
        }
        match self.seconds_ago() {
            0 => "now".into(),
            ago @ 1.. => format!("{} ago", span(ago)),
            ahead => format!("in {}", span(-ahead)),
        }
    }
}

/// A length of time in its largest unit.
pub(super) fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// An HTML element, made of digits and our own words.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = self.at else { return f.write_str("never") };
        let exact = at.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "<time datetime=\"{at:.3}\" title=\"{exact}\">{}</time>", self.relative())
    }
}

impl HtmlSafe for Moment {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_from_now_with_the_exact_one_in_the_element() {
        let now = "2026-11-19T22:30:00.000Z";
        for (at, shown) in [
            ("2026-11-19T22:29:30.000Z", "30 s ago"),
            ("2026-11-19T22:00:00.000Z", "30 min ago"),
            ("2026-11-19T19:00:00.000Z", "3 h ago"),
            ("2026-11-10T22:30:00.000Z", "9 days ago"),
            ("2026-11-19T22:30:12.000Z", "in 12 s"),
            ("never", "never"),
            ("<script>", "never"),
        ] {
            assert_eq!(Moment::new(at, now).relative(), shown);
        }
        assert_eq!(
            Moment::new("2026-11-19T22:29:30.120Z", now).to_string(),
            "<time datetime=\"2026-11-19T22:29:30.120Z\" title=\"2026-11-19 22:29:30 UTC\">30 s ago</time>"
        );
    }
}
