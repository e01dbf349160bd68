//! What is known of the servers, and which of those that answered is taken. Decides, and asks nobody.

use super::Identity;

/// What this process has learned.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known {
    /// The host that is taken for the primary.
    pub(crate) at: usize,
    /// Nothing has spoken against that since it was found.
    settled: bool,
    system: Option<String>,
    highest: i32,
}

/// Why no server is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Misplaced {
    /// None takes writes.
    NoPrimary,
    /// Two take writes.
    TwoPrimaries(usize, usize),
    /// One belongs to another database system.
    AnotherSystem { at: usize, found: String, expected: String },
    /// One is on a timeline that was left.
    LeftBehind { at: usize, found: i32, highest: i32 },
}

/// The host that is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    pub(crate) at: usize,
    /// It is another one than before.
    pub(crate) is_new: bool,
}

impl Known {
    /// The host that was the primary when it was last looked for.
    pub(crate) fn confirmed(&self) -> Option<usize> {
        self.settled.then_some(self.at)
    }

    /// From now on nobody is taken for the primary. Whether somebody was.
    pub(crate) fn unsettle(&mut self) -> bool {
        std::mem::take(&mut self.settled)
    }

    /// Whether the server at this host may be worked with.
    pub(crate) fn check(&mut self, at: usize, identity: &Identity) -> Result<(), Misplaced> {
        let Identity { system, timeline, .. } = identity;
        let expected = self.system.get_or_insert_with(|| system.clone());
        if expected != system {
            let (found, expected) = (system.clone(), expected.clone());
            return Err(Misplaced::AnotherSystem { at, found, expected });
        }
        if *timeline < self.highest {
            return Err(Misplaced::LeftBehind { at, found: *timeline, highest: self.highest });
        }
        self.highest = *timeline;
        Ok(())
    }

    /// The one of the hosts that is the primary, given what each of them answered.
    pub(crate) fn choose(&mut self, answers: &[Option<Identity>]) -> Result<Moved, Misplaced> {
        let answered = || answers.iter().enumerate().filter_map(|(at, answer)| Some((at, answer.as_ref()?)));
        let is_first = self.system.is_none();
        if is_first && let Some((_, one)) = answered().next() {
            // Before one is taken: nobody could say which of two systems was meant.
            if let Some((at, other)) = answered().find(|(_, other)| other.system != one.system) {
                let (found, expected) = (other.system.clone(), one.system.clone());
                return Err(Misplaced::AnotherSystem { at, found, expected });
            }
        }
        let mut writable = answered().filter(|(_, identity)| identity.takes_writes());
        let (at, identity) = writable.next().ok_or(Misplaced::NoPrimary)?;
        if let Some((second, _)) = writable.next() {
            return Err(Misplaced::TwoPrimaries(at, second));
        }
        // A standby that has followed a promotion tells of it too.
        let same = answered().filter(|(_, other)| other.system == identity.system);
        let highest = same.map(|(_, other)| other.timeline).max().unwrap_or_default().max(self.highest);
        if identity.timeline < highest && self.system.as_ref().is_none_or(|system| *system == identity.system)
        {
            self.highest = highest;
            return Err(Misplaced::LeftBehind { at, found: identity.timeline, highest });
        }
        self.check(at, identity)?;
        let is_new = !self.settled || self.at != at;
        (self.at, self.settled) = (at, true);
        Ok(Moved { at, is_new })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(system: &str, timeline: i32, takes_writes: bool) -> Option<Identity> {
        let standby = !takes_writes;
        Some(Identity { system: system.into(), timeline, standby, read_only: standby })
    }

    #[test]
    fn the_one_that_takes_writes_is_taken_wherever_it_is() {
        let mut known = Known::default();
        let first = known.choose(&[server("a", 1, false), server("a", 1, true), None]);
        assert_eq!(first, Ok(Moved { at: 1, is_new: true }));
        let same = known.choose(&[None, server("a", 1, true), server("a", 1, false)]);
        assert_eq!(same, Ok(Moved { at: 1, is_new: false }));
        let promoted = known.choose(&[server("a", 2, true), None, server("a", 2, false)]);
        assert_eq!(promoted, Ok(Moved { at: 0, is_new: true }));
        assert_eq!(known.choose(&[None, None, server("a", 2, false)]), Err(Misplaced::NoPrimary));
    }

    #[test]
    fn of_two_that_take_writes_neither_is_taken() {
        let mut known = Known::default();
        let split = [server("a", 1, true), server("a", 2, true)];
        assert_eq!(known.choose(&split), Err(Misplaced::TwoPrimaries(0, 1)));
    }

    #[test]
    fn a_timeline_that_was_left_is_refused() {
        let mut known = Known::default();
        known.choose(&[server("a", 2, true), None]).unwrap();
        let left = Err(Misplaced::LeftBehind { at: 1, found: 1, highest: 2 });
        assert_eq!(known.choose(&[None, server("a", 1, true)]), left);
        assert_eq!(known.check(1, &server("a", 1, true).unwrap()), left.map(drop));
        // Told by a standby alone.
        let told = Known::default().choose(&[server("a", 1, true), server("a", 2, false)]);
        assert_eq!(told, Err(Misplaced::LeftBehind { at: 0, found: 1, highest: 2 }));
    }

    #[test]
    fn another_system_is_refused() {
        let mut known = Known::default();
        let mixed = known.choose(&[server("a", 1, true), server("b", 1, false)]);
        assert!(matches!(mixed, Err(Misplaced::AnotherSystem { at: 1, .. })), "{mixed:?}");
        known.choose(&[server("a", 1, true)]).unwrap();
        let other = known.choose(&[server("b", 9, true)]);
        assert!(matches!(other, Err(Misplaced::AnotherSystem { at: 0, .. })), "{other:?}");
        // One that takes no writes does not matter.
        assert!(known.choose(&[server("a", 1, true), server("b", 9, false)]).is_ok());
    }
}
