//! The production state machine, as the model calls it, with or without a deliberate mistake.

use crate::config::{Config, Third};
use crate::kept::{self, Kept, Moment, NOW, Reply, Token};
use crate::mutants::Mutant;
use crate::proof::{Finding, Names, Proof};
use crate::reached::{Event, Reached};
use crate::state::THIRD;
use crate::work::Deed;
use semel::transition::{
    self, About, Act, Arrival, Arrived, Change, Claim, Evidence, Match, Polling, Refusal, Reservation,
    Settlement, Windows,
};
use semel::{Actor, Expired, Origin, Policy, Stale, State};
use std::time::Duration;

/// What a decision would have written: a record, or its removal.
pub type Written = Result<Option<Kept>, Refusal>;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is answered by what is there.
    Replay(u8),
    /// It is refused as another request under the key.
    KeyReused,
    /// It is refused because nobody can say whether it is another one.
    CannotTell,
    /// It is refused for another reason.
    Refused,
    /// It says that the outcome is unknown.
    Doubt(Kept),
    /// It takes the operation.
    Take(Kept),
    /// It removes what is there, and reserves.
    Forgotten,
}

/// The rules.
#[derive(Debug)]
pub struct Rules {
    policy: Policy,
    polling: Polling,
    third: Third,
    /// The mistake in them.
    pub mutant: Option<Mutant>,
    /// What was ever decided.
    pub reached: Reached,
}

impl Rules {
    /// The rules of a configuration.
    #[must_use]
    pub fn new(config: &Config, mutant: Option<Mutant>) -> Self {
        Self {
            policy: config.policy.clone(),
            polling: Polling { attempts: config.polls, next: Duration::ZERO },
            third: config.third,
            mutant,
            reached: Reached::default(),
        }
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn windows(&self) -> Windows {
        Windows::from(&self.policy)
    }

    fn written(&self, decided: Result<Change, Refusal>) -> Written {
        match decided {
            Ok(Change::Remove) => Ok(None),
            Ok(Change::Put { next, .. }) => Ok(Some(sound(Kept::of(*next, false)))),
            Err(refusal) => {
                self.reached.note(Event::refused(refusal));
                Err(refusal)
            }
        }
    }

    /// What a store writes for a request that finds nothing.
    pub(crate) fn reserve(&self, op: u8, altered: bool, token: Token) -> Kept {
        let reservation = Reservation {
            key: kept::key(),
            operation_id: kept::operation_id(op),
            fingerprint: kept::fingerprint(altered),
            recipe: kept::RECIPE,
            owner: kept::owner(token),
        };
        sound(Kept::of(transition::reserve(reservation, &self.policy), true))
    }

    /// Whether the client in this place sends the altered body, or one of another operation.
    pub(crate) fn alters(&self, slot: usize) -> bool {
        slot == THIRD && self.third != Third::Stranger
    }

    /// How the request of this client compares with a record.
    pub(crate) fn matches(&self, kept: &Kept, slot: usize) -> Match {
        match self.third {
            Third::Stranger if slot == THIRD => Match::CannotTell,
            _ if kept.altered == self.alters(slot) => Match::Same,
            Third::OtherOperation => Match::OtherOperation,
            _ => Match::Different,
        }
    }

    /// A request finds a record.
    pub(crate) fn arrive(&self, found: &Kept, slot: usize) -> Verdict {
        let mut policy = self.policy.clone();
        let mut matches = self.matches(found, slot);
        match self.mutant {
            Some(Mutant::LeaseStolen) => policy.stale = Stale::Resume,
            Some(Mutant::TombstoneIgnored) => policy.expired = Expired::New,
            Some(Mutant::MismatchLate) if found.state == State::InProgress => matches = Match::Same,
            _ => {}
        }
        let arrival = Arrival { matches, owner: kept::owner(kept::NOBODY), policy: &policy };
        let arrived = transition::arrive(&found.whole(), &arrival, NOW);
        self.reached.note(Event::arrived(&arrived));
        let put = |change| match change {
            Change::Put { next, .. } => sound(Kept::of(*next, false)),
            Change::Remove => *found,
        };
        match arrived {
            Arrived::Replay => match found.reply {
                Reply::Stored(body) => Verdict::Replay(body),
                Reply::None | Reply::Dropped => Verdict::Refused,
            },
            Arrived::KeyReused => Verdict::KeyReused,
            Arrived::CannotTell => Verdict::CannotTell,
            Arrived::Expired | Arrived::InProgress { .. } | Arrived::NotStored | Arrived::Unknown => {
                Verdict::Refused
            }
            Arrived::Doubt(change) => Verdict::Doubt(put(change)),
            Arrived::Take(change) => Verdict::Take(put(change)),
            Arrived::Forgotten => Verdict::Forgotten,
        }
    }

    /// An owner acts.
    pub(crate) fn act(&self, found: &Kept, (op, attempt, token): (u8, u8, Token), deed: Deed) -> Written {
        let mut record = found.whole();
        let mut claim = Claim {
            operation_id: kept::operation_id(op),
            attempt: u32::from(attempt),
            owner: kept::owner(token),
        };
        match self.mutant {
            Some(Mutant::FenceIgnored) => claim = Claim::of(&record),
            Some(Mutant::DoubtReleased) if record.origin == Origin::Doubt => record.origin = Origin::First,
            Some(Mutant::PhaseRepeated) if deed == Deed::Advance => record.recovery_point = None,
            Some(Mutant::PointReleased) if deed == Deed::Release => record.recovery_point = None,
            _ => {}
        }
        let windows = self.windows();
        let lease = self.policy.lease;
        let act = match deed {
            Deed::Extend => Act::Extend { lease },
            Deed::Advance => Act::Advance { point: "point".into(), checkpoint: None, lease },
            Deed::Complete => {
                Act::Complete { response: Some(kept::response(deed.body(attempt))), resource: None, windows }
            }
            Deed::Fail => {
                Act::Fail { response: Some(kept::response(deed.body(attempt))), resource: None, windows }
            }
            Deed::Retryable => Act::Retryable { error: String::new(), windows },
            Deed::Release => Act::Release { windows },
            Deed::Doubt => Act::Doubt { error: String::new(), settling: self.policy.settling },
        };
        self.written(transition::act(&record, &claim, &act))
    }

    /// Evidence comes, and names this of what it is about.
    pub(crate) fn settle(&self, found: &Kept, proof: &Proof, names: Names) -> Written {
        let mut record = found.whole();
        if self.is(Mutant::AbsenceEarly) {
            record.times.lease = NOW;
        }
        let mut about = About { operation_id: kept::operation_id(proof.op), attempt: None };
        match names {
            Names::Attempt => about.attempt = Some(u32::from(proof.attempt)),
            Names::Operation => {}
            // A key is no operation: nothing is decided by it.
            Names::Key if !self.is(Mutant::KeyTakenForOperation) => return Err(Refusal::OtherOperation),
            Names::Key => about = About::of(&record),
        }
        let same = about.operation_id == record.operation_id;
        let defaulted = match self.mutant {
            Some(Mutant::EvidenceOfAnotherOperation) => true,
            Some(Mutant::EvidenceOfAnotherAttempt) => same,
            Some(Mutant::AttemptDefaulted) => same && about.attempt.is_none(),
            _ => false,
        };
        if defaulted {
            about = About::of(&record);
        }
        let reply = |body: Option<u8>| body.map(kept::response);
        let evidence = match proof.finding {
            Finding::Completed(body) => Evidence::Completed { response: reply(body), resource: None },
            Finding::Failed(body) => Evidence::Failed { response: reply(body), resource: None },
            Finding::NotExecuted => Evidence::NotExecuted,
            Finding::Absent => Evidence::Absent,
        };
        let unfenced = self.is(Mutant::SettlerUnfenced);
        let settlement = Settlement {
            settler: if unfenced { record.owner } else { kept::owner(kept::NOBODY) },
            actor: Actor::Reconciler,
            evidence,
            note: None,
            windows: self.windows(),
        };
        self.written(transition::settle(&record, &about, &settlement, NOW))
    }

    /// Evidence that settles nothing is kept in the history.
    pub(crate) fn remark(&self, found: &Kept) -> Written {
        self.written(Ok(transition::remark(&found.whole(), Actor::Reconciler, None)))
    }

    /// The reconciler takes it upon itself to ask.
    pub(crate) fn poll(&self, found: &Kept) -> Written {
        self.written(transition::poll(&found.whole(), &self.polling, NOW))
    }

    /// The lease watch comes by.
    pub(crate) fn watch(&self, found: &Kept) -> Written {
        self.written(transition::watch(&found.whole(), &self.policy, NOW))
    }

    /// The reaper comes by.
    pub(crate) fn reap(&self, found: &Kept) -> Written {
        if self.is(Mutant::DoubtReaped) && found.state == State::Unknown && found.lease_over {
            let next = Kept { state: State::Expired, window: Moment::Come, purge: Moment::Ahead, ..*found };
            return Ok(Some(Kept { reconcile: Moment::Never, dead_letter: false, ..next }));
        }
        self.written(transition::reap(&found.whole(), NOW))
    }
}

/// A draft that breaks the rules of every record is a bug that no path is needed for.
#[allow(clippy::panic, reason = "a checker that finds a malformed record has to stop, and say why")]
fn sound(kept: Result<Kept, &'static str>) -> Kept {
    kept.unwrap_or_else(|broken| panic!("the rules wrote a record that no store accepts: {broken}"))
}
