//! What each part took when its limit was set.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The file, for people.
pub(crate) const FILE: &str = "benches/counts/known.txt";

/// By how much a part may be dearer than it is known to be, in percent. Another version of the compiler, of the C library (its
/// `memcpy` goes by the processor) or of a dependency is worth some; what somebody did to the part itself is worth more.
const HEADROOM: u64 = 25;

/// By how many instructions in any case: one loop over a key that the compiler unrolls today and does not tomorrow.
const SLACK: u64 = 250;

const HEAD: &str = "\
# Instructions that one go at each part takes, as callgrind counts them (linux, x86_64, the profile `counts`).
# `cargo xtask test` fails where a part takes a quarter more than this. `cargo xtask counts --write` writes this file.
";

pub(crate) struct Known {
    counts: BTreeMap<String, u64>,
}

/// What is to be said of a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As it was, about.
    Fine {
        percent: i64,
    },
    /// Cheaper by more than the headroom: the limit can follow.
    Cheaper {
        percent: i64,
    },
    TooMany {
        limit: u64,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fine { percent } => write!(f, "ok ({percent:+} %)"),
            Self::Cheaper { percent } => {
                write!(f, "ok ({percent:+} %): `cargo xtask counts --write` keeps it so cheap")
            }
            Self::TooMany { limit } => write!(f, "TOO MANY: at most {limit}"),
        }
    }
}

impl Known {
    pub(crate) fn read() -> Result<Self, String> {
        let text = std::fs::read_to_string(path()).map_err(|error| format!("{FILE}: {error}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let count = |line: &str| {
            let (name, count) = line.split_once('=')?;
            Some((name.trim().to_owned(), count.trim().parse().ok()?))
        };
        let counts = lines
            .map(|line| count(line).ok_or_else(|| format!("{FILE}: `{line}` is not `part = count`")))
            .collect::<Result<_, _>>()?;
        Ok(Self { counts })
    }

    pub(crate) fn write(counts: &[(&str, u64)]) -> Result<(), String> {
        let lines: String = counts.iter().map(|(name, count)| format!("{name} = {count}\n")).collect();
        std::fs::write(path(), format!("{HEAD}{lines}")).map_err(|error| format!("{FILE}: {error}"))
    }

    pub(crate) fn verdict(&self, part: &str, count: u64) -> Result<Verdict, String> {
        let known = *self.counts.get(part).ok_or_else(|| {
            format!("{FILE} does not know {part}: `cargo xtask counts --write` counts it and writes it down")
        })?;
        let room = (known * HEADROOM / 100).max(SLACK);
        let limit = known + room;
        if count > limit {
            return Ok(Verdict::TooMany { limit });
        }
        let percent = (i128::from(count) - i128::from(known)) * 100 / i128::from(known.max(1));
        let percent = i64::try_from(percent).unwrap_or(i64::MAX);
        let cheaper = count + room < known;
        Ok(if cheaper { Verdict::Cheaper { percent } } else { Verdict::Fine { percent } })
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("known.txt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts;

    #[test]
    fn a_part_may_be_a_quarter_dearer_and_no_more() {
        let known = Known::parse("# a comment\n\npart = 10000\ntiny = 60\n").unwrap();
        assert_eq!(known.verdict("part", 12_500).unwrap(), Verdict::Fine { percent: 25 });
        assert_eq!(known.verdict("part", 12_501).unwrap(), Verdict::TooMany { limit: 12_500 });
        assert_eq!(known.verdict("part", 7_500).unwrap(), Verdict::Fine { percent: -25 });
        assert_eq!(known.verdict("part", 7_000).unwrap(), Verdict::Cheaper { percent: -30 });
        assert_eq!(known.verdict("tiny", 311).unwrap(), Verdict::TooMany { limit: 310 });
    }

    #[test]
    fn a_part_without_a_limit_is_an_error() {
        let known = Known::parse("part = 1000").unwrap();
        assert!(known.verdict("another", 1).unwrap_err().contains("counts --write"));
        assert!(Known::parse("part: 1000").is_err());
    }

    #[test]
    fn the_file_knows_every_part_and_nothing_else() {
        let known = Known::read().unwrap();
        let mut names: Vec<_> = parts::ALL.iter().map(|part| part.name).collect();
        names.sort_unstable();
        assert_eq!(known.counts.keys().map(String::as_str).collect::<Vec<_>>(), names);
    }
}
