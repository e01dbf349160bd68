//! How far the store's clock is believed: never for more than a quarter of what a key is remembered for.

use crate::read;
use crate::right::UPSTREAM;
use std::time::Duration;

/// The longest step that is followed, where these are the settings of the only route.
fn followed(settings: &str) -> Duration {
    let route = "[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\nbody_retention = \"30m\"\n";
    let toml = format!("{UPSTREAM}{route}{settings}");
    read(&toml).unwrap_or_else(|errors| panic!("{errors}")).clock.max_step
}

#[test]
fn a_step_that_would_end_a_window_under_which_the_key_executes_again_is_not_followed() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    // Refused until the end of the tombstone, which is a week.
    assert_eq!(followed("retention = \"30m\"\n"), minutes(60));
    assert_eq!(followed("retention = \"30m\"\ntombstone = \"30m\"\n"), minutes(15));
    // New work after the window: the tombstone protects nothing.
    assert_eq!(followed("retention = \"30m\"\nexpired = \"new\"\n"), minutes(30) / 4);
    assert_eq!(followed("retention = \"72h\"\nexpired = \"new\"\n"), minutes(60));
}
