//! What happens to clocks.

use crate::dice::Dice;
use crate::fault::Fault;
use crate::lock::locked;
use crate::world::World;
use std::sync::Arc;

/// A clock goes wrong for a while: that of this gateway's machine, or the store's.
pub(crate) async fn strike(world: &Arc<World>, fault: Fault, gateway: usize, dice: &Dice) {
    let is_stores = match fault {
        Fault::ClockStep => false,
        Fault::StoreClock => true,
        _ => dice.chance(0.5),
    };
    let machine = if is_stores { &world.machine } else { world.machine_of(gateway) };
    let whose = if is_stores { "the store".to_owned() } else { format!("gateway {gateway}") };
    match fault {
        Fault::ClockStrobe => {
            world.trace.note(format_args!("the wall clock of {whose} jumps to and fro"));
            for _ in 0..20 {
                machine.step(if dice.chance(0.5) { 20_000 } else { -20_000 });
                tokio::time::sleep(dice.millis(20, 300)).await;
            }
        }
        Fault::ClockDrift => {
            let millionths = |most: u64| {
                let most = i64::try_from(most).unwrap_or(0);
                i64::try_from(dice.below(20_001)).unwrap_or(0) * most / 10_000 - most
            };
            // A clock of a machine drifts by a few millionths; without its time service, and hot, by some hundred.
            let (wall, steady) = (millionths(DRIFT), millionths(DRIFT));
            world.trace.note(format_args!("the clocks of {whose} drift by {wall} and {steady} millionths"));
            machine.drift(wall);
            machine.drift_steadily(steady);
            tokio::time::sleep(dice.millis(5_000, 60_000)).await;
        }
        _ => {
            let far = dice.pick(&[3_i64, 60, 900, 7_200, 90_000]) * 1_000;
            let by = if dice.chance(0.5) { far } else { -far };
            world.trace.note(format_args!("the wall clock of {whose} steps by {by} ms"));
            machine.step(by);
            machine.drift(i64::try_from(dice.below(400)).unwrap_or(0) - 200);
            tokio::time::sleep(dice.millis(500, 30_000)).await;
        }
    }
    machine.put_right();
}

/// How fast a clock drifts at most, in millionths: more than any that is not broken.
pub(crate) const DRIFT: u64 = 10_000;

/// A gateway's machine stands still with whatever runs on it, and goes on.
pub(crate) fn stand_still(world: &Arc<World>, gateway: usize, dice: &Dice) {
    let span = dice.millis(500, 45_000);
    let machine = world.machine_of(gateway);
    let is_suspended = dice.chance(0.5);
    if is_suspended {
        machine.suspend(span);
    } else {
        machine.pause(span);
    }
    let how = if is_suspended { "suspended" } else { "paused" };
    world.trace.note(format_args!("the machine of gateway {gateway} is {how} for {} ms", span.as_millis()));
    let is_on_it = |number: usize| number == gateway || world.machine_of(number).is(machine);
    let gateways = locked(&world.gateways);
    gateways
        .iter()
        .filter(|process| is_on_it(process.number))
        .for_each(|process| process.life.stand_still(span));
}
