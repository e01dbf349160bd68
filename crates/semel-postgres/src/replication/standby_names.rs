//! The setting `synchronous_standby_names`.

/// What it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StandbyNames {
    /// How many standbys every commit waits for; 0: none.
    pub(crate) required: i64,
    /// Whether anybody who connects counts as one (`*`): a backup that is being taken too.
    pub(crate) anybody: bool,
}

impl StandbyNames {
    /// `s1, s2`, `2 (s1, s2)`, `FIRST 2 (s1, s2)` or `ANY 2 (s1, s2)`.
    pub(crate) fn parse(setting: &str) -> Self {
        let (before, names) = match (setting.find('('), setting.rfind(')')) {
            (Some(open), Some(close)) if open < close && !setting[..open].contains('"') => {
                (&setting[..open], &setting[open + 1..close])
            }
            _ => ("", setting),
        };
        let number = before.split_whitespace().next_back().and_then(|word| word.parse().ok()).unwrap_or(1);
        let names: Vec<&str> = names.split(',').map(|name| name.trim().trim_matches('"')).collect();
        let required = if names.iter().all(|name| name.is_empty()) { 0 } else { number };
        Self { required, anybody: names.contains(&"*") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_setting_is_understood() {
        for (setting, required, anybody) in [
            ("", 0, false),
            ("  ", 0, false),
            ("s1", 1, false),
            ("s1, s2", 1, false),
            ("2 (s1, s2, s3)", 2, false),
            ("FIRST 1 (s1)", 1, false),
            ("any 2(s1,s2,s3)", 2, false),
            ("*", 1, true),
            ("\"*\"", 1, true),
            ("ANY 1 (s1, *)", 1, true),
            ("\"pg(1)\", s2", 1, false),
            ("\"node-2\"", 1, false),
        ] {
            assert_eq!(StandbyNames::parse(setting), StandbyNames { required, anybody }, "{setting}");
        }
    }
}
