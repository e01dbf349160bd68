//! Mistakes that can be switched on, to see whether the tests notice.
//!
//! With the feature `planted-bugs`, which nothing turns on by itself, the environment variable `SEMEL_PLANTED_BUG` names the one
//! mistake that a process makes. Without the feature every question is answered "no" while compiling, and nothing of it is left in
//! the program.

mod bug;

pub use bug::Bug;

/// Whether this mistake is to be made.
#[cfg(not(feature = "planted-bugs"))]
#[must_use]
#[inline(always)]
pub const fn bug(_bug: Bug) -> bool {
    false
}

// Without the feature it is known while compiling that there are none.
#[cfg(not(feature = "planted-bugs"))]
const _: () = assert!(!bug(Bug::LeaseStolen));

/// Whether this mistake is to be made.
#[cfg(feature = "planted-bugs")]
#[must_use]
pub fn bug(bug: Bug) -> bool {
    switch::planted() == Some(bug)
}

/// The time of day of this machine, in milliseconds since 1970: what nothing is to be judged by.
#[cfg(feature = "std")]
#[must_use]
pub fn local_millis() -> i64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use super::Bug;
    use std::sync::OnceLock;

    const VARIABLE: &str = "SEMEL_PLANTED_BUG";

    /// The mistake that this process makes. It says so, and refuses a name that is none: a check that passes because of a slip in
    /// the name would prove nothing.
    pub(super) fn planted() -> Option<Bug> {
        static PLANTED: OnceLock<Option<Bug>> = OnceLock::new();
        *PLANTED.get_or_init(|| {
            let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
            let Some(bug) = Bug::named(&name) else {
                let names: Vec<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
                eprintln!(
                    "{VARIABLE} is {name:?}, and there is no such bug. There are: {}",
                    names.join(", ")
                );
                std::process::exit(2);
            };
            eprintln!("PLANTED BUG {name}: {}", bug.what());
            Some(bug)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_name_of_its_own_and_is_found_by_it() {
        for bug in Bug::ALL {
            assert_eq!(Bug::named(bug.name()), Some(*bug));
            assert!(bug.what().ends_with('.'), "{}: {}", bug.name(), bug.what());
        }
        assert_eq!(Bug::named("no-such-bug"), None);
    }
}
