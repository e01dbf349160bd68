//! Clients: they send a request several times, hang up, come back, and ask until they know.

use crate::fault::Fault;
use crate::log::{Meaning, Told, Variant};
use crate::network::{About, Host, Way};
use crate::plan::Operation;
use crate::trace::Place;
use crate::world::World;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use std::sync::Arc;
use std::time::Duration;

/// How long a client waits for one answer.
const PATIENCE: Duration = Duration::from_secs(12);

/// How long it goes on asking.
const PERSISTENCE: u64 = 25_000;

/// Wants one operation done.
pub(crate) async fn want(world: Arc<World>, number: usize) {
    let operation = &world.plan[number];
    tokio::time::sleep(operation.begins).await;
    let sending = operation.sends.iter().enumerate().map(|(index, (after, variant))| {
        let (world, after, variant) = (Arc::clone(&world), *after, *variant);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let _ = send(&world, number, variant, index).await;
        })
    });
    let sending: Vec<_> = sending.collect();
    for sent in sending {
        let _ = sent.await;
    }
    if operation.is_abandoned {
        return;
    }
    let begun = world.trace.now();
    let mut index = number;
    while world.trace.now() - begun < PERSISTENCE && !world.faults.are_healed() {
        index += 1;
        match send(&world, number, Variant::Plain, index).await {
            Some(meaning) if meaning.is_definite() => break,
            _ => tokio::time::sleep(world.chance.millis(200, 3_500)).await,
        }
    }
    if let Some(late) = operation.late {
        tokio::time::sleep(late).await;
        let _ = send(&world, number, Variant::Plain, index + 1).await;
    }
}

/// Sends one request, and notes what came of it.
pub(crate) async fn send(
    world: &Arc<World>,
    number: usize,
    variant: Variant,
    index: usize,
) -> Option<Meaning> {
    let operation = &world.plan[number];
    let rule = world.rules[operation.rule].clone();
    let gateway = world.gateway(index.wrapping_mul(7) + usize::try_from(world.chance.below(3)).unwrap_or(0));
    let sent = world.trace.now();
    world.trace.note(Place::Clients, format_args!("#{number} {variant:?} to gateway {}", gateway.number));
    let request = request(operation, variant, &rule.name);
    let way = Way::new(Host::Clients, Host::Gateway(gateway.number), About::Number(operation.number));
    let hangs_up = world.faults.strikes(Fault::HangUp).then(|| world.chance.millis(1, 1_500));
    let serving = async move {
        let serving = gateway.serve(request, &rule);
        match hangs_up {
            // The connection is gone, and with it whatever waits for it.
            Some(after) => tokio::time::timeout(after, serving).await.unwrap_or(Err(crate::network::Broken)),
            None => serving.await,
        }
    };
    let answer = world.network.ask(way, PATIENCE, serving).await.ok();
    let meaning = answer.as_ref().map(|answer| answer.meaning);
    match &answer {
        Some(answer) => {
            let (status, replayed) = (answer.status, if answer.replayed { ", replayed" } else { "" });
            let id = answer.operation_id.as_deref().unwrap_or("-");
            world.trace.note(
                Place::Clients,
                format_args!("#{number} {variant:?} told {:?}, {status}{replayed}, {id}", answer.meaning),
            );
        }
        None => world.trace.note(Place::Clients, format_args!("#{number} {variant:?} has no answer")),
    }
    let told = Told { number: operation.number, variant, sent, heard: world.trace.now(), answer };
    world.tell(told);
    meaning
}

fn request(operation: &Operation, variant: Variant, rule: &str) -> Request<Full<Bytes>> {
    let key = if variant == Variant::Malformed { "\"unfinished" } else { operation.key.as_str() };
    let mut request = Request::new(Full::new(operation.body(variant)));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = format!("/{rule}").parse().unwrap_or_default();
    let tenant = format!("tenant-{}", operation.tenant_of(variant));
    for (name, value) in [
        ("idempotency-key", key),
        ("x-tenant", tenant.as_str()),
        ("content-type", "application/json"),
        ("host", "api"),
    ] {
        if let Ok(value) = http::HeaderValue::from_str(value) {
            request.headers_mut().insert(name, value);
        }
    }
    request
}
