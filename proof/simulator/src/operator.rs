//! Operators: they look at what is open, find out the truth, and say it late.

use crate::book::Known;
use crate::fault::Fault;
use crate::plan::TENANTS;
use crate::provider::{declined, paid};
use crate::rules::{Rule, Work};
use crate::trace::Place;
use crate::world::World;
use semel::transition::{About, Evidence, Settlement, Windows};
use semel::{Actor, Filter, Record, Settling, State};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Settles what nothing automatic settles, for as long as the run lasts.
pub(crate) async fn watch(world: Arc<World>) {
    let mut looked_into = BTreeSet::new();
    let mut round = 0_usize;
    loop {
        let pause = if world.faults.are_healed() {
            Duration::from_secs(3)
        } else {
            world.chance.millis(3_000, 15_000)
        };
        tokio::time::sleep(pause).await;
        round += 1;
        let gateway = world.gateway(round);
        let open = Filter { state: Some(State::Unknown), ..Filter::default() };
        let Ok(page) = gateway.engine.store().list(open, None, 500).await else { continue };
        for record in page.records {
            let Some(rule) = world.rule(&record.key.operation).cloned() else { continue };
            // What is asked about, or told by webhook, is left to that until everything has healed.
            let is_theirs = record.dead_letter
                || rule.policy().settling == Settling::Operator
                || world.faults.are_healed();
            if is_theirs
                && (world.faults.are_healed() || looked_into.insert((record.operation_id, record.attempt)))
            {
                tokio::spawn(look_into(Arc::clone(&world), record, rule));
            }
        }
    }
}

/// Finds out what became of the attempt that is in doubt, and says so, perhaps much later.
async fn look_into(world: Arc<World>, record: Record, rule: Rule) {
    let (id, attempt) = (record.operation_id, record.attempt);
    let tenant = (0..TENANTS).find(|tenant| *record.key.tenant == *format!("tenant-{tenant}")).unwrap_or(0);
    // Whoever says "not executed" has made sure that nobody is left who could still make it happen.
    let known = world.book.pages().ask(world.trace.now(), id, attempt);
    let evidence = match known {
        Some(Known::Charged) => {
            Evidence::Completed { response: Some(paid(id, tenant, "operator")), resource: None }
        }
        Some(Known::Declined) => {
            Evidence::Failed { response: Some(declined(id, tenant, "operator")), resource: None }
        }
        // The call is never made again: for retries to end, it has to be given up.
        None if rule.work == Work::AtMostOnce => {
            Evidence::Failed { response: Some(declined(id, tenant, "operator")), resource: None }
        }
        None => Evidence::NotExecuted,
    };
    world.trace.note(Place::Operators, format_args!("{id} attempt {attempt}: operator finds {known:?}"));
    if world.faults.strikes(Fault::OperatorLate) {
        tokio::time::sleep(world.chance.millis(2_000, 40_000)).await;
    }
    let evidence = kept(evidence, &rule);
    for round in 0..2 {
        let gateway = world.gateway(round + attempt as usize);
        let settlement = Settlement {
            settler: gateway.engine.environment().owner(),
            actor: Actor::Operator("ann".into()),
            evidence: evidence.clone(),
            note: None,
            windows: Windows::from(rule.policy()),
        };
        let about = About { operation_id: id, attempt: Some(attempt) };
        let settled = gateway.engine.settle(&about, &settlement).await;
        let word = match &settled {
            Ok(semel::Settled::Done(record)) => record.state.as_str(),
            Ok(semel::Settled::Refused(..)) => "refused",
            Ok(semel::Settled::Missing) => "missing",
            Err(_) => "no answer",
        };
        world.trace.note(Place::Operators, format_args!("{id} attempt {attempt}: operator settles, {word}"));
        if !world.faults.strikes(Fault::OperatorAgain) {
            return;
        }
        tokio::time::sleep(world.chance.millis(1_000, 30_000)).await;
    }
}

fn kept(evidence: Evidence, rule: &Rule) -> Evidence {
    let keep =
        |response: Option<semel::StoredResponse>| response.map(|it| rule.policy().store_response.kept(it));
    match evidence {
        Evidence::Completed { response, resource } => {
            Evidence::Completed { response: keep(response), resource }
        }
        Evidence::Failed { response, resource } => Evidence::Failed { response: keep(response), resource },
        other => other,
    }
}
