//! Instances that share a row and a server's clock, stalled at any moment: once that is over, all of them serve.

use super::{MINUTE, Machine, NOON, times};
use crate::clock::{Clock, Keeper, Mark, Readings, Terms, Told, Wrong};
use core::sync::atomic::{AtomicI64, Ordering};
use core::time::Duration;
use std::time::SystemTime;

/// Numbers that repeat.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % most.unsigned_abs()).expect("small")
    }
}

/// What a statement was told, and what it answered.
#[derive(Clone, Copy)]
enum Step {
    Idle,
    Asked { sent: Duration, expected: Option<(i64, i64, i64)> },
    Answered { sent: Duration, is_start: bool, now: i64, claimed: i64, row: Mark },
    Judged { row: Mark, mark: Mark },
}

struct Instance {
    keeper: Keeper,
    /// What its steady clock has missed.
    missed: i64,
    step: Step,
    told: Option<Told>,
}

impl Instance {
    fn new(terms: Terms, id: i64) -> Self {
        Self { keeper: Keeper::new(terms, id), missed: 0, step: Step::Idle, told: None }
    }

    fn serves(&self) -> bool {
        self.told.is_some_and(|told| told.wrong.is_none())
    }

    fn trusts_the_clock(&self) -> bool {
        self.told.is_some_and(|told| (told.mark.behind, told.mark.hold) == (0, 0))
    }
}

/// A server whose clock is right.
struct Server {
    passed: i64,
    row: Mark,
}

impl Server {
    /// The next moment of an instance's statement. It may be stalled between any two.
    fn go_on(&mut self, instance: &mut Instance) {
        let boottime = Duration::from_millis((MINUTE + self.passed - instance.missed).unsigned_abs());
        instance.step = match instance.step {
            Step::Idle => Step::Asked { sent: boottime, expected: instance.keeper.expectation(boottime) },
            Step::Asked { sent, expected } => {
                let (claimed, row) = (NOON + self.passed, self.row);
                let now = stamped(claimed, &row, expected.unwrap_or((0, 0, i64::MAX / 4)));
                Step::Answered { sent, is_start: expected.is_none(), now, claimed, row }
            }
            Step::Answered { sent, is_start, now, claimed, row } => {
                let told = (!is_start).then_some(now);
                let readings = Readings { claimed, sent, boottime, monotonic: boottime, told };
                let told = instance.keeper.judge(row, &readings);
                instance.told = Some(told);
                let is_old = told.mark.at.saturating_sub(row.at) >= MINUTE / 2;
                if told.wrong.is_none() && (is_old || !told.mark.agrees_with(&row)) {
                    Step::Judged { row, mark: told.mark }
                } else {
                    Step::Idle
                }
            }
            Step::Judged { row, mark } => {
                if self.row == row {
                    self.row = mark;
                }
                Step::Idle
            }
        };
    }
}

/// As the statements of the PostgreSQL store have it.
fn stamped(claimed: i64, row: &Mark, (floor, expected, allowance): (i64, i64, i64)) -> i64 {
    let (due, followed) = (expected.max(row.at), -2_000..=allowance);
    let now = if (row.behind != 0 || row.hold > 0) && expected > 0 && followed.contains(&(claimed - due)) {
        claimed
    } else if followed.contains(&(claimed - row.behind - due)) {
        claimed - row.behind
    } else {
        due
    };
    now.max(floor)
}

/// Three instances for some minutes, of which the first is stalled, but neither stopped nor paused with its machine.
fn stalled(seed: u64, max_step: Duration) -> (Server, Vec<Instance>) {
    let (mut dice, terms) = (Dice(seed), Terms { max_step, ..Terms::default() });
    let mut server = Server { passed: 0, row: Mark::NONE };
    let mut instances: Vec<_> = (1..=3).map(|id| Instance::new(terms, id)).collect();
    for _ in 0..4 {
        server.go_on(&mut instances[0]);
    }
    let mut id = 3;
    for _ in 0..400 {
        let which = usize::try_from(dice.below(3)).expect("small");
        let instance = &mut instances[which];
        match dice.below(60) {
            0 if which > 0 => {
                id += 1;
                *instance = Instance::new(terms, id);
            }
            // Its machine is paused with it, for all that its steady clock knows.
            1 if which > 0 => {
                let paused = dice.below(5_000);
                server.passed += paused;
                instance.missed += paused;
            }
            2 => server.passed += dice.below(5_000),
            3 => server.passed += dice.below(40_000),
            _ => server.passed += dice.below(500),
        }
        server.go_on(instance);
    }
    (server, instances)
}

/// Five minutes in which each of them looks once a second.
fn calm(server: &mut Server, instances: &mut [Instance]) {
    for _ in 0..300 {
        for instance in &mut *instances {
            instance.step = Step::Idle;
            server.go_on(instance);
            while !matches!(instance.step, Step::Idle) {
                server.passed += 1;
                server.go_on(instance);
            }
        }
        server.passed += 990;
    }
}

const STEPS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(3_600)];

#[test]
fn whoever_was_stalled_or_paused_goes_on_with_the_others() {
    for max_step in STEPS {
        for seed in 0..1_000 {
            let (mut server, mut instances) = stalled(seed, max_step);
            calm(&mut server, &mut instances);
            for instance in &instances {
                let is_well = instance.serves() && instance.trusts_the_clock();
                assert!(is_well, "{max_step:?}, seed {seed}: {:?}, {:?}", instance.told, server.row);
            }
        }
    }
}

/// It looked too seldom to see when the other one left its marks, and cannot tell its own pause from a step of the clock.
fn contradicted() -> (Machine, Machine, Mark) {
    let terms = Terms { max_step: Duration::from_secs(1), ..Terms::default() };
    let (mut row, mut one, mut two) =
        (Mark::NONE, Machine::under(terms, NOON, 1), Machine::under(terms, NOON, 2));
    one.write(&mut row);
    two.write(&mut row);
    one.pass(10_000);
    two.wall += 10_000;
    one.write(&mut row);
    for machine in [&mut one, &mut two] {
        machine.pass(5_000);
    }
    assert_eq!(two.look(row).mark.behind, 5_000);
    for after in [25_000, 4_000] {
        for machine in [&mut one, &mut two] {
            machine.pass(after);
        }
        if after == 25_000 {
            row = one.look(row).mark;
        }
    }
    assert_eq!(two.look(row).wrong, Some(Wrong::Contradicted(5_000)));
    (one, two, row)
}

#[test]
fn whoever_is_contradicted_goes_on_with_the_next_mark_of_another_one() {
    let (mut one, mut two, mut row) = contradicted();
    for second in 1..=60 {
        for machine in [&mut one, &mut two] {
            machine.pass(1_000);
        }
        let told = two.look(row);
        assert_eq!(told.wrong.is_some(), second <= 30, "{second}: {told:?}");
        if second == 30 {
            row = one.look(row).mark;
        }
    }
    let told = two.write(&mut row);
    assert_eq!((told.mark.behind, times(&told)), (0, (two.wall, two.wall)));
}

/// As after a restart: nobody knows whether its clock or its expectation is right, so it opens a hold.
#[test]
fn whoever_is_contradicted_by_one_that_is_gone_holds_and_serves() {
    let (_gone, mut two, mut row) = contradicted();
    for second in 1..=180 {
        two.pass(1_000);
        let told = two.write(&mut row);
        assert_eq!(told.wrong.is_some(), second <= 120, "{second}: {told:?}");
    }
    assert!(row.is_held());
}

/// A machine on which whatever runs is stalled for a while after each clock that it reads.
struct Stalling {
    passed: AtomicI64,
    by: i64,
}

impl Stalling {
    fn read(&self) -> i64 {
        self.passed.fetch_add(self.by, Ordering::Relaxed)
    }

    fn steady(&self) -> Duration {
        Duration::from_millis(self.read().unsigned_abs())
    }
}

impl Clock for Stalling {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis((NOON + self.read()).unsigned_abs())
    }

    fn monotonic(&self) -> Duration {
        self.steady()
    }

    fn boottime(&self) -> Duration {
        self.steady()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}

#[test]
fn a_thread_that_is_stalled_while_it_reads_the_clocks_sees_no_step() {
    let terms = Terms { max_step: Duration::from_secs(1), ..Terms::default() };
    let (mut keeper, mut row) = (Keeper::new(terms, 1), Mark::NONE);
    for stalled in [1, 3_000, 1, 40_000, 1, 1_500] {
        let clock = Stalling { passed: AtomicI64::new(row.at.max(NOON) - NOON + MINUTE), by: stalled };
        let told = keeper.judge(row, &clock.readings());
        assert_eq!((told.mark.behind, told.mark.hold, told.wrong), (0, 0, None), "{stalled}: {told:?}");
        row = told.mark;
    }
}
