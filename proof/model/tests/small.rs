//! The whole protocol at the small bound.

use semel_model::{Bounds, Config, check, everything};
use std::collections::BTreeSet;

#[test]
fn everything_holds_at_the_small_bound_and_everything_is_reached() {
    let mut reached = BTreeSet::new();
    for config in Config::small() {
        let name = config.name;
        let outcome = check(config, None, |_, _| {});
        assert!(outcome.broken.is_empty(), "{name}: {:#?}", outcome.broken);
        assert!(outcome.missing.is_empty(), "{name}: never reached: {:?}", outcome.missing);
        println!("{name}: {} states, depth {}, {:?}", outcome.states, outcome.depth, outcome.took);
        reached.extend(outcome.reached);
    }
    let missing: Vec<_> = everything().into_iter().filter(|name| !reached.contains(name)).collect();
    assert!(missing.is_empty(), "reached in no configuration: {missing:?}");
}

#[test]
fn remarks_in_the_history_change_nothing_whenever_they_are_written() {
    // The small bound has none: whoever has read the record before decides again, which multiplies its states.
    let bounds = Bounds {
        sends: 2,
        third_sends: 0,
        crashes: 1,
        losses: 0,
        doubles: 0,
        beats: 0,
        looks: 1,
        remarks: 1,
    };
    for config in [Config::doubt(bounds), Config::absence(bounds), Config::resume(bounds)] {
        let name = config.name;
        let outcome = check(config, None, |_, _| {});
        assert!(outcome.broken.is_empty(), "{name}: {:#?}", outcome.broken);
        println!("{name}: {} states, {:?}", outcome.states, outcome.took);
    }
}

#[test]
fn heartbeats_change_nothing_whoever_sends_them() {
    // The small bound has none: they multiply its states.
    let bounds = Bounds {
        sends: 2,
        third_sends: 0,
        crashes: 0,
        losses: 0,
        doubles: 0,
        beats: 1,
        looks: 0,
        remarks: 0,
    };
    for config in [Config::doubt(bounds), Config::resume(bounds)] {
        let name = config.name;
        let outcome = check(config, None, |_, _| {});
        assert!(outcome.broken.is_empty(), "{name}: {:#?}", outcome.broken);
    }
}
