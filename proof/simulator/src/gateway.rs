//! One gateway process: the production engine, layer, worker and webhook intake over a store that can fail.

use crate::handler::Handler;
use crate::life::Life;
use crate::lock::locked;
use crate::network::{About, Host, NoAnswer, Way};
use crate::plan::TENANTS;
use crate::process::{Inner, Process};
use crate::provider::{self, SECRET};
use crate::rules::Rule;
use crate::store::{SimulatedStore, Weather};
use crate::trace::Place;
use crate::world::World;
use http::request::Parts;
use semel::fingerprint::Recipe;
use semel::seal::{Keyring, SealingKey};
use semel::{Engine, EngineOptions, Environment};
use semel_tower::{IdempotencyLayer, Protection, ValidProtection};
use semel_worker::{
    Asking, Finding, OperationRules, Question, Rules, WebhookIntake, WebhookSecret, Worker, WorkerOptions,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::Layer as _;
use tower::util::BoxCloneSyncService;

/// The longest that the engine waits for the store.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a process of this gateway.
pub(crate) fn start(world: &Arc<World>, number: usize) -> Arc<Process> {
    let process = world.started.fetch_add(1, Relaxed);
    let life = Arc::new(Life::default());
    let dice = world.dice(&format!("process-{process}"));
    let weather = Weather {
        faults: Arc::clone(&world.faults),
        dice: world.dice(&format!("store-{process}")),
        life: Arc::clone(&life),
        trace: Arc::clone(&world.trace),
        outage: world.outage.clone(),
        link: world.link_of(number).clone(),
        name: format!("gateway {number}"),
        max_concurrent_batches: world.max_concurrent_batches,
        patience: STORE_TIMEOUT,
    };
    let store = SimulatedStore::connect(&world.disk, world.machine_of(number), process, Some(weather));
    let options = EngineOptions {
        store_timeout: STORE_TIMEOUT,
        quotas: world.quotas_in_force(),
        keyring: keyring(*locked(&world.keys)),
        environment: Environment::new(Arc::new(world.machine_of(number).clone()), Arc::new(dice.clone())),
        ..EngineOptions::default()
    };
    let engine = Engine::with_options(Arc::new(store.clone()), options);
    let is_other = Arc::new(AtomicBool::new(false));
    let rules = rules(world, &life, number, &is_other);
    let service = Mutex::new(service(world, &life, number, &engine, false));
    let secrets = WebhookSecret::parse(SECRET).ok();
    let intake = WebhookIntake::new(engine.clone(), Arc::clone(&rules)).source("provider", secrets);
    let every = dice.millis(500, 3_000);
    let options = WorkerOptions {
        watch_every: every,
        reconcile_every: every,
        reap_every: every * 2,
        ..WorkerOptions::default()
    };
    let worker = Worker::new(engine.clone(), options).other_operations(move |name| rules(name));
    let working = tokio::spawn(worker.run(std::future::pending()));
    let tending = tokio::spawn(async move { store.tend().await });
    let background = Mutex::new(vec![working.abort_handle(), tending.abort_handle()]);
    world.trace.note(Place::Gateways, format_args!("gateway {number} starts as process {process}"));
    Arc::new(Process { number, life, engine, service, is_other, intake, background })
}

/// Has a process take up the keys of this generation.
pub(crate) fn take_up(process: &Process, generation: Option<u32>) {
    process.engine.set_keyring(keyring(generation));
}

/// Has a process take up another configuration, of other policies and another recipe for fingerprints, or the first one again.
pub(crate) fn reload(world: &Arc<World>, process: &Process, other: bool) {
    process.serve_by(service(world, &process.life, process.number, &process.engine, other), other);
}

fn service(world: &Arc<World>, life: &Arc<Life>, gateway: usize, engine: &Engine, other: bool) -> Inner {
    let handler = Handler { world: Arc::clone(world), life: Arc::clone(life), gateway };
    BoxCloneSyncService::new(layer(world, engine.clone(), other).layer(handler))
}

/// This generation's key seals, and those before it open.
fn keyring(generation: Option<u32>) -> Option<Keyring> {
    let generation = generation?;
    let key = |generation: u32| {
        SealingKey::new(format!("key-{generation}"), &[u8::try_from(generation).unwrap_or(u8::MAX); 32]).ok()
    };
    Keyring::new((1..=generation).rev().filter_map(key)).ok()
}

fn layer(world: &Arc<World>, engine: Engine, other: bool) -> IdempotencyLayer {
    let recipe = Recipe::builder().ignore("/a member that nobody sends").build().ok().filter(|_| other);
    let protection = |rule: &Rule| {
        let valid = ValidProtection::try_from(Protection::clone(rule.in_force(other))).ok()?;
        Some(match &recipe {
            Some(recipe) => valid.with_recipe(Arc::new(recipe.clone())),
            None => valid,
        })
    };
    let rules: BTreeMap<_, _> =
        world.rules.iter().filter_map(|rule| Some((rule.name.clone(), protection(rule)?))).collect();
    let select = move |parts: &Parts| {
        let name = parts.uri.path().trim_start_matches('/');
        rules.get(name).map(|protection| (name.to_owned(), protection.clone()))
    };
    let tenant = |parts: &Parts| Some(parts.headers.get("x-tenant")?.to_str().ok()?.to_owned());
    IdempotencyLayer::with_engine(engine).tenant(tenant).protect(select)
}

/// What the workers know of each operation.
fn rules(world: &Arc<World>, life: &Arc<Life>, gateway: usize, is_other: &Arc<AtomicBool>) -> Rules {
    let of = |rule: &Rule, other: bool| {
        let rules = OperationRules::new(Arc::clone(&rule.in_force(other).policy));
        let Some((attempts, every)) = rule.polls else { return (rule.name.clone(), rules) };
        let (world, life, rule) = (Arc::clone(world), Arc::clone(life), rule.clone());
        let name = rule.name.clone();
        let ask = move |question: Question| {
            let (world, life, rule) = (Arc::clone(&world), Arc::clone(&life), rule.clone());
            async move {
                life.pass().await;
                let tenant = (0..TENANTS).find(|tenant| *question.key.tenant == *format!("tenant-{tenant}"));
                let about = (question.operation_id, question.attempt);
                world.auditor.note_question(about.0, about.1);
                let finding = provider::find(Arc::clone(&world), about, tenant.unwrap_or(0), rule);
                let way = Way::new(Host::Gateway(gateway), Host::Provider, About::Id(about.0));
                let finding = world.network.ask(way, Duration::from_secs(3), finding).await;
                life.pass().await;
                match finding {
                    Ok(finding) => finding,
                    Err(NoAnswer::NotSent) => Finding::Unclear("refused".into()),
                    Err(NoAnswer::Silence) => Finding::Unclear("silence".into()),
                }
            }
        };
        let asking = Asking { every, attempts, deadline: Duration::from_secs(4), ..Asking::new(ask) };
        (name, rules.asking(asking))
    };
    let known: [BTreeMap<String, OperationRules>; 2] =
        [false, true].map(|other| world.rules.iter().map(|rule| of(rule, other)).collect());
    let is_other = Arc::clone(is_other);
    Arc::new(move |name: &str| known[usize::from(is_other.load(Relaxed))].get(name).cloned())
}
