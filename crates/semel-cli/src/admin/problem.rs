//! Why the API refused.

use super::operation::Operation;
use serde::Deserialize;
use std::fmt;

/// Why the API refused.
#[derive(Deserialize)]
pub(super) struct Problem {
    detail: String,
    parameter: Option<String>,
    /// All that is wrong with a file, as a compiler would show it.
    report: Option<String>,
    /// What is there instead.
    operation: Option<Operation>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parameter) = &self.parameter {
            write!(f, "{parameter}: ")?;
        }
        match &self.report {
            Some(report) => {
                write!(f, "the file is invalid, and the current configuration stays in force:\n\n{report}")?
            }
            None => f.write_str(&self.detail)?,
        }
        if let Some(operation) = &self.operation {
            let Operation { attempt, version, .. } = operation;
            write!(f, " It is now: {} (attempt {attempt}, version {version}).", operation.standing())?;
        }
        Ok(())
    }
}
