//! The simulator that has to notice a planted bug: within how many operations, and by which faults, in the header of the patch.

use std::fmt;

/// Settings of the simulator.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Simulator {
    /// Faults and their density; any, as each run draws them, if there are no settings.
    settings: Vec<String>,
    /// The bug has to be noticed within so many operations.
    pub(crate) within: u32,
}

impl Simulator {
    /// Reads `3000 --only kill-gateway --density 1` from the header of a patch.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let within = words.next().and_then(|word| word.parse().ok());
        let within = within.ok_or("`Simulator:` begins with a number of operations")?;
        let settings: Vec<String> = words.collect();
        match settings.first() {
            Some(first) if !first.starts_with("--") => Err(format!("`Simulator:` has no settings: {first}")),
            _ => Ok(Self { settings, within }),
        }
    }

    /// The command line: the first seeds, in short runs.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let within = self.within.to_string();
        let always = ["--seed", "1", "--operations", "150", "--no-shrinking", "--total", &within];
        always.map(str::to_owned).into_iter().chain(self.settings.iter().cloned()).collect()
    }

    /// Each of the settings once, with the largest number of operations.
    pub(crate) fn largest<'s>(all: impl Iterator<Item = &'s Self>) -> Vec<&'s Self> {
        let mut all: Vec<_> = all.collect();
        all.sort_by(|one, other| (&one.settings, other.within).cmp(&(&other.settings, one.within)));
        all.dedup_by(|later, first| later.settings == first.settings);
        all
    }
}

impl fmt::Display for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.within)?;
        self.settings.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_within_how_many_operations_and_by_which_faults() {
        let simulator = Simulator::parse("3000 --only kill-gateway --density 1").unwrap();
        assert_eq!(
            simulator.arguments().join(" "),
            "--seed 1 --operations 150 --no-shrinking --total 3000 --only kill-gateway --density 1"
        );
        assert_eq!(simulator.to_string(), "3000 --only kill-gateway --density 1");
        assert!(Simulator::parse("--only cut").is_err() && Simulator::parse("3000 cut").is_err());
        let (more, other) =
            (Simulator { within: 4_000, ..simulator.clone() }, Simulator::parse("5").unwrap());
        assert_eq!(Simulator::largest([&simulator, &other, &more].into_iter()), [&other, &more]);
    }
}
