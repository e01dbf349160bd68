//! A record in miniature: everything that a decision can depend on, and nothing else.
//!
//! The checker holds millions of states, so a record is kept in a few bytes and made whole again for each decision of the
//! production code. Moments are reduced to whether they have come; which of them comes when is up to the checker.

use bytes::Bytes;
use semel::{
    Body, Draft, Fingerprint, OperationId, Origin, Owner, RecipeId, Record, RecordKey, State, StoredResponse,
    Times, Timestamp,
};

/// A token of ownership: the task (by its place) that holds it, or [`NOBODY`].
pub type Token = u8;

/// The token of somebody who cannot claim it any more: a task that ended or crashed, or a settler.
///
/// Only equality with the token of a task that lives can ever matter, so all others may be one.
pub const NOBODY: Token = u8::MAX;

/// The moment at which every decision is taken; what is to come, comes later.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const LATER: Timestamp = Timestamp::from_millis(1_000_001);
/// The version that every record has in front of the production code. Real versions would only tell whether a record was
/// written since it was read, and that is what [`World`](crate::state::World) keeps of them.
const VERSION: u64 = 7;

/// A moment that a record waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moment {
    /// It never comes.
    Never,
    /// It is to come.
    Ahead,
    /// It has come.
    Come,
}

impl Moment {
    fn whole(self) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::Ahead => Some(LATER),
            Self::Come => Some(NOW),
        }
    }

    fn of(moment: Option<Timestamp>) -> Self {
        moment.map_or(Self::Never, |moment| if moment.has_come(NOW) { Self::Come } else { Self::Ahead })
    }
}

/// A stored answer: its body is one byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// None is kept.
    None,
    /// This is what retries get.
    Stored(u8),
    /// The body's retention is over.
    Dropped,
}

/// A record in miniature.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kept {
    /// Which operation under the key it is: the first, the second, …
    pub op: u8,
    /// Whether it was made for the altered body.
    pub altered: bool,
    /// Where it stands.
    pub state: State,
    /// The attempt under way, or the last.
    pub attempt: u8,
    /// Who owns it.
    pub owner: Token,
    /// What the attempt took over.
    pub origin: Origin,
    /// Whether a recovery point was committed.
    pub point: bool,
    /// The stored answer.
    pub reply: Reply,
    /// How often it was asked about.
    pub polls: u8,
    /// Whether it is a dead letter.
    pub dead_letter: bool,
    /// Whether the lease is over.
    pub lease_over: bool,
    /// When the body goes.
    pub body: Moment,
    /// When the window ends.
    pub window: Moment,
    /// When the tombstone goes.
    pub purge: Moment,
    /// When it is to be asked about.
    pub reconcile: Moment,
}

/// Every byte, to point at instead of allocating.
static BYTES: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut value = 0;
    while value < 256 {
        bytes[value] = value as u8;
        value += 1;
    }
    bytes
};

/// A response whose body is this byte.
pub(crate) fn response(body: u8) -> StoredResponse {
    let at = usize::from(body);
    StoredResponse {
        status: 201,
        headers: Vec::new(),
        body: Body::Stored(Bytes::from_static(&BYTES[at..=at])),
        schema_version: None,
    }
}

/// The id of an operation.
pub(crate) fn operation_id(op: u8) -> OperationId {
    OperationId::from_u128(u128::from(op))
}

/// The owner that a token stands for.
pub(crate) fn owner(token: Token) -> Owner {
    Owner::from_u128(u128::from(token))
}

/// The fingerprint of the body that all but one client send, or of the altered one.
pub(crate) fn fingerprint(altered: bool) -> Fingerprint {
    Fingerprint([u8::from(altered); 32])
}

/// The only recipe.
pub(crate) const RECIPE: RecipeId = RecipeId([0; 16]);

/// The only key.
pub(crate) fn key() -> RecordKey {
    RecordKey::new("", "", "")
}

impl Kept {
    /// The record that this stands for.
    #[must_use]
    pub fn whole(&self) -> Record {
        let reply = |body| StoredResponse { body, ..response(0) };
        Record {
            key: key(),
            operation_id: operation_id(self.op),
            fingerprint: fingerprint(self.altered),
            recipe: RECIPE,
            state: self.state,
            version: VERSION,
            attempt: u32::from(self.attempt),
            owner: owner(self.owner),
            origin: self.origin,
            recovery_point: self.point.then(|| "point".into()),
            checkpoint: None,
            response: match self.reply {
                Reply::None => None,
                Reply::Stored(body) => Some(response(body)),
                Reply::Dropped => Some(reply(Body::Dropped)),
            },
            resource: None,
            last_error: None,
            reconcile_attempts: u32::from(self.polls),
            dead_letter: self.dead_letter,
            times: Times {
                created: Timestamp::from_millis(0),
                lease: if self.lease_over { NOW } else { LATER },
                completed: matches!(self.state, State::Completed | State::FailedReplayable).then_some(NOW),
                body_expires: self.body.whole(),
                expires: self.window.whole(),
                purge: self.purge.whole(),
                reconcile: self.reconcile.whole(),
            },
        }
    }

    /// What a store keeps that writes `draft` over nothing (`first`), or over a record.
    ///
    /// # Errors
    /// What is wrong with the draft, whoever made it.
    pub(crate) fn of(draft: Draft, first: bool) -> Result<Self, &'static str> {
        let record = draft.at(NOW);
        record.check()?;
        if record.version != if first { 1 } else { VERSION + 1 } {
            return Err("the version does not rise by one");
        }
        let byte = |number: u32| u8::try_from(number).map_err(|_| "a number is out of bounds");
        let reply = match record.response.map(|kept| kept.body) {
            None => Reply::None,
            Some(Body::Stored(bytes)) => Reply::Stored(bytes.first().copied().ok_or("an empty body")?),
            Some(Body::Dropped) => Reply::Dropped,
            Some(_) => return Err("a body that was not there"),
        };
        Ok(Self {
            op: record.operation_id.as_bytes()[15],
            altered: record.fingerprint == fingerprint(true),
            state: record.state,
            attempt: byte(record.attempt)?,
            owner: record.owner.as_bytes()[15],
            origin: record.origin,
            point: record.recovery_point.is_some(),
            reply,
            polls: byte(record.reconcile_attempts)?,
            dead_letter: record.dead_letter,
            // In a final state the lease says nothing any more.
            lease_over: !record.state.is_final()
                && record.state != State::Expired
                && record.times.lease.has_come(NOW),
            body: Moment::of(record.times.body_expires),
            window: Moment::of(record.times.expires),
            purge: Moment::of(record.times.purge),
            reconcile: Moment::of(record.times.reconcile),
        })
    }
}
