//! The cases, one file for each: the story of the bug, what is sent, and what is right.

mod explain;
mod need;
mod shared;

use crate::check::Check;
use crate::settings::Settings;
use crate::verdict::{Outcome, Severity};
pub use explain::explain;
pub use need::Need;
use std::fmt;
use std::pin::Pin;

/// One way in which an idempotency promise is broken.
#[non_exhaustive]
pub struct Case {
    /// Group and name: `race.same`.
    pub name: &'static str,
    /// Whether it is required: without a verdict on it, the exit status is 2.
    pub star: bool,
    /// What is sent.
    pub sent: &'static str,
    /// What is right.
    pub right: &'static str,
    /// How bad it is if it is wrong. `None` for a control: it shows whether the other cases can be believed.
    pub severity: Option<Severity>,
    /// How it is put right.
    pub fix: &'static str,
    /// What has to be given.
    pub needs: &'static [Need],
    /// How many writes it sends at most, those of the crashes aside, which are made once for all cases that judge them.
    pub(crate) writes: fn(&Settings) -> usize,
    /// How often at most it counts the effects of a reference, each time until the count is stable; at least once per reference.
    pub(crate) counts: fn(&Settings) -> usize,
    pub(crate) run: for<'a> fn(&'a Check<'a>) -> Running<'a>,
}

pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

impl Case {
    /// The page about it in the book, from the directory `docs`.
    #[must_use]
    pub fn page(&self) -> String {
        format!("check/{}.md", self.name)
    }

    /// What a wrong result of it means: its severity, or for a control, what becomes of the check.
    #[must_use]
    pub fn if_not(&self) -> &'static str {
        match self.severity {
            Some(severity) => severity.name(),
            None if self.star => "exit status 2",
            None => "inconclusive",
        }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! cases {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*
        /// The text of each case's file, which begins with its story.
        const SOURCES: &[(&str, &str)] = &[$((stringify!($file), include_str!(concat!(stringify!($file), ".rs")))),*];
        /// All cases, in the order in which they run.
        pub const CASES: &[Case] = &[$($file::CASE),*];
    };
}

cases! {
    control_count, control_vary,
    retry, retry_headers, retry_marker, retry_spelling, retry_trace, retry_token,
    fix_4xx, fail_5xx,
    race_same, race_mixed, race_answer, race_keys, race_nodes,
    hangup, hangup_body,
    body_after, body_during, body_deep,
    target, path_spelling,
    caller_other, caller_none, caller_oracle, caller_cookie,
    key_missing, key_malformed, key_tail, key_case, key_form,
    window, window_told,
    crash_before, crash_effect, crash_answered, crash_race, crash_end,
    caller_revoked,
}

/// The cases that were asked for: by name, or by the group before the dot. The controls always run.
pub(crate) fn selected(only: &[String]) -> Result<Vec<&'static Case>, String> {
    let is_named = |case: &Case, name: &str| case.name == name || case.name.starts_with(&format!("{name}."));
    for name in only {
        if !CASES.iter().any(|case| is_named(case, name)) {
            return Err(format!("`{name}` is not a case. `semel check --list` shows them"));
        }
    }
    let is_wanted = |case: &&Case| {
        only.is_empty() || case.name.starts_with("control.") || only.iter().any(|name| is_named(case, name))
    };
    Ok(CASES.iter().filter(is_wanted).collect())
}

/// The table of cases, for people.
#[must_use]
pub fn list() -> String {
    let mut lines = vec![format!("  {:<16} {:<17} {}", "CASE", "IF NOT", "SENT → WHAT IS RIGHT")];
    for case in CASES {
        let star = if case.star { "★" } else { " " };
        let needs: Vec<_> = case.needs.iter().filter_map(Need::flag).collect();
        let needs = if needs.is_empty() { String::new() } else { format!("  [{}]", needs.join(", ")) };
        lines.push(format!(
            "{star} {:<16} {:<17} {} → {}{needs}",
            case.name,
            case.if_not(),
            case.sent,
            case.right
        ));
    }
    lines.push("\n★ required: if it is inconclusive, the exit status is 2. [what a case needs]".into());
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_groups_can_be_chosen() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
        let race: Vec<_> = selected(&["race".into()]).unwrap().iter().map(|case| case.name).collect();
        assert!(race.starts_with(&["control.count", "control.vary", "race.same"]), "{race:?}");
        assert_eq!(selected(&["retry".into()]).unwrap().len(), 2 + 6);
    }
}
