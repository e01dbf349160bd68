//! Known findings: they are told, and fail no build.

use crate::report::Report;
use crate::verdict::Severity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was known when the file was written: the severity of each failing case.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    known: BTreeMap<String, Severity>,
}

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// The file cannot be read or written.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file is not a baseline.
    #[error("{file} is not a baseline ({error})")]
    Wrong {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

impl Baseline {
    /// What a report found.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let failed = report.cases.iter().filter_map(|case| Some((case.name.to_owned(), case.severity?)));
        Self { known: failed.collect() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no baseline.
    pub fn read(file: &Path) -> Result<Self, BaselineError> {
        let text =
            std::fs::read(file).map_err(|error| BaselineError::File { file: file.to_owned(), error })?;
        serde_json::from_slice(&text).map_err(|error| BaselineError::Wrong { file: file.to_owned(), error })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), BaselineError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| BaselineError::Wrong { file: file.to_owned(), error })?;
        std::fs::write(file, text + "\n")
            .map_err(|error| BaselineError::File { file: file.to_owned(), error })
    }

    /// Marks what is known. What got worse is not.
    pub fn apply(&self, report: &mut Report) {
        for case in &mut report.cases {
            let known = self.known.get(case.name);
            case.known = matches!((case.severity, known), (Some(now), Some(then)) if now <= *then);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn what_is_known_fails_nothing_and_what_got_worse_does() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("baseline.json");
        let mut report = sample();
        Baseline::of(&report).write(&file).unwrap();
        let baseline = Baseline::read(&file).unwrap();
        baseline.apply(&mut report);
        assert_eq!(report.exit_status(None), 0);
        let pain = report.cases.iter_mut().find(|case| case.severity == Some(Severity::ClientPain)).unwrap();
        pain.severity = Some(Severity::Leak);
        baseline.apply(&mut report);
        assert_eq!(report.exit_status(None), 1);
        std::fs::write(&file, "{}").unwrap();
        assert!(Baseline::read(&file).is_err());
    }
}
