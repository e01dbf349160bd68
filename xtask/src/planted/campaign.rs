//! The campaign that has to notice a planted bug: its own command line, in the header of the patch.

use std::fmt;

const OPERATIONS: &str = "--operations";

/// Settings of a campaign: store, profile, scene, faults, and one fault for how many operations.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Campaign {
    settings: Vec<String>,
    /// The bug has to be noticed within so many operations. Fewer are tried first.
    pub(crate) within: u32,
}

impl Campaign {
    /// Reads the settings from the header of a patch.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut settings: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let place = settings.iter().position(|word| word == OPERATIONS);
        let within = place.and_then(|place| settings.get(place + 1)?.parse().ok());
        let (Some(place), Some(within)) = (place, within) else {
            return Err(format!("a campaign needs `{OPERATIONS} N`"));
        };
        settings.drain(place..place + 2);
        Ok(Self { settings, within })
    }

    /// How many operations are tried, one number after the other.
    pub(crate) fn operations(&self) -> impl Iterator<Item = u32> + use<> {
        let within = self.within;
        [100, 400].into_iter().filter(move |fewer| *fewer < within).chain([within])
    }

    /// The command line with so many operations.
    pub(crate) fn arguments(&self, operations: u32) -> Vec<String> {
        let first = ["--seed".to_owned(), "1".to_owned()];
        let last = [OPERATIONS.to_owned(), operations.to_string()];
        first.into_iter().chain(self.settings.iter().cloned()).chain(last).collect()
    }
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {OPERATIONS} {}", self.settings.join(" "), self.within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_operations_are_tried_first_and_no_more_than_are_allowed() {
        let campaign = Campaign::parse("--only kill-shop --per-fault 15 --operations 1600").unwrap();
        assert_eq!(campaign.operations().collect::<Vec<_>>(), [100, 400, 1_600]);
        let shorter = Campaign { within: 400, ..campaign.clone() };
        assert_eq!(shorter.operations().collect::<Vec<_>>(), [100, 400]);
        assert_eq!(
            campaign.arguments(400).join(" "),
            "--seed 1 --only kill-shop --per-fault 15 --operations 400"
        );
        assert_eq!(campaign.to_string(), "--only kill-shop --per-fault 15 --operations 1600");
        assert!(Campaign::parse("--only kill-shop").is_err());
    }
}
