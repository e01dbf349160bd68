//! How much of what a machine stood still no clock in the system could know: its boot time stood still too, and the clock that the store goes by says
//! less than the true time, as one that was set back by less would without any pause.

use crate::machine::{DISCIPLINE, Machine};
use semel::clock::{Clock as _, Mark, Told};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What whoever writes the store's row cannot know. Shared by the instances.
#[derive(Default)]
pub(super) struct Pauses(Mutex<Short>);

#[derive(Default)]
struct Short {
    /// By how much the times in the row may be short, in milliseconds, because whoever wrote it could not know better.
    times: Times,
    /// By how much the earliest time is short while a hold is open: everybody knows of that, and it counts again if a wrong clock agrees with that
    /// time, which ends the hold.
    of_hold: i64,
}

/// What one instance knows of pauses.
pub(super) struct Known(Mutex<Seen>);

struct Seen {
    /// For how long its machine had been paused, in milliseconds, when it last saw a clock that was right.
    paused: Times,
    /// Whether it last saw a hold open.
    hold: bool,
    /// Whether it has told a time before.
    runs: bool,
}

/// Of the earliest time, which counts a pause once it is believed, and of the latest, which counts it while a hold is open as well.
#[derive(Clone, Copy, Default)]
struct Times {
    earliest: i64,
    latest: i64,
}

impl Known {
    /// Of an instance that starts: what was before, it takes from the row.
    pub(super) fn from_now(host: &Machine) -> Self {
        let paused = host.paused();
        Self(Mutex::new(Seen {
            paused: Times { earliest: paused, latest: paused },
            hold: false,
            runs: false,
        }))
    }
}

impl Pauses {
    /// What an instance on `host` could not know when it was told this time on this row, where the store goes by `server`'s clock.
    pub(super) fn hidden(
        &self,
        known: &Known,
        (host, server): (&Machine, &Machine),
        row: Mark,
        told: &Told,
        max_step: Duration,
    ) -> i64 {
        if told.wrong.is_some() {
            return 0;
        }
        let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut short = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, paused) = (server.true_millis(), host.paused());
        let missing = now.saturating_sub(told.now.earliest.as_millis());
        let is_held = told.now.is_held();
        let is_start = !std::mem::replace(&mut known.runs, true);
        let knew_of_hold = std::mem::replace(&mut known.hold, is_held) || row.hold > 0;
        // A clock that is right, or ahead, shows the pause: it is followed, or a hold is open.
        if server.off() >= -DISCIPLINE {
            known.paused = Times { earliest: paused, latest: paused };
            short.times.latest = 0;
            if is_held {
                short.of_hold = short.of_hold.max(missing);
            } else {
                (short.times.earliest, short.of_hold) = (0, 0);
            }
            return 0;
        }
        // A wrong clock that agrees with the earliest time ends the hold: that is a limit of it. Nothing else does, where the hold is known.
        let agrees = (server.wall_millis() - told.now.earliest.as_millis()).abs() <= DISCIPLINE;
        if !is_held && (agrees || !knew_of_hold) {
            short.times.earliest = short.times.earliest.max(std::mem::take(&mut short.of_hold));
        }
        // At a start a slow clock that is not far behind the mark cannot be told from one that is right, nor for how long the store was stopped.
        let of_mark = server.wall_millis().saturating_sub(row.at);
        if is_start && of_mark >= -i64::try_from(max_step.as_millis()).unwrap_or(i64::MAX) {
            let of_latest = now.saturating_sub(told.now.latest.as_millis());
            short.times.earliest = short.times.earliest.max(missing);
            short.times.latest = short.times.latest.max(of_latest);
        }
        let since_row = now.saturating_sub(row.at).saturating_add(DISCIPLINE).max(0);
        let of_earliest = (paused - known.paused.earliest).max(short.times.earliest).min(since_row);
        let of_latest = (paused - known.paused.latest).max(short.times.latest).min(since_row);
        let hidden = if is_held { of_latest } else { of_earliest };
        short.times.earliest = missing.min(of_earliest).max(short.times.earliest);
        short.times.latest =
            now.saturating_sub(told.now.latest.as_millis()).min(hidden).max(short.times.latest);
        hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::clock::{Keeper, Terms};

    const PAUSE: i64 = 37_000;
    const STEP: Duration = Duration::from_secs(5);

    /// An instance that judges after a pause, and by how much what it stamps is too early; the clock is off by this much meanwhile.
    fn after_a_pause(off: i64, row: impl FnOnce(Mark, i64) -> Mark) -> (i64, i64) {
        let (machine, pauses) = (Machine::by_hand(), Pauses::default());
        let known = Known::from_now(&machine);
        let terms = Terms { max_step: STEP, ..Terms::default() };
        let mut keeper = Keeper::new(terms, 1);
        let told = keeper.judge(Mark::NONE, &machine.readings_of(&machine));
        assert_eq!(pauses.hidden(&known, (&machine, &machine), Mark::NONE, &told, STEP), 0);
        let pause = Duration::from_millis(PAUSE.unsigned_abs());
        machine.pause(pause);
        machine.step(off);
        machine.forward(pause);
        let row = row(told.mark, machine.true_millis());
        let told = keeper.judge(row, &machine.readings_of(&machine));
        let hidden = pauses.hidden(&known, (&machine, &machine), row, &told, STEP);
        (machine.true_millis() - told.now.latest.as_millis(), hidden)
    }

    #[test]
    fn a_pause_is_hidden_while_the_clock_is_set_back_and_never_by_one_that_is_right_or_ahead() {
        assert_eq!(after_a_pause(-900_000, |row, _| row), (PAUSE, PAUSE));
        assert_eq!(after_a_pause(0, |row, _| row), (0, 0));
        let (short, hidden) = after_a_pause(900_000, |row, _| row);
        assert!(short <= 0 && hidden == 0, "{short} {hidden}");
    }

    #[test]
    fn a_pause_is_not_hidden_from_an_instance_whose_row_was_written_by_one_that_ran_on() {
        let written = |row: Mark, now| Mark { at: now, by: 2, behind: -900_000, ..row };
        assert_eq!(after_a_pause(-900_000, written), (0, DISCIPLINE));
    }

    #[test]
    fn who_starts_with_a_row_that_is_short_by_a_pause_cannot_know_of_it_either() {
        let (machine, pauses) = (Machine::by_hand(), Pauses::default());
        let known = Known::from_now(&machine);
        let mut keeper = Keeper::new(Terms::default(), 1);
        let told = keeper.judge(Mark::NONE, &machine.readings_of(&machine));
        machine.step(-900_000);
        let pause = Duration::from_millis(PAUSE.unsigned_abs());
        machine.pause(pause);
        machine.forward(pause);
        let told = keeper.judge(told.mark, &machine.readings_of(&machine));
        let both = (&machine, &machine);
        assert_eq!(pauses.hidden(&known, both, told.mark, &told, STEP), PAUSE);
        let row = told.mark;
        let (started, mut other) = (Known::from_now(&machine), Keeper::new(Terms::default(), 2));
        let told = other.judge(row, &machine.readings_of(&machine));
        assert_eq!(machine.true_millis() - told.now.latest.as_millis(), PAUSE);
        assert_eq!(pauses.hidden(&started, both, row, &told, STEP), PAUSE);
        // The clock is right again, and everybody knows.
        machine.put_right();
        let told = other.judge(told.mark, &machine.readings_of(&machine));
        assert_eq!(pauses.hidden(&started, both, told.mark, &told, STEP), 0);
        assert!(told.now.latest.as_millis() >= machine.true_millis());
    }

    #[test]
    fn a_pause_is_hidden_by_a_wrong_clock_that_agrees_with_the_earliest_time_of_a_hold_and_not_before() {
        let (machine, pauses) = (Machine::by_hand(), Pauses::default());
        let known = Known::from_now(&machine);
        let terms = Terms { max_step: STEP, ..Terms::default() };
        let mut keeper = Keeper::new(terms, 1);
        let mut row = Mark::NONE;
        let mut look = || {
            let told = keeper.judge(row, &machine.readings_of(&machine));
            let hidden = pauses.hidden(&known, (&machine, &machine), row, &told, STEP);
            row = told.mark;
            (told.now.is_held(), machine.true_millis() - told.now.latest.as_millis(), hidden)
        };
        assert_eq!(look(), (false, 0, 0));
        let pause = Duration::from_millis(PAUSE.unsigned_abs());
        machine.pause(pause);
        machine.forward(pause);
        assert_eq!(look(), (true, 0, 0));
        machine.step(-7_200_000);
        assert_eq!(look(), (true, 0, 0));
        machine.step(7_200_000 - PAUSE);
        assert_eq!(look(), (false, PAUSE, PAUSE));
        machine.put_right();
        assert_eq!(look(), (true, 0, 0));
    }

    #[test]
    fn a_pause_is_known_to_whoever_saw_the_hold_that_it_opened() {
        let (machine, pauses) = (Machine::by_hand(), Pauses::default());
        let known = Known::from_now(&machine);
        let mut keeper = Keeper::new(Terms { max_step: STEP, ..Terms::default() }, 1);
        let mut row = Mark::NONE;
        let mut look = |forgets: bool| {
            let mut told = keeper.judge(row, &machine.readings_of(&machine));
            if forgets {
                // As if a clock that is set back ended the hold.
                (told.now.latest, told.mark.hold) = (told.now.earliest, 0);
            }
            let hidden = pauses.hidden(&known, (&machine, &machine), row, &told, STEP);
            row = told.mark;
            (told.now.is_held(), machine.true_millis() - told.now.latest.as_millis(), hidden)
        };
        assert_eq!(look(false), (false, 0, 0));
        let pause = Duration::from_millis(PAUSE.unsigned_abs());
        machine.pause(pause);
        machine.forward(pause);
        assert_eq!(look(false), (true, 0, 0));
        machine.step(-7_200_000);
        assert_eq!(look(true), (false, PAUSE, 0));
    }

    /// The store is stopped for a while, and starts with a clock that is behind its mark by this much, in seconds.
    fn after_a_stop(behind: i64) -> (i64, i64) {
        let (machine, pauses) = (Machine::by_hand(), Pauses::default());
        let known = Known::from_now(&machine);
        let terms = Terms { max_step: STEP, ..Terms::default() };
        let told = Keeper::new(terms, 1).judge(Mark::NONE, &machine.readings_of(&machine));
        assert_eq!(pauses.hidden(&known, (&machine, &machine), Mark::NONE, &told, STEP), 0);
        machine.forward(Duration::from_secs(60));
        machine.step(-60_000 - behind * 1_000);
        let started = Known::from_now(&machine);
        let mut keeper = Keeper::new(terms, 2);
        keeper.accept_behind();
        let told_later = keeper.judge(told.mark, &machine.readings_of(&machine));
        let hidden = pauses.hidden(&started, (&machine, &machine), told.mark, &told_later, STEP);
        (machine.true_millis() - told_later.now.latest.as_millis(), hidden)
    }

    #[test]
    fn a_stop_is_hidden_from_a_start_whose_clock_is_not_far_behind_the_mark() {
        assert_eq!(after_a_stop(0), (60_000, 60_000));
        assert_eq!(after_a_stop(4), (60_000, 60_000));
        // Far behind it, the clock is known to be wrong: nothing may be stamped by the mark.
        assert_eq!(after_a_stop(900), (60_000, 0));
    }
}
