//! The mistakes. This file stands alone: whoever runs the checks reads the list from it too.

/// Makes the list: what each bug does, and the name by which it is switched on.
macro_rules! bugs {
    ($($(#[doc = $what:literal])+ $bug:ident = $name:literal,)+) => {
        /// A mistake that can be switched on.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Bug {
            $($(#[doc = $what])+ $bug,)+
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$bug,)+];

            /// The name by which it is switched on.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)+
                }
            }

            /// What it does.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($what),+).trim_ascii(),)+
                }
            }

            /// The bug of this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|bug| bug.name() == name)
            }
        }
    };
}

bugs! {
    /// A lease that ran out is taken over, although the policy says that the outcome is unknown.
    LeaseStolen = "lease-stolen",
    /// Whoever was the owner once may complete or fail the operation.
    CompleteUnfenced = "complete-unfenced",
    /// Whoever was the owner once may release the operation.
    ReleaseUnfenced = "release-unfenced",
    /// Whoever was the owner once may extend the lease.
    ExtendUnfenced = "extend-unfenced",
    /// An attempt that took over doubt may say that nothing happened.
    DoubtReleased = "doubt-released",
    /// An operation is made unseen although a recovery point was committed.
    PointReleased = "point-released",
    /// A recovery point that is committed already is committed again.
    PhaseRepeated = "phase-repeated",
    /// A key whose window is over is new work, although the policy refuses it.
    TombstoneIgnored = "tombstone-ignored",
    /// A window that is over counts as running until the reaper has come by.
    WindowLeftToReaper = "window-left-to-reaper",
    /// Absence settles the outcome while the lease runs.
    AbsenceEarly = "absence-early",
    /// Evidence about an earlier attempt settles the one that is in doubt now.
    EarlierAttempt = "earlier-attempt",
    /// Whoever settles an outcome leaves the old owner its right to write.
    SettlerUnfenced = "settler-unfenced",
    /// A different request is told "in progress" for as long as the first one runs.
    MismatchAfterInFlight = "mismatch-after-in-flight",
    /// A different request under the same key counts as the same.
    FingerprintIgnored = "fingerprint-ignored",
    /// Amounts that are the same as doubles have one fingerprint.
    AmountsRounded = "amounts-rounded",
    /// After a lost answer, whatever is in progress is taken for one's own.
    TokenIgnored = "token-ignored",
    /// A waiter whose owner released the operation executes it.
    WaiterBecomesOwner = "waiter-becomes-owner",
    /// Each instance has a secret of its own for the hashes that tell tenants apart.
    SecretPerInstance = "secret-per-instance",
    /// A ticket that is dropped unfinished is released.
    DroppedTicketReleased = "dropped-ticket-released",
    /// A call that the other side does not deduplicate is made again after a takeover.
    AtMostOnceRepeated = "at-most-once-repeated",
    /// What is sealed is opened without a look at its tag.
    TagNotChecked = "tag-not-checked",
    /// What is sealed for one record opens in another.
    SealUnbound = "seal-unbound",
    /// SQLite has no unique index on keys.
    NoUniqueKey = "no-unique-key",
    /// Whether a stored answer still is what was written is not looked at.
    SumIgnored = "sum-ignored",
    /// PostgreSQL is written to over whatever connection a pool hands out, with a transaction left open on it or not.
    TransactionLeftOpen = "transaction-left-open",
    /// SQLite replaces a record whatever its version.
    SwapUnconditional = "swap-unconditional",
    /// SQLite answers before it commits.
    AcknowledgedBeforeCommit = "acknowledged-before-commit",
    /// Leases and windows are judged by the clock of the machine, not by the store's.
    LocalClock = "local-clock",
    /// A clock that jumps ahead is believed at once.
    ClockBelieved = "clock-believed",
    /// A request is executed although the store does not answer.
    FailOpen = "fail-open",
    /// The answer goes out before the outcome is stored.
    AnsweredBeforeStored = "answered-before-stored",
    /// The request's own task executes it, and ends when the client hangs up.
    RequestsOwnTask = "requests-own-task",
    /// Cookies are kept, and replayed to whoever retries.
    CookieKept = "cookie-kept",
    /// A replay lacks a header that the first answer had.
    HeaderLost = "header-lost",
    /// All tenants share their keys.
    TenantLeftOut = "tenant-left-out",
    /// A service that broke off in the middle counts as one that did nothing.
    BrokenCallRetryable = "broken-call-retryable",
    /// What broke off on a connection that had been used before counts as never sent.
    StaleConnectionNotSent = "stale-connection-not-sent",
    /// The header that names the tenant is believed from anybody.
    StrangerBelieved = "stranger-believed",
    /// Every reconciler asks, without claiming the question first.
    ReconcilerUnclaimed = "reconciler-unclaimed",
    /// A webhook that is delivered again counts as another one.
    WebhookIdIgnored = "webhook-id-ignored",
    /// The publisher takes the highest number that it has seen for the end of what was committed.
    PublisherSkipsLate = "publisher-skips-late",
    /// The inbox commits its mark before the effect.
    InboxMarksFirst = "inbox-marks-first",
}
