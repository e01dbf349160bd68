//! Which campaign has to notice which bug: on what store, by what profile, on what machines, by which faults and how many of them. A bug that the
//! campaign misses here fails `cargo xtask prove planted`. A bug that is not here cannot be seen from outside of the
//! processes, or was not noticed by a campaign of this length when it was tried (`local-clock`, `transaction-left-open`, `settler-unfenced`).

use super::bug::Bug;
use std::fmt;

/// A campaign that has to notice a bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair {
    pub(crate) store: &'static str,
    pub(crate) profile: &'static str,
    pub(crate) scene: &'static str,
    /// By these alone; all that are possible if there are none.
    pub(crate) faults: &'static [&'static str],
    /// One fault for so many operations.
    pub(crate) per_fault: u32,
    /// Within so many operations. Fewer are tried first, where the bug may show at once.
    pub(crate) within: u32,
}

impl Pair {
    /// On SQLite, as most are: what a bug does is the same on either store.
    const fn by(faults: &'static [&'static str], per_fault: u32) -> Self {
        Self { store: "sqlite", profile: "usual", scene: "plain", faults, per_fault, within: 1_600 }
    }

    const fn on_postgres(self) -> Self {
        Self { store: "postgres", ..self }
    }

    const fn under(self, profile: &'static str) -> Self {
        Self { profile, ..self }
    }

    /// How many operations are tried, one after the other.
    pub(crate) fn operations(&self) -> impl Iterator<Item = u32> + use<> {
        let within = self.within;
        [100, 400].into_iter().filter(move |fewer| *fewer < within).chain([within])
    }

    /// As the campaign's command line has it.
    pub(crate) fn arguments(&self, operations: u32) -> Vec<String> {
        let Self { store, profile, scene, faults, per_fault, .. } = self;
        let settings = [
            ("--seed", "1".to_owned()),
            ("--store", (*store).to_owned()),
            ("--profile", (*profile).to_owned()),
            ("--scene", (*scene).to_owned()),
            ("--per-fault", per_fault.to_string()),
            ("--operations", operations.to_string()),
        ];
        let only = faults.iter().map(|fault| ("--only", (*fault).to_owned()));
        settings.into_iter().chain(only).flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, profile, scene, faults, per_fault, within } = self;
        let faults = if faults.is_empty() { "any fault".to_owned() } else { faults.join(", ") };
        write!(f, "{faults}, 1 in {per_fault}; {store}, {profile}, {scene}; within {within}")
    }
}

/// The campaign that has to notice this bug.
pub(crate) fn pair(bug: Bug) -> Option<Pair> {
    let anything = Pair::by(&[], 100);
    Some(match bug {
        // A gateway that is gone leaves something that a retry can steal.
        Bug::LeaseStolen => Pair::by(&["kill-gateway"], 15),
        Bug::FingerprintIgnored | Bug::NoUniqueKey | Bug::TenantLeftOut | Bug::AnsweredBeforeStored => {
            anything
        }
        // Somebody else's reservation is there when the answer to one's own is lost.
        Bug::TokenIgnored => Pair::by(&["lose-answers", "cut-network"], 15).on_postgres(),
        Bug::SwapUnconditional => Pair::by(&["freeze-gateway", "kill-gateway"], 15),
        Bug::AcknowledgedBeforeCommit => Pair::by(&["kill-gateway"], 15),
        Bug::FailOpen => Pair::by(&["cut-network", "crash-database"], 15).on_postgres(),
        Bug::BrokenCallRetryable | Bug::StaleConnectionNotSent => Pair::by(&["kill-shop"], 15),
        Bug::SumIgnored => Pair::by(&["flip-bit"], 5),
        Bug::EarlierAttempt => Pair::by(&["kill-shop", "kill-provider"], 15).under("late-operator"),
        Bug::TombstoneIgnored => anything,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_operations_are_tried_first_and_no_more_than_are_allowed() {
        let pair = Pair::by(&["kill-shop"], 15);
        assert_eq!(pair.operations().collect::<Vec<_>>(), [100, 400, 1_600]);
        assert_eq!(Pair { within: 400, ..pair }.operations().collect::<Vec<_>>(), [100, 400]);
        assert_eq!(
            pair.arguments(400).join(" "),
            "--seed 1 --store sqlite --profile usual --scene plain --per-fault 15 --operations 400 --only kill-shop"
        );
    }

    #[test]
    fn what_broke_off_or_was_acknowledged_too_early_is_paired_with_its_kill() {
        for (bug, fault) in [
            (Bug::BrokenCallRetryable, "kill-shop"),
            (Bug::StaleConnectionNotSent, "kill-shop"),
            (Bug::AcknowledgedBeforeCommit, "kill-gateway"),
        ] {
            let pair = pair(bug).expect("it is paired");
            assert_eq!(
                (pair.faults, pair.per_fault, pair.within),
                (&[fault][..], 15, 1_600),
                "{}",
                bug.name()
            );
        }
    }
}
