//! The judge of a store's clock, by readings that are made up.

mod instances;

use super::*;
use core::time::Duration;

const NOON: i64 = 1_800_000_000_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A machine, and the row in the store that it shares with others.
struct Machine {
    keeper: Keeper,
    wall: i64,
    boot: i64,
    mono: i64,
}

impl Machine {
    fn at(wall: i64, id: i64) -> Self {
        Self::under(Terms::default(), wall, id)
    }

    fn under(terms: Terms, wall: i64, id: i64) -> Self {
        Self { keeper: Keeper::new(terms, id), wall, boot: 1_000, mono: 1_000 }
    }

    fn pass(&mut self, millis: i64) {
        (self.wall, self.boot, self.mono) = (self.wall + millis, self.boot + millis, self.mono + millis);
    }

    fn look(&mut self, row: Mark) -> Told {
        let since = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        let readings = Readings {
            claimed: self.wall,
            sent: since(self.boot),
            boottime: since(self.boot),
            monotonic: since(self.mono),
            told: None,
        };
        self.keeper.judge(row, &readings)
    }

    /// A transaction that writes.
    fn write(&mut self, row: &mut Mark) -> Told {
        let told = self.look(*row);
        if told.wrong.is_none() {
            *row = told.mark;
        }
        told
    }
}

fn times(told: &Told) -> (i64, i64) {
    (told.now.earliest.as_millis(), told.now.latest.as_millis())
}

#[test]
fn a_clock_that_behaves_is_followed_and_has_one_time() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    assert_eq!(times(&machine.write(&mut row)), (NOON, NOON));
    machine.pass(5 * HOUR);
    let told = machine.write(&mut row);
    assert_eq!(times(&told), (NOON + 5 * HOUR, NOON + 5 * HOUR));
    assert_eq!((told.turn, told.mark.behind), (None, 0));
}

#[test]
fn a_start_with_a_wrong_clock_opens_a_hold_and_the_right_clock_ends_it() {
    let mut row = Mark::NONE;
    Machine::at(NOON, 1).write(&mut row);
    let mut wrong = Machine::at(NOON + 30 * DAY, 2);
    let told = wrong.write(&mut row);
    assert_eq!(times(&told), (NOON, NOON + 30 * DAY));
    assert_eq!(told.turn, Some(Turn::Held(30 * DAY)));
    wrong.pass(3_000);
    assert_eq!(times(&wrong.write(&mut row)), (NOON + 3_000, NOON + 30 * DAY + 3_000));
    assert!(row.is_held());
    let told = Machine::at(NOON + 10_000, 3).write(&mut row);
    assert_eq!(times(&told), (NOON + 10_000, NOON + 10_000));
    assert_eq!((told.turn, row.is_held()), (Some(Turn::Agrees), false));
}

#[test]
fn restarts_do_not_carry_the_earliest_time_towards_the_latest() {
    let mut row = Mark::NONE;
    Machine::at(NOON, 1).write(&mut row);
    for start in 0..100 {
        let mut machine = Machine::at(NOON + 30 * DAY + start * 10_000, 2 + start);
        machine.write(&mut row);
        machine.pass(5_000);
        machine.write(&mut row);
        assert!(row.is_held());
    }
    assert!(row.at <= NOON + 100 * 10_000, "no more than the time that has passed");
}

#[test]
fn a_jump_while_it_runs_is_held_and_ends_when_the_clock_comes_back() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    machine.write(&mut row);
    machine.wall += DAY;
    machine.pass(1_000);
    assert_eq!(times(&machine.write(&mut row)), (NOON + 1_000, NOON + DAY + 1_000));
    machine.pass(HOUR);
    assert_eq!(times(&machine.write(&mut row)), (NOON + HOUR + 1_000, NOON + DAY + HOUR + 1_000));
    machine.wall -= DAY;
    let told = machine.write(&mut row);
    assert_eq!(times(&told), (NOON + HOUR + 1_000, NOON + HOUR + 1_000));
    assert_eq!(told.turn, Some(Turn::Agrees));
}

#[test]
fn a_clock_that_is_set_back_is_not_followed_and_time_goes_on() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    machine.write(&mut row);
    machine.wall -= DAY;
    machine.pass(5_000);
    let told = machine.write(&mut row);
    assert_eq!(times(&told), (NOON + 5_000, NOON + 5_000));
    assert_eq!(told.turn, Some(Turn::SetBack(DAY)));
    // Across a restart as well.
    let mut again = Machine::at(NOON - DAY + 20_000, 2);
    assert_eq!(times(&again.write(&mut row)), (NOON + 20_000, NOON + 20_000));
    again.wall += DAY;
    let told = again.write(&mut row);
    assert_eq!((times(&told), told.mark.behind), ((NOON + 20_000, NOON + 20_000), 0));
}

#[test]
fn a_start_with_a_clock_far_behind_the_mark_serves_nothing_until_the_clock_is_right() {
    let mut row = Mark::NONE;
    Machine::at(NOON, 1).write(&mut row);
    let kept = row;
    // It boots in 1970, after a fortnight.
    let mut machine = Machine::at(0, 2);
    let told = machine.write(&mut row);
    assert_eq!((told.wrong, told.turn), (Some(Wrong::Behind(-NOON)), Some(Turn::Behind(NOON))));
    machine.pass(3_000);
    let told = machine.write(&mut row);
    assert_eq!((told.wrong.is_some(), told.turn), (true, None), "said once");
    assert_eq!(row, kept, "and it wrote nothing");
    // The time service puts it right.
    machine.wall = NOON + 14 * DAY;
    assert_eq!(times(&machine.write(&mut row)), (NOON, NOON + 14 * DAY));
}

#[test]
fn an_operator_may_accept_a_clock_that_is_behind_the_mark_and_time_goes_on_from_the_mark() {
    let mut row = Mark::NONE;
    // The first start of the store was a year ahead.
    Machine::at(NOON + 365 * DAY, 1).write(&mut row);
    let mut machine = Machine::at(NOON, 2);
    assert!(machine.write(&mut row).wrong.is_some());
    machine.keeper.accept_behind();
    let (now, told) = (NOON + 365 * DAY, machine.write(&mut row));
    assert_eq!((times(&told), told.wrong), ((now, now), None));
    assert_eq!((row.behind, row.hold), (-365 * DAY, 0));
    // Nobody has to say it again.
    let told = Machine::at(NOON + 10_000, 3).write(&mut row);
    assert_eq!((times(&told), told.wrong), ((now + 10_000, now + 10_000), None));
}

#[test]
fn a_start_beside_one_whose_clock_was_set_back_goes_on_with_it() {
    let (mut row, mut one) = (Mark::NONE, Machine::at(NOON, 1));
    one.write(&mut row);
    one.wall -= DAY;
    one.pass(MINUTE);
    one.write(&mut row);
    let told = Machine::at(one.wall, 2).write(&mut row);
    assert_eq!((times(&told), told.wrong), ((NOON + MINUTE, NOON + MINUTE), None));
}

/// The store was stopped for a fortnight. While the hold is open the clock is set back, and what is stamped meanwhile has to last for as long
/// as it should once the hold ends.
#[test]
fn the_latest_time_does_not_go_back_with_the_clock_while_a_hold_is_open() {
    // To less than the clock said before, and to less than the mark.
    for back in [11 * DAY, 30 * DAY] {
        let mut row = Mark::NONE;
        Machine::at(NOON, 1).write(&mut row);
        let mut machine = Machine::at(NOON + 14 * DAY, 2);
        machine.write(&mut row);
        machine.pass(MINUTE);
        machine.wall -= back;
        let (now, latest) = (NOON + MINUTE, NOON + 14 * DAY + MINUTE);
        for _ in 0..2 {
            assert_eq!(times(&machine.write(&mut row)), (now, latest), "set back by {back}");
        }
        // For all that share the store, and across restarts.
        let mut again = Machine::at(machine.wall + 1_000, 3);
        assert_eq!(times(&again.write(&mut row)), (now + 1_000, latest + 1_000), "set back by {back}");
        assert!(row.is_held());
        again.pass(1_000);
        assert_eq!(times(&again.write(&mut row)), (now + 2_000, latest + 2_000));
        // The clock is right again, and the kernel or an operator says so.
        again.wall += back;
        let told = again.write(&mut row);
        assert_eq!(times(&told), (now + 2_000, latest + 2_000));
        row = again.keeper.accepting(&told);
        assert_eq!(times(&again.write(&mut row)), (latest + 2_000, latest + 2_000));
        assert!(!row.is_held());
    }
}

#[test]
fn a_claim_that_nobody_wrote_down_yet_does_not_go_back_either() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    machine.write(&mut row);
    machine.wall += 14 * DAY;
    machine.look(row);
    machine.wall -= 11 * DAY;
    assert_eq!(times(&machine.write(&mut row)), (NOON, NOON + 14 * DAY));
}

#[test]
fn a_set_back_clock_that_is_accepted_during_a_hold_ends_it_at_what_it_claims() {
    let mut row = Mark::NONE;
    Machine::at(NOON, 1).write(&mut row);
    for (set_back, time) in [(11 * DAY, NOON + 3 * DAY), (30 * DAY, NOON)] {
        let mut row = row;
        let mut machine = Machine::at(NOON + 14 * DAY, 2);
        machine.write(&mut row);
        machine.wall -= set_back;
        let told = machine.write(&mut row);
        row = machine.keeper.accepting(&told);
        machine.pass(1_000);
        assert_eq!(times(&machine.write(&mut row)), (time + 1_000, time + 1_000), "set back by {set_back}");
        assert!(!row.is_held());
    }
}

#[test]
fn a_hold_of_a_program_that_knows_no_latest_time_is_as_long_as_its_clock_is_ahead() {
    let mut row = Mark { at: NOON, behind: 14 * DAY, hold: 0, by: 1 };
    assert!(row.is_held());
    let told = Machine::at(NOON + 14 * DAY + 1_000, 2).write(&mut row);
    assert_eq!(times(&told), (NOON + 1_000, NOON + 14 * DAY + 1_000));
    assert_eq!(row.hold, 14 * DAY);
    // It ends one by what it knows.
    row = Mark { at: NOON + 14 * DAY + 2_000, behind: 0, ..row };
    let mut machine = Machine::at(NOON + 14 * DAY + 3_000, 3);
    assert_eq!(times(&machine.write(&mut row)), (machine.wall, machine.wall));
    assert_eq!(row.hold, 0);
}

#[test]
fn a_hold_ends_when_the_kernel_reports_synchronisation_throughout_and_not_because_time_passes() {
    let mut row = Mark::NONE;
    Machine::at(NOON, 1).write(&mut row);
    let mut machine = Machine::at(NOON + 14 * DAY, 2);
    machine.write(&mut row);
    let patience = Duration::from_secs(120);
    let mut minutes = |synchronised: bool, count: usize, row: &mut Mark| {
        let mut ended = false;
        for _ in 0..count {
            machine.pass(MINUTE);
            machine.write(row);
            let boottime = Duration::from_millis(machine.boot.unsigned_abs());
            ended |= machine.keeper.watch(synchronised, boottime, patience);
        }
        ended
    };
    assert!(!minutes(false, 600, &mut row), "time alone ends nothing");
    assert!(!minutes(true, 14, &mut row));
    assert!(!minutes(false, 1, &mut row), "a break: from the beginning");
    assert!(!minutes(true, 15, &mut row));
    assert!(minutes(true, 1, &mut row));
    let told = machine.look(row);
    row = machine.keeper.accepting(&told);
    machine.pass(1_000);
    let told = machine.write(&mut row);
    assert_eq!(times(&told), (machine.wall, machine.wall));
    assert!(told.now.steady < Duration::from_secs(1), "no lease is over by the jump");
}

#[test]
fn what_nobody_watched_does_not_count_as_synchronised() {
    let mut row = Mark::NONE;
    Machine::at(NOON, 1).write(&mut row);
    let mut machine = Machine::at(NOON + 14 * DAY, 2);
    machine.write(&mut row);
    let patience = Duration::from_secs(120);
    assert!(!machine.keeper.watch(true, Duration::from_secs(1), patience));
    assert!(!machine.keeper.watch(true, Duration::from_secs(3_600), patience), "it slept for an hour");
}

#[test]
fn a_suspended_machine_is_no_jump_but_its_leases_begin_again() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    machine.write(&mut row);
    machine.pass(MINUTE);
    assert_eq!(machine.write(&mut row).now.steady, Duration::from_secs(60));
    (machine.wall, machine.boot) = (machine.wall + 8 * HOUR, machine.boot + 8 * HOUR);
    let told = machine.write(&mut row);
    assert_eq!(times(&told), (NOON + 8 * HOUR + MINUTE, NOON + 8 * HOUR + MINUTE));
    assert_eq!((told.now.steady, told.turn), (Duration::ZERO, None));
}

#[test]
fn a_small_step_is_followed_and_leases_begin_again() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    machine.write(&mut row);
    machine.pass(MINUTE);
    machine.wall += 10 * MINUTE;
    let told = machine.write(&mut row);
    assert_eq!(times(&told), (NOON + 11 * MINUTE, NOON + 11 * MINUTE));
    assert_eq!((told.now.steady, told.turn), (Duration::ZERO, Some(Turn::Stepped(10 * MINUTE))));
    machine.pass(30_000);
    assert_eq!(machine.write(&mut row).now.steady, Duration::from_secs(30));
}

#[test]
fn steps_that_are_small_each_add_up_to_a_hold() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    machine.write(&mut row);
    let mut steady = Duration::MAX;
    for _ in 0..10_000 {
        machine.pass(10);
        machine.wall += 1_900;
        steady = machine.write(&mut row).now.steady;
    }
    assert!(row.is_held());
    assert!(row.at <= NOON + 100_000 + HOUR + 10_000, "one step in a day at most: {}", row.at - NOON);
    assert!(steady < Duration::from_secs(100), "and leases do not run out by them");
}

#[test]
fn drift_is_no_step_however_long_it_lasts() {
    for drift in [-50, 50] {
        let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
        machine.write(&mut row);
        for _ in 0..10_000 {
            machine.pass(MINUTE);
            machine.wall += drift;
            assert_eq!(machine.write(&mut row).turn, None);
        }
        assert_eq!((row.behind, row.at), (0, machine.wall));
    }
}

#[test]
fn the_one_whose_clock_is_far_from_the_mark_fails_and_moves_nobody() {
    for wrong_by in [30 * DAY, -30 * DAY] {
        let (mut row, mut right) = (Mark::NONE, Machine::at(NOON, 1));
        right.write(&mut row);
        let mut wrong = Machine::at(NOON + wrong_by, 2);
        assert_eq!(
            wrong.write(&mut row).wrong.is_some(),
            wrong_by < 0,
            "nobody can tell yet, unless it is behind"
        );
        right.pass(1_000);
        let told = right.write(&mut row);
        assert_eq!(times(&told), (NOON + 1_000, NOON + 1_000), "the other one goes on");
        wrong.pass(1_000);
        let told = wrong.write(&mut row);
        assert!(told.wrong.is_some());
        assert_eq!(told.turn, (wrong_by > 0).then_some(Turn::Contradicted(wrong_by)));
        assert_eq!((row.behind, row.by), (0, 1), "and it wrote nothing");
        right.pass(1_000);
        assert_eq!(times(&right.write(&mut row)), (NOON + 2_000, NOON + 2_000));
        // Once its clock is put right, it works.
        wrong.pass(1_000);
        wrong.wall -= wrong_by;
        assert!(wrong.write(&mut row).wrong.is_none());
        assert_eq!(row.behind, 0);
    }
}

#[test]
fn the_one_whose_steady_clock_leaps_fails_and_moves_nobody() {
    let (mut row, mut right, mut wrong) = (Mark::NONE, Machine::at(NOON, 1), Machine::at(NOON, 2));
    wrong.write(&mut row);
    for machine in [&mut right, &mut wrong] {
        machine.pass(MINUTE);
    }
    right.write(&mut row);
    wrong.boot += DAY;
    let told = wrong.write(&mut row);
    assert_eq!((told.wrong.is_some(), told.turn), (true, Some(Turn::Contradicted(-DAY))));
    assert_eq!((row.by, row.at, row.behind), (1, NOON + MINUTE, 0), "it wrote nothing");
    right.pass(1_000);
    let now = NOON + MINUTE + 1_000;
    assert_eq!(times(&right.write(&mut row)), (now, now));
}

#[test]
fn a_clock_that_is_set_back_is_nobodys_mistake_but_its_own() {
    for back in [30_000, DAY] {
        let (mut row, mut one, mut two) = (Mark::NONE, Machine::at(NOON, 1), Machine::at(NOON, 2));
        one.write(&mut row);
        for machine in [&mut one, &mut two] {
            machine.look(row);
            machine.pass(MINUTE);
            machine.wall -= back;
        }
        for machine in [&mut two, &mut one] {
            let told = machine.write(&mut row);
            assert_eq!(
                (times(&told), told.wrong.is_some()),
                ((NOON + MINUTE, NOON + MINUTE), false),
                "by {back}"
            );
        }
    }
}

#[test]
fn after_the_store_was_away_no_lease_is_over_until_one_has_passed() {
    let (mut row, mut machine) = (Mark::NONE, Machine::at(NOON, 1));
    machine.write(&mut row);
    machine.pass(HOUR);
    machine.keeper.begin_again(Duration::from_millis(machine.mono.unsigned_abs()));
    assert_eq!(machine.write(&mut row).now.steady, Duration::ZERO);
    machine.pass(30_000);
    assert_eq!(machine.write(&mut row).now.steady, Duration::from_secs(30));
}

#[test]
fn two_on_one_machine_agree_on_a_jump() {
    let (mut row, mut one, mut two) = (Mark::NONE, Machine::at(NOON, 1), Machine::at(NOON, 2));
    one.write(&mut row);
    two.write(&mut row);
    one.wall += DAY;
    two.wall += DAY;
    let expected = (NOON, NOON + DAY);
    assert_eq!(times(&one.write(&mut row)), expected);
    for machine in [&mut two, &mut one] {
        let told = machine.write(&mut row);
        assert_eq!((times(&told), told.wrong.is_some()), (expected, false));
    }
}

#[test]
fn two_on_one_machine_do_not_follow_a_step_each() {
    let (mut row, mut first, mut second) = (Mark::NONE, Machine::at(NOON, 1), Machine::at(NOON, 2));
    first.write(&mut row);
    second.write(&mut row);
    // Each step alone may be followed, and together they may not, whoever sees them first.
    for (round, step) in [40 * MINUTE, 40 * MINUTE].into_iter().enumerate() {
        for machine in [&mut first, &mut second] {
            machine.wall += step;
            machine.pass(3_000);
        }
        let (sees_first, sees_second) =
            if round == 0 { (&mut first, &mut second) } else { (&mut second, &mut first) };
        sees_first.write(&mut row);
        sees_second.write(&mut row);
    }
    let told = second.write(&mut row);
    assert!(told.now.is_held(), "{told:?}");
    assert_eq!(told.now.earliest.as_millis(), NOON + 40 * MINUTE + 6_000);
}

#[test]
fn the_one_that_may_follow_nothing_more_goes_on_with_the_others() {
    let (mut row, mut one, mut two) = (Mark::NONE, Machine::at(NOON, 1), Machine::at(NOON, 2));
    one.write(&mut row);
    two.write(&mut row);
    // The other's virtual machine is paused, first for longer than a day's steps may come to.
    for paused in [2 * HOUR, 600] {
        one.pass(paused);
        two.wall += paused;
        one.write(&mut row);
        two.write(&mut row);
        one.write(&mut row);
    }
    for _ in 0..3 {
        for machine in [&mut one, &mut two] {
            machine.pass(1_000);
            machine.wall += 1;
            let told = machine.write(&mut row);
            assert_eq!((told.wrong, times(&told)), (None, (machine.wall, machine.wall)));
        }
    }
}

#[test]
fn a_hold_that_another_one_ended_is_ended_here_and_no_lease_is_over_by_it() {
    let (mut row, mut one, mut two) = (Mark::NONE, Machine::at(NOON, 1), Machine::at(NOON, 2));
    for machine in [&mut one, &mut two] {
        machine.write(&mut row);
        machine.pass(MINUTE);
        machine.wall += DAY;
        machine.write(&mut row);
    }
    let told = one.look(row);
    row = one.keeper.accepting(&told);
    for machine in [&mut one, &mut two] {
        machine.pass(1_000);
        let told = machine.write(&mut row);
        assert_eq!(times(&told), (NOON + MINUTE + DAY + 1_000, NOON + MINUTE + DAY + 1_000));
        assert_eq!(told.now.steady, Duration::ZERO);
    }
}

#[test]
fn no_lease_that_was_stamped_during_a_hold_is_over_when_another_one_ends_it() {
    let (mut row, mut right) = (Mark::NONE, Machine::at(NOON, 1));
    right.write(&mut row);
    right.pass(MINUTE);
    // It stamps leases by the mark, which is a minute old.
    let mut wrong = Machine::at(NOON + MINUTE + DAY, 2);
    assert_eq!(times(&wrong.write(&mut row)).0, NOON);
    let told = right.write(&mut row);
    assert_eq!((told.turn, times(&told).0), (None, NOON + MINUTE));
    assert_eq!(told.now.steady, Duration::ZERO);
}

#[test]
fn a_jump_across_a_start_is_believed_where_the_clock_always_is() {
    let mut row = Mark::NONE;
    Machine::at(NOON, 1).write(&mut row);
    let terms = Terms { trust: Trust::Always, ..Terms::default() };
    let mut machine = Machine::under(terms, NOON + 14 * DAY, 2);
    let told = machine.write(&mut row);
    assert_eq!((times(&told).0, told.turn), (NOON + 14 * DAY, Some(Turn::Believed(14 * DAY))));
    // While it runs, the steady clock knows better.
    machine.wall += DAY;
    assert_eq!(times(&machine.write(&mut row)), (NOON + 14 * DAY, NOON + 15 * DAY));
}

#[test]
fn a_slow_answer_of_a_database_is_no_step() {
    let since = |millis: u64| Duration::from_millis(millis);
    let mut keeper = Keeper::new(Terms::default(), 1);
    let mut answer = |sent: u64, received: u64, claimed: i64| {
        let told = Some(NOON + claimed);
        let (boottime, monotonic) = (since(received), since(received));
        keeper.judge(
            Mark { at: NOON, behind: 0, hold: 0, by: 1 },
            &Readings { claimed: NOON + claimed, sent: since(sent), boottime, monotonic, told },
        )
    };
    answer(0, 1, 0);
    assert_eq!(answer(10_000, 10_001, 10_000).turn, None);
    // Asked for before the one above, and answered nine seconds later.
    assert_eq!(answer(2_000, 11_000, 2_001).turn, None);
    assert_eq!(answer(2_100, 12_000, 11_990).turn, None);
    let told = answer(13_000, 13_001, 13_000);
    assert_eq!((told.turn, told.mark.behind, told.now.steady), (None, 0, Duration::from_secs(13)));
}

#[test]
fn a_step_takes_a_quarter_of_what_is_remembered_at_most() {
    let terms = Terms::default().within(Duration::from_secs(60));
    assert_eq!(terms.max_step, Duration::from_secs(15));
    assert_eq!(Terms::default().within(Duration::MAX).max_step, Duration::from_secs(3_600));
}

/// What an application's own transaction stamps by, relative to the mark: the earliest time, and the latest.
fn beside_mark(row: Mark, claimed: i64) -> Result<(i64, i64), Wrong> {
    beside(row, claimed).map(|now| (now.earliest.as_millis() - row.at, now.latest.as_millis() - row.at))
}

#[test]
fn beside_the_store_only_the_age_of_a_mark_needs_no_belief() {
    let row = Mark { at: NOON, ..Mark::NONE };
    assert_eq!(beside_mark(row, NOON + MINUTE), Ok((MINUTE, MINUTE)));
    assert_eq!(beside_mark(row, NOON + 10 * MINUTE), Ok((0, 10 * MINUTE)));
    assert_eq!(beside_mark(row, NOON + 30 * DAY), Ok((0, 30 * DAY)));
    assert_eq!(
        beside(Mark::NONE, NOON).map(|now| (now.earliest.as_millis(), now.is_held())),
        Ok((NOON, false))
    );
}

#[test]
fn beside_the_store_a_clock_that_is_behind_the_mark_ends_no_window_early_and_far_behind_stamps_none() {
    let row = Mark { at: NOON, ..Mark::NONE };
    assert_eq!(beside_mark(row, NOON - 1_000), Ok((0, 0)), "clock discipline");
    assert_eq!(beside_mark(row, NOON - MINUTE), Ok((0, 2 * MINUTE)), "the mark may be as old");
    assert_eq!(beside(row, NOON - 10 * MINUTE), Err(Wrong::Behind(-10 * MINUTE)));
    // The store has seen it, and goes on.
    let set_back = Mark { behind: -DAY, ..row };
    assert_eq!(beside_mark(set_back, NOON - DAY + MINUTE), Ok((MINUTE, MINUTE)));
    assert_eq!(beside_mark(set_back, NOON + MINUTE), Ok((MINUTE, MINUTE)), "put right");
    assert_eq!(beside(set_back, NOON - 2 * DAY), Err(Wrong::Behind(-DAY)));
}

#[test]
fn beside_the_store_a_hold_counts_whatever_the_clock_says() {
    let row = Mark { at: NOON, behind: 30 * DAY, hold: 30 * DAY, by: 1 };
    assert_eq!(beside_mark(row, NOON + 30 * DAY + MINUTE), Ok((MINUTE, 30 * DAY + MINUTE)));
    assert_eq!(beside_mark(row, NOON + MINUTE), Ok((MINUTE, 30 * DAY + MINUTE)), "the clock came back");
    assert_eq!(beside_mark(row, NOON + 20 * DAY), Ok((0, 30 * DAY + 2 * MINUTE)), "set back half-way");
    assert_eq!(beside_mark(row, NOON + 40 * DAY), Ok((0, 40 * DAY)), "it jumped again");
    assert_eq!(beside(row, NOON - DAY), Err(Wrong::Behind(-DAY)));
}
