//! What happens to clocks.

use crate::dice::Dice;
use crate::fault::Fault;
use crate::lock::locked;
use crate::machine::LOOKS_RIGHT;
use crate::trace::Place;
use crate::world::World;
use semel::clock::ClockRequest;
use std::sync::Arc;
use std::time::Duration;

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
            world.trace.note(Place::Faults, format_args!("the wall clock of {whose} jumps to and fro"));
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
            world.trace.note(
                Place::Faults,
                format_args!("the clocks of {whose} drift by {wall} and {steady} millionths"),
            );
            machine.drift(wall);
            machine.drift_steadily(steady);
            tokio::time::sleep(dice.millis(5_000, 60_000)).await;
        }
        _ => {
            let far = dice.pick(&[3_i64, 60, 900, 7_200, 90_000]) * 1_000;
            let by = if dice.chance(0.5) { far } else { -far };
            world.trace.note(Place::Faults, format_args!("the wall clock of {whose} steps by {by} ms"));
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
    world.trace.note(
        Place::Faults,
        format_args!("the machine of gateway {gateway} is {how} for {} ms", span.as_millis()),
    );
    let is_on_it = |number: usize| number == gateway || world.machine_of(number).is(machine);
    let gateways = locked(&world.gateways);
    gateways
        .iter()
        .filter(|process| is_on_it(process.number))
        .for_each(|process| process.life.stand_still(span));
}

/// The longest step that a store follows for which it is worth while to wait for one that it does not.
const LONGEST_STEP: Duration = Duration::from_secs(60);

/// All machines are paused for longer than is followed: the clock is right then, and a hold is open. Meanwhile it is set back, put right, and
/// accepted by somebody who has looked at another one.
pub(crate) async fn hold(world: &Arc<World>, gateway: usize, dice: &Dice) {
    let max_step = world.disk.max_step();
    if max_step > LONGEST_STEP {
        return;
    }
    let span = max_step + dice.millis(4_000, 40_000);
    world.trace.note(Place::Faults, format_args!("all machines are paused for {} ms", span.as_millis()));
    for (number, machine) in world.hosts.iter().enumerate() {
        if !world.hosts[..number].iter().any(|other| other.is(machine)) {
            machine.pause(span);
        }
    }
    locked(&world.gateways).iter().for_each(|process| process.life.stand_still(span));
    tokio::time::sleep(span + dice.millis(300, 3_000)).await;
    let back = dice.pick(&[3_i64, 60, 900, 7_200]) * 1_000;
    world.trace.note(Place::Faults, format_args!("the wall clock of the store is set back by {back} ms"));
    world.machine.step(-back);
    tokio::time::sleep(dice.millis(1_000, 10_000)).await;
    put_right(world, gateway, dice).await;
}

/// The store's clock is put right, and a little later somebody who has looked says so.
pub(crate) async fn put_right(world: &Arc<World>, gateway: usize, dice: &Dice) {
    world.trace.note(Place::Faults, format_args!("the store's clock is put right"));
    world.machine.put_right();
    tokio::time::sleep(dice.millis(500, 3_000)).await;
    accept(world, gateway).await;
}

/// Somebody who has looked at another clock says that the store's is right, if it is.
pub(crate) async fn accept(world: &Arc<World>, number: usize) {
    if world.machine.off().abs() > LOOKS_RIGHT {
        return;
    }
    let process = world.gateway(number);
    let accepting = process.engine.store().clock(ClockRequest::Accept);
    let accepted = process.life.during(accepting).await.is_some_and(|report| report.is_ok());
    world.trace.note(
        Place::Faults,
        format_args!("an operator says at gateway {number} that the clock is right: {accepted}"),
    );
}
