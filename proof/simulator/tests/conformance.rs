//! The contract of all stores, on the simulated one with its faults off.
#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use semel::Store;
use semel::clock::Terms;
use semel_conformance::{Hands, Lacking, Subject};
use semel_simulator::Machine;
use semel_simulator::store::{Disk, SimulatedStore};
use std::sync::Arc;
use std::time::Duration;

struct Simulated {
    disk: Disk,
    store: SimulatedStore,
    machine: Machine,
}

struct Moving(Machine);

fn millis(by: Duration) -> i64 {
    i64::try_from(by.as_millis()).expect("tests move clocks by hours at most")
}

impl Hands for Moving {
    fn forward(&self, by: Duration) {
        self.0.forward(by);
    }

    fn jump(&self, by: Duration) {
        self.0.step(millis(by));
    }

    fn come_back(&self, by: Duration) {
        self.0.step(-millis(by));
    }

    fn back(&self, by: Duration) {
        self.0.step(-millis(by));
    }
}

impl Subject for Simulated {
    async fn fresh() -> Self {
        let machine = Machine::by_hand();
        let disk = Disk::new(machine.clone(), Terms::default());
        Self { store: SimulatedStore::open(&disk, 0), disk, machine }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        Ok(Arc::new(SimulatedStore::open(&self.disk, 1)))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        let Self { disk, machine, .. } = self;
        disk.restart();
        Ok(Self { store: SimulatedStore::open(&disk, 2), disk, machine })
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(Moving(self.machine.clone())))
    }
}

semel_conformance::suite!(Simulated);
