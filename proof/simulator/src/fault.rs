//! What can go wrong.

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $most:literal;)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name, as the command line has it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How often it strikes at most, of the times that it could.
            pub(crate) const fn most(self) -> f64 {
                match self { $(Self::$name => $most,)* }
            }
        }
    };
}

faults! {
    /// A call of the store is lost before it was carried out.
    StoreLostBefore = "store-lost-before", 0.05;
    /// A call of the store is carried out, and its answer is lost.
    StoreLostAfter = "store-lost-after", 0.05;
    /// A call of the store is carried out after its caller has given up.
    StoreLate = "store-late", 0.02;
    /// A call of the store is carried out, and its answer comes after its caller has given up.
    StoreAnswerLate = "store-answer-late", 0.02;
    /// The store refuses a call.
    StoreUnavailable = "store-unavailable", 0.05;
    /// An open transaction holds a record that is to be written.
    StoreLocked = "store-locked", 0.05;
    /// A record is damaged: its answer, or its state or fingerprint.
    StoreDamaged = "store-damaged", 0.1;
    /// Of what is sealed, a bit is flipped, or two records' answers are exchanged, with sums that are right.
    StoreTampered = "store-tampered", 0.2;
    /// The store is unavailable for seconds.
    StoreOutage = "store-outage", 0.5;
    /// The store crashes. What was acknowledged stays; of the rest some is lost.
    StoreCrash = "store-crash", 0.5;
    /// A message is lost.
    MessageLost = "message-lost", 0.03;
    /// The answer to a message is lost.
    AnswerLost = "answer-lost", 0.03;
    /// A message or its answer takes seconds.
    MessageLate = "message-late", 0.03;
    /// A connection is refused: nothing was sent.
    Refused = "refused", 0.05;
    /// A link is cut for seconds, one way or both ways.
    Cut = "cut", 0.8;
    /// A gateway is killed and started again.
    KillGateway = "kill-gateway", 0.8;
    /// A gateway stands still for longer than its leases, and goes on.
    FreezeGateway = "freeze-gateway", 0.5;
    /// The service is killed and started again.
    KillService = "kill-service", 0.5;
    /// The provider is unavailable for seconds.
    KillProvider = "kill-provider", 0.5;
    /// A gateway's wall clock is set ahead or back.
    ClockStep = "clock-step", 0.3;
    /// A gateway's or the store's wall clock jumps to and fro.
    ClockStrobe = "clock-strobe", 0.1;
    /// The clocks of a gateway or of the store run too fast or too slowly.
    ClockDrift = "clock-drift", 0.3;
    /// A gateway's machine is suspended and goes on; or paused, and its boot time does not know of it.
    BoottimeStep = "boottime-step", 0.3;
    /// The clock that the store goes by is set ahead or back.
    StoreClock = "store-clock", 0.3;
    /// The provider breaks the connection before it does anything.
    ProviderBefore = "provider-before", 0.05;
    /// The provider does what it is asked for, and breaks the connection.
    ProviderAfter = "provider-after", 0.05;
    /// The provider does what it is asked for, and answers that it failed.
    ProviderError = "provider-error", 0.05;
    /// The provider takes longer than anybody waits.
    ProviderStall = "provider-stall", 0.03;
    /// The service does nothing, and says so.
    ServiceNothing = "service-nothing", 0.1;
    /// The service takes the request for none.
    ServiceReleases = "service-releases", 0.05;
    /// A webhook is delivered again, although it was taken in.
    WebhookAgain = "webhook-again", 0.5;
    /// A webhook comes long after what it tells of.
    WebhookLate = "webhook-late", 0.5;
    /// A webhook names a key instead of an operation.
    WebhookByKey = "webhook-by-key", 0.3;
    /// An operator says what was found out long after that.
    OperatorLate = "operator-late", 0.8;
    /// An operator says the same once more.
    OperatorAgain = "operator-again", 0.5;
    /// A client hangs up.
    HangUp = "hang-up", 0.2;
    /// A gateway takes up another configuration.
    Reload = "reload", 0.5;
    /// Encryption keys are replaced, and what is stored is rewritten.
    Rekey = "rekey", 0.3;
    /// A replica takes over that lacks what was acknowledged. No store may do that: it shows that the checker can fail.
    Failover = "failover", 0.5;
    /// The link between one gateway and the store is cut for seconds, one way.
    StoreCut = "store-cut", 0.5;
    /// An operator who has looked at another clock says that the store's is right.
    ClockAccept = "clock-accept", 0.8;
    /// The provider refuses an attempt for good, breaks the connection, and says so by webhook alone.
    WebhookNotExecuted = "webhook-not-executed", 0.1;
    /// The provider tells by webhook that an earlier attempt did nothing, while a later one is at work.
    WebhookEarlier = "webhook-earlier", 0.8;
    /// A handler panics when its work is done, or drops the ticket that it has taken.
    HandlerPanics = "handler-panics", 0.05;
    /// A handler asks to be forgotten between two phases, after a recovery point.
    HandlerReleases = "handler-releases", 0.3;
    /// A gateway stands still when its handler is about to say how it ended, until another attempt has begun.
    FreezeOwner = "freeze-owner", 0.05;
    /// The store's machine is paused for longer than is followed, and its clock is set back while the hold is open.
    ClockHold = "clock-hold", 0.1;
    /// All gateways are stopped for longer than a step that is followed, and start with a store whose clock is far behind.
    StopAll = "stop-all", 0.1;
}

impl std::str::FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|fault| fault.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|fault| fault.as_str()).collect();
            format!("no fault is called {text}; there are {}", names.join(", "))
        })
    }
}

/// One fault of a run: which kind, and the how-manieth of the times that it could have struck.
pub type Struck = (Fault, u32);
