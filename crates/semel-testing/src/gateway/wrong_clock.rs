//! A machine whose clock is wrong: the process is told another time of day by a library that stands before the system's.

use std::process::Command;

/// By how much a clock is off, such as `+5m`.
#[derive(Clone, Copy, Debug)]
pub struct ClockOff(pub &'static str);

impl ClockOff {
    /// Has a process believe that clock. Its timers run as always: it is the time of day that is wrong.
    pub fn on(self, command: &mut Command) -> &mut Command {
        command.env("LD_PRELOAD", library()).env("FAKETIME", self.0).env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }
}

/// The library that `faketime` itself would put there.
fn library() -> String {
    let ask = || {
        let told = Command::new("faketime").args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output();
        told.expect("these tests need faketime: install it (Debian: apt-get install faketime)")
    };
    // One that was killed may have left shared memory behind that has the number of this process: the next one has another number.
    let mut told = ask();
    for _ in 0..9 {
        if told.status.success() {
            break;
        }
        told = ask();
    }
    assert!(told.status.success(), "faketime does not work: {told:?}");
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}
