//! A clock that steps while processes run by it: libfaketime follows a file.

use crate::off::Off;
use crate::outcome::Outcome;
use crate::process::faketime;
use std::path::{Path, PathBuf};

/// The clock of the gateways' machines.
pub(crate) struct Clock {
    library: String,
    control: PathBuf,
}

impl Clock {
    pub(crate) async fn new(directory: &Path) -> Outcome<Self> {
        let this = Self { library: faketime().await?, control: directory.canonicalize()?.join("clock") };
        this.step(Off::NONE)?;
        Ok(this)
    }

    /// What processes on these machines are started with.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let settings = [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.control.display().to_string()),
            // The file is looked at once a second: at every call it would cost more than the work.
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            // Timers run as always: it is the time of day that steps.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        settings.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// From now on, or a second later, the clock is off by this much.
    pub(crate) fn step(&self, off: Off) -> Outcome<()> {
        // In one go: half a file would be another time.
        let next = self.control.with_extension("next");
        std::fs::write(&next, format!("{off}\n"))?;
        Ok(std::fs::rename(next, &self.control)?)
    }
}
