//! Why the API refused.

use crate::operations::Operation;
use serde::Deserialize;
use std::fmt;

/// Why the API refused.
#[derive(Deserialize)]
pub(super) struct Problem {
    detail: String,
    parameter: Option<String>,
    /// What is there instead.
    operation: Option<Operation>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parameter) = &self.parameter {
            write!(f, "{parameter}: ")?;
        }
        f.write_str(&self.detail)?;
        if let Some(operation) = &self.operation {
            let Operation { attempt, version, .. } = operation;
            write!(f, " It is now: {} (attempt {attempt}, version {version}).", operation.standing())?;
        }
        Ok(())
    }
}
