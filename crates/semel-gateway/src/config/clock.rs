//! `[clock]`: how far, and on whose word, the store's clock is believed.

use super::section::Section;
use semel::clock::{Terms, Trust};
use std::time::Duration;

/// `shortest_memory` is the shortest time for which any route remembers a key.
pub(super) fn read(mut section: Section<'_, '_>, shortest_memory: Duration) -> Terms {
    let default = Terms::default();
    let trust = section.choice("trust", &[("kernel", Trust::Kernel), ("always", Trust::Always)]);
    let steps = Terms::SHORTEST_STEP..=Duration::from_secs(30 * 24 * 60 * 60);
    let max_step = section.duration("max_step", "1h", steps);
    let holds = Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);
    let hold = section.duration("hold", "15m", holds);
    section.end();
    let terms = Terms {
        trust: trust.map_or(default.trust, |given| given.value),
        max_step: max_step.map_or(default.max_step, |given| given.value),
        hold: hold.map_or(default.hold, |given| given.value),
    };
    terms.within(shortest_memory)
}
