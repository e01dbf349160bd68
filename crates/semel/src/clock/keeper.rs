//! The judge of a store's clock: what is believed, what is not, and when that changes.

use super::{Mark, Terms, Trust};
use crate::time::{Now, Timestamp};
use core::time::Duration;

/// How far the clock and the steady clock may part before that is a step, in milliseconds. Clock discipline moves both; only a step moves
/// one. More than a leap second, and less than any lease worth having.
pub(super) const TOLERANCE: i64 = 2_000;

/// Small steps within this long count together: many of them are one step.
const PERIOD: Duration = Duration::from_secs(60);

/// The time since the last mark that needs no belief, in milliseconds: marks are written once a minute.
pub(super) const SINCE_MARK: i64 = 120_000;

/// How far apart two looks may be between which another instance left its mark, for that to say what time it was.
const WITNESSED: Duration = Duration::from_millis(TOLERANCE.unsigned_abs());

/// The time in which as much as [`Terms::max_step`] may be followed, all steps taken together.
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// What the clocks say when a store is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readings {
    /// What the store's clock says, in milliseconds since 1970: the machine's clock, or the database server's.
    pub claimed: i64,
    /// When that was asked, by this process's boot time.
    pub sent: Duration,
    /// When the answer was there, by this process's boot time.
    pub boottime: Duration,
    /// The same moment, by a clock that stands still while the machine is suspended.
    pub monotonic: Duration,
    /// The earliest time that the store has stamped already, where the database itself decided.
    pub told: Option<i64>,
}

/// What is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// The time.
    pub now: Now,
    /// What the store's row is to say from now on. Where `behind` differs from what it says, it has to be written soon.
    pub mark: Mark,
    /// What has changed.
    pub turn: Option<Turn>,
    /// Why this instance must not work.
    pub wrong: Option<Wrong>,
}

/// Why an instance must not work, and by how many milliseconds its clock is off: above zero, ahead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wrong {
    /// Its clock is far from the time that another instance keeps.
    Contradicted(i64),
    /// At its start its clock was far behind the store's mark. Such a clock cannot say how long the store was stopped, so no window can be
    /// stamped by it.
    Behind(i64),
}

/// A change in what is believed, by so many milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The latest time is ahead of the trusted time by this much: a hold is open.
    Held(i64),
    /// The clock agrees with the trusted time again.
    Agrees,
    /// The clock was set back by this much and is not followed.
    SetBack(i64),
    /// A step ahead of this much was followed.
    Stepped(i64),
    /// A jump of this much across the start was believed ([`Trust::Always`]).
    Believed(i64),
    /// Others keep another time, by this much.
    Contradicted(i64),
    /// The clock is behind the store's mark by this much at a start.
    Behind(i64),
}

/// The judge of one instance of a store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Keeper {
    terms: Terms,
    id: i64,
    running: Option<Running>,
    /// Before it runs: whether the clock was found behind the mark, and whether an operator said that it is right all the same.
    is_behind: bool,
    is_accepted: bool,
}

/// What is made of the readings.
struct Believed {
    earliest: i64,
    /// By how much the clock is ahead of it.
    behind: i64,
    /// By how much the latest time is: above zero, a hold is open.
    hold: i64,
    turn: Option<Turn>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Running {
    /// What time it was, when the boot time was this.
    anchor: (i64, Duration),
    /// The highest earliest time given out.
    floor: i64,
    /// The last readings of the two steady clocks: they part while the machine is suspended.
    seen: (Duration, Duration),
    /// Since when the clock has run without a step, by the clock that stands still while the machine is suspended.
    steady: Duration,
    /// What was told last before that; `None`: it begins with what is told next.
    since: Option<i64>,
    /// Small steps of the current period.
    small: (i64, Duration),
    /// What was followed of late, and when that was added up.
    followed: (i64, Duration),
    /// By how much the clock is believed to be ahead, and the latest time.
    behind: i64,
    hold: i64,
    /// The row on which that was decided, and when.
    decided: (Mark, i64),
    /// The row as it was seen last, while the clock is not followed.
    row: Option<Mark>,
    /// Where another instance has written it since then, and within the last two minutes: between which two boot times.
    written: Option<(Duration, Duration)>,
    /// When the last look was asked for.
    asked: Duration,
    /// Whether others contradict it.
    is_wrong: bool,
    /// Since when, and when last, the kernel was seen to report a synchronised clock during a hold.
    watched: Option<(Duration, Duration)>,
}

impl Keeper {
    /// A judge that has not seen a clock yet. `id` tells this process from others that share the store.
    #[must_use]
    pub const fn new(terms: Terms, id: i64) -> Self {
        Self { terms, id, running: None, is_behind: false, is_accepted: false }
    }

    /// The terms.
    #[must_use]
    pub const fn terms(&self) -> Terms {
        self.terms
    }

    /// For a database that decides by itself, the highest time that was told, the time that is expected when the boot time is this, and how
    /// far ahead of it the clock is followed.
    #[must_use]
    pub fn expectation(&self, boottime: Duration) -> Option<(i64, i64, i64)> {
        let running = self.running.as_ref()?;
        Some((running.floor, running.expected(boottime), running.allowance(self.terms.max_step, boottime)))
    }

    /// What is believed, given the store's row and what the clocks say.
    pub fn judge(&mut self, row: Mark, readings: &Readings) -> Told {
        let (terms, id) = (self.terms, self.id);
        let (running, believed) = match &mut self.running {
            Some(running) => {
                let believed = running.judge(row, readings, terms, id);
                (running, believed)
            }
            None => match start(row, readings, terms, self.is_accepted) {
                Ok(believed) => (self.running.insert(Running::from(&believed, row, readings)), believed),
                Err(by) => {
                    let is_new = !core::mem::replace(&mut self.is_behind, true);
                    return behind_the_mark(row, by, is_new);
                }
            },
        };
        let Believed { earliest, behind, hold, turn } = believed;
        // Answers of a database may come out of order, and what it has stamped is what is told.
        let earliest = readings.told.unwrap_or(earliest.max(running.floor));
        running.floor = running.floor.max(earliest);
        // It never goes back while a hold is open: windows that are stamped now have to outlast the claim that turns out to be right.
        let latest = earliest.saturating_add(hold);
        let latest = if readings.told.is_some() || hold > 0 { latest.max(readings.claimed) } else { latest };
        let now = Now {
            earliest: Timestamp::from_millis(earliest),
            latest: Timestamp::from_millis(latest),
            steady: readings.monotonic.saturating_sub(running.steady),
            since: Timestamp::from_millis(*running.since.get_or_insert(earliest)),
        };
        let wrong = running.is_wrong.then_some(Wrong::Contradicted(behind));
        Told { now, mark: Mark { at: earliest, behind, hold, by: id }, turn, wrong }
    }

    /// An operator says that the clock is right, though it is behind the mark: the next look begins with it, and the store's time goes on from
    /// the mark. Without effect on a judge that runs already.
    pub fn accept_behind(&mut self) {
        self.is_accepted = true;
    }

    /// Begins to count a lease's patience again: the store was away, and owners could not say that they live.
    pub fn begin_again(&mut self, monotonic: Duration) {
        if let Some(running) = &mut self.running {
            (running.steady, running.since) = (monotonic, None);
        }
    }

    /// Watches what the kernel says of its clock during a hold, which has to be asked again within `patience`. Whether the hold may end.
    pub fn watch(&mut self, synchronised: bool, boottime: Duration, patience: Duration) -> bool {
        let Some(running) = &mut self.running else { return false };
        if running.hold <= 0 || running.is_wrong || !synchronised {
            running.watched = None;
            return false;
        }
        let since = match running.watched {
            Some((since, last)) if boottime.saturating_sub(last) <= patience => since,
            _ => boottime,
        };
        running.watched = Some((since, boottime));
        boottime.saturating_sub(since) >= self.terms.hold
    }

    /// For how long the kernel has reported a synchronised clock during this hold.
    #[must_use]
    pub fn watched_for(&self) -> Duration {
        let watched = self.running.as_ref().and_then(|running| running.watched);
        watched.map_or(Duration::ZERO, |(since, last)| last.saturating_sub(since))
    }

    /// The row that ends a hold: what the clock claims is the time, unless that is before what was told.
    #[must_use]
    pub fn accepting(&self, told: &Told) -> Mark {
        let Mark { at, behind, .. } = told.mark;
        Mark { at: at.saturating_add(behind.max(0)), behind: behind.min(0), hold: 0, by: self.id }
    }
}

/// Of a start whose clock is behind the mark. The row stays as it is.
fn behind_the_mark(row: Mark, by: i64, is_new: bool) -> Told {
    let latest = Timestamp::from_millis(row.at.saturating_add(row.held()));
    let now = Now { latest, ..Timestamp::from_millis(row.at).into() };
    let turn = is_new.then_some(Turn::Behind(by));
    Told { now, mark: row, turn, wrong: Some(Wrong::Behind(by.saturating_neg())) }
}

/// At a start it is not known how much time has passed since the last mark. An error is a clock that is behind the mark by so much.
fn start(row: Mark, readings: &Readings, terms: Terms, is_accepted: bool) -> Result<Believed, i64> {
    let claimed = readings.claimed;
    if row.at <= 0 {
        return Ok(Believed { earliest: claimed, behind: 0, hold: 0, turn: None });
    }
    let (max_step, ahead) = (millis(terms.max_step), claimed.saturating_sub(row.at));
    let step = ahead.saturating_sub(row.behind);
    let agrees = (-TOLERANCE..=max_step).contains(&ahead);
    let believed = if row.is_held() { SINCE_MARK.min(max_step) } else { max_step };
    Ok(if (row.behind != 0 || row.is_held()) && agrees {
        Believed { earliest: claimed.max(row.at), behind: 0, hold: 0, turn: Some(Turn::Agrees) }
    } else if terms.trust == Trust::Always && ahead > TOLERANCE {
        let turn = (ahead > max_step).then_some(Turn::Believed(ahead));
        Believed { earliest: claimed, behind: 0, hold: 0, turn }
    } else if (-TOLERANCE..=believed).contains(&step) {
        // What the clock said of the time when the row was written, it says now.
        let (earliest, hold) = (claimed.saturating_sub(row.behind).max(row.at), row.held());
        let turn = row.is_held().then_some(Turn::Held(hold));
        Believed { earliest, behind: row.behind, hold, turn }
    } else if ahead < -max_step && !is_accepted {
        return Err(ahead.saturating_neg());
    } else {
        let hold = if is_accepted && ahead < 0 { 0 } else { row.held().max(ahead) };
        Believed { earliest: row.at, behind: ahead, hold, turn: Some(of(ahead, hold)) }
    })
}

impl Running {
    fn from(believed: &Believed, row: Mark, readings: &Readings) -> Self {
        let Readings { boottime, monotonic, .. } = *readings;
        let Believed { earliest, behind, hold, .. } = *believed;
        Self {
            anchor: (earliest, boottime),
            floor: earliest,
            seen: (boottime, monotonic),
            steady: monotonic,
            since: None,
            small: (0, boottime),
            followed: (0, boottime),
            behind,
            hold,
            decided: (row, earliest),
            row: (behind != 0 || hold != 0).then_some(row),
            written: None,
            asked: readings.sent,
            is_wrong: false,
            watched: None,
        }
    }

    fn expected(&self, boottime: Duration) -> i64 {
        let (time, at) = self.anchor;
        // An answer may have been asked for before another one came that counts from later on.
        time.saturating_add(millis(boottime.saturating_sub(at)))
            .saturating_sub(millis(at.saturating_sub(boottime)))
    }

    /// How far ahead of what is expected the clock is still followed.
    fn allowance(&self, max_step: Duration, boottime: Duration) -> i64 {
        let max_step = millis(max_step);
        max_step.saturating_sub(self.followed_by(max_step, boottime))
    }

    /// What was followed of late: as much as one step is forgotten in a day.
    fn followed_by(&self, max_step: i64, boottime: Duration) -> i64 {
        let (followed, at) = self.followed;
        let elapsed = millis(boottime.saturating_sub(at));
        followed.saturating_sub(elapsed.saturating_mul(max_step.min(DAY)) / DAY).max(0)
    }

    fn judge(&mut self, row: Mark, readings: &Readings, terms: Terms, id: i64) -> Believed {
        let Readings { claimed, sent, boottime, monotonic, .. } = *readings;
        self.see(row, sent, boottime, id);
        let suspended =
            millis(boottime.saturating_sub(self.seen.0)) - millis(monotonic.saturating_sub(self.seen.1));
        self.seen = (boottime.max(self.seen.0), monotonic.max(self.seen.1));
        // Owners on this machine stood still as well, and have to be given the time to say that they live.
        if suspended > TOLERANCE {
            (self.steady, self.since) = (monotonic, None);
        }
        // Another instance is further, by more than it can be by a slow answer: it has ended a hold, or followed a step. That counts here too:
        // instances of one store must not follow as much as one step each. What ended a hold was believed, not followed.
        let own = self.expected(boottime);
        let further = row.at.saturating_sub(own);
        // Or by less, where this instance may follow nothing more by itself: it would be left behind the others for a day.
        let is_left = further > 0 && (1..=TOLERANCE).contains(&self.hold);
        if further > TOLERANCE || is_left {
            if is_left || (self.behind <= 0 && self.hold <= 0) {
                let most = millis(terms.max_step);
                self.followed =
                    (self.followed_by(most, boottime).saturating_add(further).min(most), boottime);
            }
            self.anchor = (row.at, boottime);
            (self.steady, self.since) = (monotonic, None);
        }
        let (expected, least) = (self.expected(boottime), self.expected(sent));
        let (max_step, ahead) = (millis(terms.max_step), claimed.saturating_sub(expected));
        let allowance = self.allowance(terms.max_step, boottime);
        let time = claimed.saturating_sub(row.behind);
        let step = time.saturating_sub(expected);
        // Of a database, answers that were asked for later may be here already, and tell a higher time.
        let floor = if readings.told.is_some() { least } else { least.max(self.floor) };
        let back = floor.saturating_sub(time);

        let was_wrong = core::mem::replace(&mut self.is_wrong, false);
        let is_off = row.behind != 0 || row.is_held();
        let comes_back = is_off && claimed.saturating_sub(least) >= -TOLERANCE && ahead <= allowance;
        let (earliest, behind, hold) = if comes_back {
            self.follow(claimed, readings, max_step);
            (claimed.max(expected), 0, 0)
        } else if step > allowance && self.is_witnessed(row, time, boottime) {
            self.follow(time, readings, max_step);
            self.followed.0 = self.followed.0.min(max_step);
            (time, row.behind, row.held())
        } else if step > allowance || back > TOLERANCE {
            // Others have looked since this was decided, and keep another time: this clock is the one that is wrong. So it is, from the
            // beginning, where the clock agrees with a mark that another one has just left, and this one alone expects a later time.
            let age = time.saturating_sub(row.at);
            let is_alone =
                back > SINCE_MARK && row.by != id && row.by != 0 && (-TOLERANCE..=SINCE_MARK).contains(&age);
            let is_decided = self.behind != 0 && (self.behind - ahead).abs() <= TOLERANCE;
            let (decided_on, decided_at) = self.decided;
            let others = row.by != id && row.by != 0 && row != decided_on && row.at >= decided_at;
            // Whoever leaves no marks any more contradicts nobody, as after a restart.
            let is_gone = self.written.is_none();
            // What is less than a step contradicts nobody.
            self.is_wrong = (is_decided && others && !is_gone && ahead.abs() > TOLERANCE) || is_alone;
            if !is_decided || is_gone {
                self.decided = (row, expected);
            }
            (expected, ahead, row.held().max(self.hold).max(ahead))
        } else {
            self.follow(time, readings, max_step);
            (time, row.behind, row.held())
        };
        // Somebody judged otherwise, who may have stamped leases by a mark that was a minute old; or this is where a hold begins or ends.
        let changes = |judged: i64| (judged - self.behind).abs() > TOLERANCE;
        if changes(row.behind) || changes(behind) {
            (self.steady, self.since) = (monotonic, None);
        }
        if behind == 0 && hold == 0 {
            (self.row, self.written) = (None, None);
        } else if self.row.is_none() {
            self.row = Some(row);
        }
        let turn = self.turn(was_wrong, behind, hold, step.min(ahead));
        self.hold = hold;
        if behind != self.behind {
            // A hold that grows or shrinks by more than drift is another one: the kernel is watched from the beginning.
            if (behind - self.behind).abs() > TOLERANCE {
                self.watched = None;
            }
            self.behind = behind;
        }
        Believed { earliest, behind, hold, turn }
    }

    /// Remembers when another instance wrote the row: after the last look that did not find it. Answers of a database may come out of order.
    fn see(&mut self, row: Mark, sent: Duration, boottime: Duration, id: i64) {
        if self.row.is_some_and(|seen| seen != row && seen.at <= row.at) {
            // How much longer ago than this it may have been is all the same.
            let since = self.asked.max(boottime.saturating_sub(WITNESSED * 2));
            let is_by_another = row.by != id && row.by != 0;
            (self.row, self.written) = (Some(row), is_by_another.then_some((since, boottime)));
        } else if self.written.is_some_and(|(_, until)| millis(boottime.saturating_sub(until)) > SINCE_MARK) {
            self.written = None;
        }
        self.asked = self.asked.max(sent);
    }

    /// Whether another instance's mark, written between this instance's last two looks, shows that the clock is right: no more time lies
    /// between the mark and `time` than has passed since. So an instance that was stalled or paused goes on with the others. The two looks
    /// have to be close together, because a step of the clock between them would be followed too.
    fn is_witnessed(&self, row: Mark, time: i64, boottime: Duration) -> bool {
        self.written.is_some_and(|(since, until)| {
            let passed = millis(boottime.saturating_sub(since));
            self.row == Some(row)
                && until.saturating_sub(since) <= WITNESSED
                && (-TOLERANCE..=passed).contains(&time.saturating_sub(row.at))
        })
    }

    /// Goes on from `time`. What is ahead of the expectation is a step, large or small.
    fn follow(&mut self, time: i64, readings: &Readings, max_step: i64) {
        let Readings { sent, boottime, monotonic, .. } = *readings;
        let (expected, least) = (self.expected(boottime), self.expected(sent));
        let moved = if time > expected {
            self.anchor = (time, boottime);
            time - expected
        } else if time < least {
            self.anchor = (time, sent);
            time - least
        } else {
            0
        };
        // Once in a while, or what is forgotten would be rounded down to nothing by whoever looks often.
        if boottime.saturating_sub(self.followed.1) >= PERIOD {
            self.followed = (self.followed_by(max_step, boottime), boottime);
        }
        self.followed.0 = self.followed.0.saturating_add(moved).max(0);
        if boottime.saturating_sub(self.small.1) >= PERIOD {
            self.small = (0, boottime);
        }
        self.small.0 = self.small.0.saturating_add(moved);
        if self.small.0 > TOLERANCE {
            self.small = (0, boottime);
            (self.steady, self.since) = (monotonic, None);
        }
    }

    fn turn(&self, was_wrong: bool, behind: i64, hold: i64, step: i64) -> Option<Turn> {
        if self.is_wrong {
            return (!was_wrong).then_some(Turn::Contradicted(behind));
        }
        let moved = (behind - self.behind).abs() > TOLERANCE || (hold - self.hold).abs() > TOLERANCE;
        if was_wrong || moved || (hold > 0) != (self.hold > 0) {
            return Some(of(behind, hold));
        }
        (step > TOLERANCE && behind == self.behind && hold <= 0).then_some(Turn::Stepped(step))
    }
}

fn of(behind: i64, hold: i64) -> Turn {
    match (behind, hold) {
        (_, hold) if hold > 0 => Turn::Held(hold),
        (behind, _) if behind < 0 => Turn::SetBack(behind.saturating_neg()),
        _ => Turn::Agrees,
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
