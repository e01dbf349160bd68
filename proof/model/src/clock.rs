//! The store's clock: the production judge, under a clock that jumps both ways.
//!
//! Two instances share a row and a machine. They stop and start, the machine's clock jumps ahead and back by more than every window, time passes, and a
//! hold ends as it may: the clock comes back, the kernel says that it is right, or an operator does. One window and one lease are stamped at any
//! moment. Whoever runs leaves marks. Every decision is [`Keeper`]'s; what is judged over is held against the time that really passed.
//!
//! Kernel and operator tell the truth. A clock that is off is so by more than the store is ever stopped for: docs/decisions/clock.md names what
//! cannot be told from a clock that is right.

use semel::clock::{Keeper, Mark, Readings, Terms, Told, Trust, Wrong, beside};
use stateright::{Model, Property};
use std::time::Duration;

const SECOND: i64 = 1_000;
const DAY: i64 = 24 * 60 * 60 * SECOND;
const BEGUN: i64 = 1_800_000_000_000;

/// For how long a key is remembered.
const WINDOW: i64 = DAY;
const LEASE: i64 = 30 * SECOND;
/// Less than a lease, and more than a window.
const PASSES: [i64; 2] = [20 * SECOND, 14 * DAY];
/// By how much a clock is off that is wrong.
const OFF: [i64; 2] = [100 * DAY, -100 * DAY];

/// A mistake that has to be caught.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClockMistake {
    /// A jump ahead is believed.
    JumpBelieved,
    /// During a hold, the latest time is what the clock claims by now.
    LatestGoesBack,
    /// A clock that is far behind the mark at a start is gone by.
    BehindBelieved,
    /// Leases are judged over by the time alone.
    NoPatience,
}

/// How much may happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClockBounds {
    /// Instances that share the row: one or two.
    pub instances: u8,
    /// Times that the clock goes wrong.
    pub jumps: u8,
    /// Instances that stop.
    pub stops: u8,
    /// Times that time passes.
    pub passes: u8,
    /// Windows and leases that are stamped.
    pub stamps: u8,
}

impl ClockBounds {
    /// What a test has time for.
    pub const SMALL: &'static [Self] = &[
        Self { instances: 1, jumps: 2, stops: 1, passes: 2, stamps: 1 },
        Self { instances: 2, jumps: 1, stops: 1, passes: 1, stamps: 1 },
    ];

    /// What takes longer.
    pub const LARGE: &'static [Self] = &[
        Self { instances: 1, jumps: 3, stops: 2, passes: 3, stamps: 1 },
        Self { instances: 2, jumps: 1, stops: 2, passes: 1, stamps: 1 },
        Self { instances: 2, jumps: 1, stops: 1, passes: 2, stamps: 1 },
    ];
}

/// The model.
#[derive(Debug)]
pub struct Clocks {
    /// How much may happen.
    pub bounds: ClockBounds,
    /// What is wrong with it.
    pub mistake: Option<ClockMistake>,
}

/// A window and a lease, as they are in the store, and when they really began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Stamped {
    created: i64,
    lease: i64,
    expires: i64,
    passed: i64,
}

/// What has happened, for the checker to see that the model gets somewhere.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
struct Reached {
    held: bool,
    came_back: bool,
    ended: bool,
    behind: bool,
    accepted_behind: bool,
    forgotten: bool,
}

/// Everything there is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClockWorld {
    row: Mark,
    instances: [Option<Keeper>; 2],
    /// The time that has really passed, which is the boot time.
    passed: i64,
    off: i64,
    stamped: Option<Stamped>,
    left: ClockBounds,
    reached: Reached,
    early_window: bool,
    early_lease: bool,
}

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockAction {
    /// So much time passes.
    Pass(i64),
    /// The clock is off by this from now on.
    Set(i64),
    /// An instance starts.
    Start(usize),
    /// An instance stops, or crashes.
    Stop(usize),
    /// An instance reads.
    Look(usize),
    /// An instance writes: a new window and a lease, where they are missing.
    Write(usize),
    /// An application's own transaction stamps beside the store, if there is nothing stamped.
    Beside,
    /// The kernel says that the clock is right.
    Synchronised(usize),
    /// An operator says so.
    Accept(usize),
}

impl ClockWorld {
    fn readings(&self) -> Readings {
        // No boot was ever at zero.
        let boottime = Duration::from_millis((self.passed + DAY).unsigned_abs());
        Readings {
            claimed: BEGUN + self.passed + self.off,
            sent: boottime,
            boottime,
            monotonic: boottime,
            told: None,
        }
    }

    fn look(&mut self, at: usize, mistake: Option<ClockMistake>) -> Option<Told> {
        let (readings, row) = (self.readings(), self.row);
        let keeper = self.instances[at].as_mut()?;
        let was_held = row.is_held();
        if mistake == Some(ClockMistake::BehindBelieved) {
            keeper.accept_behind();
        }
        let mut told = keeper.judge(row, &readings);
        if mistake == Some(ClockMistake::LatestGoesBack) && told.mark.is_held() {
            told.mark.hold = told.mark.behind.max(0);
            told.now.latest = semel::Timestamp::from_millis(told.mark.at + told.mark.hold);
        }
        self.reached.behind |= matches!(told.wrong, Some(Wrong::Behind(_)));
        if told.wrong.is_some() {
            return Some(told);
        }
        self.reached.held |= told.mark.is_held();
        self.reached.came_back |= was_held && !told.mark.is_held();
        self.judged(&told, mistake);
        Some(told)
    }

    /// Whatever is over by what was told is really over.
    fn judged(&mut self, told: &Told, mistake: Option<ClockMistake>) {
        let Some(stamped) = self.stamped else { return };
        let (now, passed) = (told.now, self.passed - stamped.passed);
        let earliest = now.earliest.as_millis();
        let created = semel::Timestamp::from_millis(stamped.created);
        let patience = now.until_steady(created, Duration::from_millis(LEASE.unsigned_abs()));
        let patient = patience.is_zero() || mistake == Some(ClockMistake::NoPatience);
        self.early_lease |= stamped.lease <= earliest && patient && passed < LEASE;
        self.early_window |= stamped.expires <= earliest && passed < WINDOW;
    }

    fn write(&mut self, at: usize, mistake: Option<ClockMistake>) {
        let Some(told) = self.look(at, mistake).filter(|told| told.wrong.is_none()) else { return };
        self.row = told.mark;
        let earliest = told.now.earliest.as_millis();
        match self.stamped {
            // The reaper comes by, which does nothing during a hold.
            Some(stamped) if stamped.expires <= earliest && !told.now.is_held() => {
                self.stamped = None;
                self.reached.forgotten = true;
            }
            None if self.left.stamps > 0 => {
                self.left.stamps -= 1;
                let expires = told.now.latest.as_millis() + WINDOW;
                let lease = earliest + LEASE;
                self.stamped = Some(Stamped { created: earliest, lease, expires, passed: self.passed });
            }
            _ => {}
        }
    }

    /// It goes by the row, which it leaves alone.
    fn stamp_beside(&mut self) {
        let Ok(now) = beside(self.row, BEGUN + self.passed + self.off) else { return };
        self.left.stamps -= 1;
        let created = now.earliest.as_millis();
        let expires = now.latest.as_millis() + WINDOW;
        self.stamped = Some(Stamped { created, lease: created + LEASE, expires, passed: self.passed });
    }

    fn end_hold(&mut self, at: usize, mistake: Option<ClockMistake>, by_kernel: bool) {
        let Some(told) = self.look(at, mistake) else { return };
        let boottime = self.readings().boottime;
        let Some(keeper) = &mut self.instances[at] else { return };
        match told.wrong {
            Some(Wrong::Behind(_)) if !by_kernel => {
                keeper.accept_behind();
                self.reached.accepted_behind = true;
                self.write(at, mistake);
            }
            None if told.now.is_held() && (!by_kernel || keeper.watch(true, boottime, Duration::MAX)) => {
                self.row = keeper.accepting(&told);
                self.reached.ended = true;
            }
            _ => {}
        }
    }

    /// With a right clock and an operator's word, the store works by the one time that it is, or goes on from a mark that is further.
    fn settles(&self) -> bool {
        let mut calm = Self { off: 0, stamped: None, instances: [None, None], ..self.clone() };
        calm.instances[0] = Some(Keeper::new(terms(None), 1));
        calm.end_hold(0, None, false);
        let Some(told) = calm.look(0, None) else { return false };
        let (now, real) = (told.now, BEGUN + calm.passed);
        told.wrong.is_none() && !now.is_held() && now.earliest.as_millis() >= real.max(self.row.at)
    }
}

fn terms(mistake: Option<ClockMistake>) -> Terms {
    // The kernel's word counts at once: unit tests hold for how long it has to.
    let terms = Terms { hold: Duration::ZERO, ..Terms::default() };
    match mistake {
        Some(ClockMistake::JumpBelieved) => Terms { trust: Trust::Always, max_step: Duration::MAX, ..terms },
        _ => terms,
    }
}

impl Clocks {
    fn begun(&self, off: i64) -> ClockWorld {
        let mut world = ClockWorld {
            row: Mark::NONE,
            instances: [Some(Keeper::new(terms(self.mistake), 1)), None],
            passed: 0,
            off,
            stamped: None,
            left: ClockBounds { stamps: 0, ..self.bounds },
            reached: Reached::default(),
            early_window: false,
            early_lease: false,
        };
        world.write(0, None);
        world.left = self.bounds;
        world
    }
}

impl Model for Clocks {
    type State = ClockWorld;
    type Action = ClockAction;

    fn init_states(&self) -> Vec<ClockWorld> {
        // The first start of a store has no mark to compare with: it believes its clock, right or wrong.
        [0, OFF[0]].map(|off| self.begun(off)).into()
    }

    fn actions(&self, world: &ClockWorld, actions: &mut Vec<ClockAction>) {
        if world.early_window || world.early_lease {
            return;
        }
        if world.left.passes > 0 {
            actions.extend(PASSES.map(ClockAction::Pass));
        }
        if world.left.jumps > 0 {
            actions.extend(OFF.into_iter().filter(|off| *off != world.off).map(ClockAction::Set));
        }
        if world.off != 0 {
            actions.push(ClockAction::Set(0));
        }
        // Beside a store: it leaves a mark once a minute.
        if world.stamped.is_none() && world.left.stamps > 0 && world.instances.iter().any(Option::is_some) {
            actions.push(ClockAction::Beside);
        }
        for (at, instance) in world.instances.iter().enumerate().take(world.left.instances.into()) {
            if instance.is_none() {
                actions.push(ClockAction::Start(at));
                continue;
            }
            actions.extend([ClockAction::Look(at), ClockAction::Write(at)]);
            if world.left.stops > 0 {
                actions.push(ClockAction::Stop(at));
            }
            if world.off == 0 {
                actions.extend([ClockAction::Synchronised(at), ClockAction::Accept(at)]);
            }
        }
    }

    fn next_state(&self, world: &ClockWorld, action: ClockAction) -> Option<ClockWorld> {
        let mut next = world.clone();
        match action {
            ClockAction::Pass(millis) => {
                next.left.passes -= 1;
                next.passed += millis;
                // Whoever runs leaves a mark once a minute.
                for at in 0..next.instances.len() {
                    next.write_row(at, self.mistake);
                }
            }
            ClockAction::Set(off) => {
                next.left.jumps -= u8::from(off != 0);
                next.off = off;
            }
            ClockAction::Start(at) => {
                next.instances[at] = Some(Keeper::new(terms(self.mistake), at as i64 + 1));
                // A store writes its row before it is open.
                next.write_row(at, self.mistake);
            }
            ClockAction::Stop(at) => {
                next.left.stops -= 1;
                next.instances[at] = None;
            }
            ClockAction::Look(at) => drop(next.look(at, self.mistake)),
            ClockAction::Write(at) => next.write(at, self.mistake),
            ClockAction::Beside => next.stamp_beside(),
            ClockAction::Synchronised(at) => next.end_hold(at, self.mistake, true),
            ClockAction::Accept(at) => next.end_hold(at, self.mistake, false),
        }
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always("no window is over before its time", |_, world| !world.early_window),
            Property::<Self>::always("no lease is over before its time", |_, world| !world.early_lease),
            Property::<Self>::always("a right clock and an operator's word end every hold", |_, world| {
                world.settles()
            }),
            Property::<Self>::sometimes("a hold is open", |_, world| world.reached.held),
            Property::<Self>::sometimes("the clock comes back", |_, world| world.reached.came_back),
            Property::<Self>::sometimes("somebody ends a hold", |_, world| world.reached.ended),
            Property::<Self>::sometimes("a start is behind the mark", |_, world| world.reached.behind),
            Property::<Self>::sometimes("that is accepted", |_, world| world.reached.accepted_behind),
            Property::<Self>::sometimes("something is forgotten", |_, world| world.reached.forgotten),
        ]
    }
}

impl ClockWorld {
    fn write_row(&mut self, at: usize, mistake: Option<ClockMistake>) {
        if let Some(told) = self.look(at, mistake).filter(|told| told.wrong.is_none()) {
            self.row = told.mark;
        }
    }
}
