//! Which bugs `cargo xtask test` plants: three a day, of those that are quick to build. Each of these has its turn within two weeks;
//! the others are planted by `cargo xtask prove planted` alone.

use super::patch::{Patch, Test};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many there is time for.
const A_DAY: usize = 3;

/// Where a build is cheap: few crates lie between the change and the test. A change of the tower layer, the gateway, the worker, the
/// events or PostgreSQL takes minutes to build.
const CHEAP: [&str; 3] = ["crates/semel/", "crates/semel-sqlite/", "proof/model/"];

/// Days since 1970.
pub(super) fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400
}

/// The bugs of a day, each with the test that is to notice it.
pub(super) fn choose(patches: &[Patch], day: u64) -> Vec<(&Patch, &Test)> {
    let candidates: Vec<_> = patches.iter().filter_map(|patch| Some((patch, cheapest(patch)?))).collect();
    let day = usize::try_from(day).unwrap_or_default();
    let first = day.wrapping_mul(A_DAY);
    (0..A_DAY.min(candidates.len())).map(|more| candidates[(first + more) % candidates.len()]).collect()
}

/// An integration test: unit tests are built with the features of one crate, and third-party crates with them.
fn cheapest(patch: &Patch) -> Option<&Test> {
    let is_cheap =
        |test: &&Test| test.program().is_some() && CHEAP.iter().any(|place| test.place.starts_with(place));
    let changes = patch.files.iter().all(|file| CHEAP.iter().any(|place| file.starts_with(place)));
    patch.tests.iter().find(is_cheap).filter(|_| changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::patch;
    use std::collections::BTreeSet;

    #[test]
    fn three_bugs_have_their_turn_each_day_and_all_that_are_quick_to_build_within_two_weeks() {
        let patches = patch::all().unwrap();
        let names =
            |day| choose(&patches, day).into_iter().map(|(patch, _)| &*patch.name).collect::<BTreeSet<_>>();
        assert!((0..30).all(|day| names(day).len() == A_DAY && names(day) == names(day)));
        let cheap = patches.iter().filter(|patch| cheapest(patch).is_some()).count();
        let within_weeks: BTreeSet<_> = (20_000..20_014).flat_map(names).collect();
        assert!(cheap >= 20 && within_weeks.len() == cheap, "{} of {cheap}", within_weeks.len());
    }
}
