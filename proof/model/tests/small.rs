//! The whole protocol at the small bound.

use semel_model::{Config, check, everything};
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
