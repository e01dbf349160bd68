//! What logs and errors say of a store's clock, the same for every store.

use super::{Turn, Wrong};

/// Which clock a store uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// This machine's: the store is a file.
    Machine,
    /// The database server's, compared with this machine's steady clock.
    Server,
}

impl Source {
    fn clock(self) -> &'static str {
        match self {
            Self::Machine => "the clock",
            Self::Server => "the server's clock",
        }
    }

    fn store(self) -> &'static str {
        match self {
            Self::Machine => "file",
            Self::Server => "database",
        }
    }

    /// Why this instance serves nothing.
    #[must_use]
    pub fn reason(self, wrong: Wrong) -> String {
        let whose = match self {
            Self::Machine => "this machine's clock",
            Self::Server => "the server's clock",
        };
        match wrong {
            Wrong::Contradicted(by) => {
                let seconds = by.unsigned_abs() / 1_000;
                match self {
                    Self::Machine => format!(
                        "this process's clock is {seconds} s {} the time that another process on the same file keeps: put it right",
                        if by > 0 { "ahead of" } else { "behind" }
                    ),
                    Self::Server => format!(
                        "the time that this instance expects is {seconds} s {} the one that the server and other instances keep: it serves again once they agree, within minutes if its machine was only paused; otherwise restart it where the clock runs right",
                        if by > 0 { "behind" } else { "ahead of" }
                    ),
                }
            }
            Wrong::Behind(by) => format!(
                "{whose} is {} s behind the {}'s last mark, so how long the store was stopped is unknown: put the clock right, or say `semel clock accept`",
                by.unsigned_abs() / 1_000,
                self.store()
            ),
        }
    }

    /// Logs a change in what is believed.
    pub fn log(self, turn: Turn) {
        let seconds = |millis: i64| millis / 1_000;
        let (clock, store) = (self.clock(), self.store());
        match turn {
            Turn::Held(by) => {
                let synchronised = match self {
                    Self::Machine => "the kernel reports a synchronised clock",
                    Self::Server => {
                        "this machine's kernel reports a synchronised clock that the server's agrees with"
                    }
                };
                tracing::warn!(
                    ahead_seconds = seconds(by),
                    "clock hold: {clock} is or was far ahead and is not believed; nothing is purged until {synchronised}, the clock comes back, or `semel clock accept` says that it is right"
                );
            }
            Turn::Agrees => tracing::info!("{clock} agrees with the store's time: no clock hold"),
            Turn::SetBack(by) => tracing::warn!(
                back_seconds = seconds(by),
                "{clock} was set back and is not followed: the store's time goes on by CLOCK_BOOTTIME"
            ),
            Turn::Stepped(by) => {
                tracing::warn!(ahead_seconds = seconds(by), "{clock} stepped ahead and is followed");
            }
            Turn::Believed(by) => tracing::warn!(
                ahead_seconds = seconds(by),
                "{clock} is ahead of the store's last mark, and is believed: clock.trust is \"always\""
            ),
            Turn::Contradicted(by) => {
                let what = match self {
                    Self::Machine => {
                        "this process's clock is far from the time that another process on the same file keeps: it serves nothing until its clock is right"
                    }
                    Self::Server => {
                        "the time that this instance expects is far from the one that the server and other instances keep: it serves nothing"
                    }
                };
                tracing::error!(ahead_seconds = seconds(by), "{what}");
            }
            Turn::Behind(by) => tracing::error!(
                behind_seconds = seconds(by),
                "{clock} is far behind the {store}'s last mark: nothing is served until the clock is right, or `semel clock accept` says that it is"
            ),
        }
    }
}
