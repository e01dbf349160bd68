//! Faults that strike by themselves, every so often.

use crate::clocks;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::gateway;
use crate::lock::locked;
use crate::network::Host;
use crate::store::Cut;
use crate::trace::Place;
use crate::world::World;
use semel_worker::{RekeyOptions, Rekeyer};
use std::sync::Arc;
use tokio::task::AbortHandle;

/// The kinds that do, in the order in which they begin.
const KINDS: &[Fault] = &[
    Fault::StoreDamaged,
    Fault::StoreTampered,
    Fault::StoreOutage,
    Fault::StoreCrash,
    Fault::Cut,
    Fault::KillGateway,
    Fault::FreezeGateway,
    Fault::KillService,
    Fault::KillProvider,
    Fault::ClockStep,
    Fault::ClockStrobe,
    Fault::ClockDrift,
    Fault::BoottimeStep,
    Fault::StoreClock,
    Fault::Reload,
    Fault::Rekey,
    Fault::Failover,
    Fault::StoreCut,
    Fault::ClockAccept,
    Fault::ClockHold,
    Fault::StopAll,
];

/// Begins those that this run has, as tasks of this thread: rekeying cannot be handed to another.
pub(crate) fn begin(world: &Arc<World>) -> Vec<AbortHandle> {
    let has = |fault: &&Fault| world.faults.has(**fault);
    KINDS
        .iter()
        .filter(has)
        .map(|fault| tokio::task::spawn_local(every_so_often(Arc::clone(world), *fault)).abort_handle())
        .collect()
}

async fn every_so_often(world: Arc<World>, fault: Fault) {
    let dice = world.dice(fault.as_str());
    let mean = dice.millis(500, 8_000);
    loop {
        tokio::time::sleep(mean.mul_f64(0.2 + dice.log_uniform(0.2, 2.0))).await;
        // Drawn whether it strikes or not, so that sparing one leaves the others as they are.
        let own =
            Dice::of(u64::from(u32::try_from(dice.below(u64::from(u32::MAX))).unwrap_or(0)), fault.as_str());
        if world.faults.strikes(fault) {
            strike(&world, fault, &own).await;
        }
    }
}

async fn strike(world: &Arc<World>, fault: Fault, dice: &Dice) {
    let gateways = locked(&world.gateways).len();
    let number = usize::try_from(dice.below(gateways as u64)).unwrap_or(0);
    match fault {
        Fault::StoreDamaged => {
            let damaged =
                world.disk.contents().damage(|count| usize::try_from(dice.below(count as u64)).unwrap_or(0));
            if let Some(id) = damaged {
                world.trace.note(Place::Faults, format_args!("{id} is damaged"));
                world.auditor.note_damage(id, world.trace.now());
            }
        }
        Fault::StoreTampered => {
            let choose = |count: usize| usize::try_from(dice.below(count as u64)).unwrap_or(0);
            let tampered = world.disk.contents().tamper(choose);
            for id in tampered {
                world.trace.note(Place::Faults, format_args!("the sealed answer of {id} is tampered with"));
                world.auditor.note_damage(id, world.trace.now());
            }
        }
        Fault::StoreOutage => {
            let span = dice.millis(200, 8_000);
            world
                .trace
                .note(Place::Faults, format_args!("the store is unavailable for {} ms", span.as_millis()));
            world.outage.last(span);
        }
        Fault::StoreCrash => {
            let lost = world.disk.crash(|open| dice.below(open + 1));
            world.trace.note(
                Place::Faults,
                format_args!("the store crashes, and {lost} writes are lost that nobody was told of"),
            );
            world.outage.last(dice.millis(50, 2_000));
        }
        Fault::Failover => {
            let lost = world.disk.fail_over(1 + dice.below(12));
            world.trace.note(Place::Faults, format_args!("a replica takes over that lacks {lost} writes"));
        }
        Fault::Cut => cut(world, number, dice),
        Fault::KillGateway => {
            kill(world, number);
            tokio::time::sleep(dice.millis(20, 3_000)).await;
            start(world, number);
        }
        Fault::FreezeGateway => {
            let span = dice.millis(1_000, 45_000);
            world.trace.note(
                Place::Faults,
                format_args!("gateway {number} stands still for {} ms", span.as_millis()),
            );
            world.gateway(number).life.stand_still(span);
        }
        Fault::KillService => {
            world.trace.note(Place::Faults, format_args!("the service is killed"));
            world.service().kill();
            tokio::time::sleep(dice.millis(20, 2_000)).await;
            world.start_service();
        }
        Fault::KillProvider => {
            world.trace.note(Place::Faults, format_args!("the provider is killed"));
            world.provider().kill();
            tokio::time::sleep(dice.millis(20, 4_000)).await;
            world.start_provider();
        }
        Fault::ClockStep | Fault::StoreClock | Fault::ClockStrobe | Fault::ClockDrift => {
            clocks::strike(world, fault, number, dice).await;
        }
        Fault::BoottimeStep => clocks::stand_still(world, number, dice),
        Fault::Reload => {
            world.trace.note(Place::Faults, format_args!("gateway {number} takes up another configuration"));
            gateway::reload(world, &world.gateway(number), dice.chance(0.5));
        }
        Fault::Rekey => rekey(world, number).await,
        Fault::StoreCut => {
            let (span, way) = (dice.millis(200, 10_000), dice.pick(&[Cut::Calls, Cut::Answers]));
            world.trace.note(
                Place::Faults,
                format_args!(
                    "cut between gateway {number} and the store for {} ms, {way:?}",
                    span.as_millis()
                ),
            );
            world.link_of(number).cut(way, span);
        }
        Fault::ClockAccept => clocks::accept(world, number).await,
        Fault::ClockHold => clocks::hold(world, number, dice).await,
        Fault::StopAll => stop_all(world, number, dice).await,
        _ => {}
    }
}

fn cut(world: &Arc<World>, number: usize, dice: &Dice) {
    let gateway = Host::Gateway(number);
    let links = [
        (Host::Clients, gateway),
        (gateway, Host::Service),
        (Host::Service, Host::Provider),
        (gateway, Host::Provider),
    ];
    let (one, other) = dice.pick(&links);
    let span = dice.millis(200, 10_000);
    let ways = dice.below(3);
    world.trace.note(
        Place::Faults,
        format_args!("cut between {one} and {other} for {} ms, way {ways}", span.as_millis()),
    );
    if ways != 1 {
        world.network.cut(one, other, span);
    }
    if ways != 2 {
        world.network.cut(other, one, span);
    }
}

/// A new key seals, everybody takes it up, and what is stored is rewritten.
async fn rekey(world: &Arc<World>, number: usize) {
    let generation = {
        let mut keys = locked(&world.keys);
        let Some(generation) = &mut *keys else { return };
        *generation += 1;
        *generation
    };
    world.trace.note(Place::Faults, format_args!("key {generation} seals from now on"));
    world.book.pages().key_changes.push(world.trace.now());
    let gateways: Vec<_> = locked(&world.gateways).clone();
    gateways.iter().for_each(|process| gateway::take_up(process, Some(generation)));
    let process = world.gateway(number);
    let rekeyer = Rekeyer::new(process.engine.clone(), RekeyOptions::default());
    let rekeyed = process.life.during(rekeyer.run(|_| ())).await;
    world.trace.note(Place::Faults, format_args!("rekeyed: {:?}", rekeyed.and_then(Result::ok)));
}

pub(crate) fn kill(world: &Arc<World>, number: usize) {
    world.trace.note(Place::Faults, format_args!("gateway {number} is killed"));
    world.gateway(number).kill();
}

pub(crate) fn start(world: &Arc<World>, number: usize) {
    // Somebody else may have started it meanwhile.
    world.gateway(number).kill();
    let process = gateway::start(world, number);
    locked(&world.gateways)[number] = process;
}

/// All gateways are stopped, and the store's clock is far behind when they start. Later it is put right, and somebody who has looked says so.
async fn stop_all(world: &Arc<World>, number: usize, dice: &Dice) {
    let (gateways, span) = (world.hosts.len(), dice.millis(20_000, 120_000));
    let behind = dice.pick(&[0, 900, 7_200, 90_000]) * 1_000;
    world.trace.note(
        Place::Faults,
        format_args!(
            "all are stopped for {} ms, and the store's clock is set back by {behind} ms",
            span.as_millis()
        ),
    );
    (0..gateways).for_each(|number| kill(world, number));
    world.machine.step(-behind);
    tokio::time::sleep(span).await;
    (0..gateways).for_each(|number| start(world, number));
    tokio::time::sleep(dice.millis(2_000, 20_000)).await;
    clocks::put_right(world, number, dice).await;
}
