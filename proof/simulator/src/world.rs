//! Everything that takes part in a run, in one place.

use crate::audit::Auditor;
use crate::book::{Book, Order, Start};
use crate::dice::Dice;
use crate::faults::Faults;
use crate::life::Life;
use crate::lock::locked;
use crate::log::Told;
use crate::machine::Machine;
use crate::network::Network;
use crate::plan::Operation;
use crate::process::Process;
use crate::rules::Rule;
use crate::store::{Disk, Link, Outage};
use crate::trace::{Place, Trace};
use semel::Quotas;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};

/// A run's world.
pub(crate) struct World {
    pub(crate) seed: u64,
    /// For whatever has no stream of its own.
    pub(crate) chance: Dice,
    pub(crate) trace: Arc<Trace>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) network: Arc<Network>,
    /// Whose clock the store goes by.
    pub(crate) machine: Machine,
    /// Where each gateway runs: on that very machine, or on one of its own.
    pub(crate) hosts: Vec<Machine>,
    pub(crate) disk: Disk,
    pub(crate) outage: Outage,
    /// Each gateway's link to the store.
    links: Vec<Link>,
    pub(crate) book: Arc<Book>,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) rules: Arc<Vec<Rule>>,
    pub(crate) plan: Vec<Operation>,
    pub(crate) quotas: Quotas,
    pub(crate) max_concurrent_batches: usize,
    /// Which generation of encryption keys is in force; `None`: nothing is sealed.
    pub(crate) keys: Mutex<Option<u32>>,
    pub(crate) gateways: Mutex<Vec<Arc<Process>>>,
    /// How many gateway processes were ever started.
    pub(crate) started: AtomicUsize,
    pub(crate) webhooks: AtomicU32,
    service: Mutex<Arc<Life>>,
    provider: Mutex<Arc<Life>>,
    told: Mutex<Vec<Told>>,
}

/// What a world is made of.
pub(crate) struct Parts {
    pub(crate) seed: u64,
    pub(crate) trace: Arc<Trace>,
    pub(crate) faults: Arc<Faults>,
    /// Whose clock the store goes by.
    pub(crate) machine: Machine,
    /// Where each gateway runs: on that very machine, or on one of its own.
    pub(crate) hosts: Vec<Machine>,
    pub(crate) disk: Disk,
    pub(crate) book: Arc<Book>,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) rules: Arc<Vec<Rule>>,
    pub(crate) plan: Vec<Operation>,
    pub(crate) quotas: Quotas,
    pub(crate) max_concurrent_batches: usize,
    pub(crate) sealed: bool,
}

impl World {
    pub(crate) fn of(parts: Parts) -> Arc<Self> {
        let Parts {
            seed,
            trace,
            faults,
            machine,
            hosts,
            disk,
            book,
            auditor,
            rules,
            plan,
            quotas,
            max_concurrent_batches,
            sealed,
        } = parts;
        let network =
            Arc::new(Network::new(Arc::clone(&faults), Dice::of(seed, "network"), Arc::clone(&trace)));
        let links = hosts.iter().map(|_| Link::default()).collect();
        Arc::new(Self {
            seed,
            chance: Dice::of(seed, "chance"),
            trace,
            faults,
            network,
            machine,
            hosts,
            disk,
            outage: Outage::default(),
            links,
            book,
            auditor,
            rules,
            plan,
            quotas,
            max_concurrent_batches,
            keys: Mutex::new(sealed.then_some(1)),
            gateways: Mutex::default(),
            started: AtomicUsize::new(0),
            webhooks: AtomicU32::new(0),
            service: Mutex::default(),
            provider: Mutex::default(),
            told: Mutex::default(),
        })
    }

    pub(crate) fn dice(&self, name: &str) -> Dice {
        Dice::of(self.seed, name)
    }

    pub(crate) fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    pub(crate) fn gateway(&self, number: usize) -> Arc<Process> {
        let gateways = locked(&self.gateways);
        Arc::clone(&gateways[number % gateways.len()])
    }

    pub(crate) fn machine_of(&self, gateway: usize) -> &Machine {
        &self.hosts[gateway % self.hosts.len()]
    }

    pub(crate) fn link_of(&self, gateway: usize) -> &Link {
        &self.links[gateway % self.links.len()]
    }

    /// What tenants may take. After healing there is no limit any more: what waits for room would never settle.
    pub(crate) fn quotas_in_force(&self) -> Quotas {
        if self.faults.are_healed() { Quotas::default() } else { self.quotas.clone() }
    }

    pub(crate) fn service(&self) -> Arc<Life> {
        Arc::clone(&locked(&self.service))
    }

    pub(crate) fn provider(&self) -> Arc<Life> {
        Arc::clone(&locked(&self.provider))
    }

    pub(crate) fn start_service(&self) {
        *locked(&self.service) = Arc::default();
    }

    pub(crate) fn start_provider(&self) {
        *locked(&self.provider) = Arc::default();
    }

    pub(crate) fn tell(&self, told: Told) {
        locked(&self.told).push(told);
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, Vec<Told>> {
        locked(&self.told)
    }

    /// Somebody begins to act on an order.
    pub(crate) fn note_start(&self, order: &Order) {
        let reserved = self.auditor.has_attempt(order.id, order.attempt);
        self.trace.note(
            Place::Service,
            format_args!("#{} {} attempt {} starts", order.number, order.id, order.attempt),
        );
        if self.auditor.has_passed(order.id, order.attempt) {
            self.auditor.object(format!(
                "P1 #{} {} attempt {} starts, and an earlier one has committed that it is paid",
                order.number, order.id, order.attempt
            ));
        }
        let start = Start { at: self.trace.now(), order: order.clone(), reserved };
        self.book.pages().begin(start);
    }

    /// The attempt did nothing, and whoever knows says so.
    pub(crate) fn note_nothing(&self, order: &Order) {
        self.trace.note(
            Place::Service,
            format_args!("#{} {} attempt {} did nothing", order.number, order.id, order.attempt),
        );
        self.book.pages().prove(self.trace.now(), order.id, order.attempt, false);
    }
}
