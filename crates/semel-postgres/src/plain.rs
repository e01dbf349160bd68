//! What is plain: reservations and completions as nearly all of them are, which have statements of their own.
//!
//! Each field is named, so that one that is added to the record has to be thought of here.

use crate::draft::{Items, PgQuery, moment};
use crate::text::stored;
use semel::columns::AnswerColumns;
use semel::{Draft, Origin, State, StoredResponse, Swap, Times, When};
use std::time::Duration;
use uuid::Uuid;

/// The lease of a draft that is a plain reservation, in milliseconds: the one thing about it that is not the same in all of them, but
/// for who asks for what.
pub(crate) fn lease_of_reservation(draft: &Draft) -> Option<i64> {
    let Draft {
        key: _,
        operation_id: _,
        fingerprint: _,
        recipe: _,
        owner: _,
        state,
        version,
        attempt,
        origin,
        recovery_point,
        checkpoint,
        response,
        resource,
        last_error,
        reconcile_attempts,
        dead_letter,
        times,
    } = draft;
    let Times { created, lease, completed, body_expires, expires, purge, reconcile } = times;
    let plain = (*state, *version, *attempt, *origin) == (State::InProgress, 1, 1, Origin::First)
        && (*reconcile_attempts, *dead_letter, *created) == (0, false, When::In(Duration::ZERO))
        && recovery_point.is_none()
        && checkpoint.is_none()
        && response.is_none()
        && resource.is_none()
        && last_error.is_none()
        && [completed, body_expires, expires, purge, reconcile].iter().all(|when| when.is_none());
    in_millis(*lease).filter(|_| plain)
}

/// What differs between completions.
pub(crate) struct Completion<'q> {
    pub(crate) created: i64,
    pub(crate) lease: i64,
    pub(crate) body_expires: Option<i64>,
    pub(crate) expires: i64,
    pub(crate) purge: Option<i64>,
    pub(crate) response: &'q StoredResponse,
    pub(crate) draft: &'q Draft,
}

impl<'q> Completion<'q> {
    /// The swap, if it is a plain completion: with an answer, on the way that most operations go.
    pub(crate) fn of(swap: &'q Swap) -> Option<Self> {
        let draft = &*swap.next;
        let Draft {
            key: _,
            operation_id: _,
            fingerprint: _,
            recipe: _,
            owner: _,
            attempt: _,
            origin: _,
            resource: _,
            state,
            version,
            recovery_point,
            checkpoint,
            response,
            last_error,
            reconcile_attempts,
            dead_letter,
            times,
        } = draft;
        let Times { created, lease, completed, body_expires, expires, purge, reconcile } = times;
        let plain = (*state, Some(*version)) == (State::Completed, swap.expected.version.checked_add(1))
            && (*reconcile_attempts, *dead_letter, *completed) == (0, false, Some(When::In(Duration::ZERO)))
            && recovery_point.is_none()
            && checkpoint.is_none()
            && last_error.is_none()
            && reconcile.is_none()
            && swap.history.is_none()
            && i64::try_from(*version).is_ok();
        let response = response.as_ref().filter(|response| plain && response.schema_version.is_none())?;
        // Some(None): not set, which is plain too.
        let optional = |when: Option<When>| match when {
            None => Some(None),
            Some(when) => in_millis(when).map(Some),
        };
        Some(Self {
            created: at_millis(*created)?,
            lease: at_millis(*lease)?,
            body_expires: optional(*body_expires)?,
            expires: in_millis((*expires)?)?,
            purge: optional(*purge)?,
            response,
            draft,
        })
    }
}

/// Binds the parameters 6 to 22 of a statement that writes these completions.
pub(crate) fn bind_completions<'q>(
    query: PgQuery<'q>,
    items: Items,
    completions: &[Completion<'q>],
) -> PgQuery<'q> {
    let all = || completions.iter();
    let drafts = || all().map(|completion| completion.draft);
    let resource = || drafts().map(|draft| draft.resource.as_ref());
    let answers: Vec<_> = all().map(|completion| AnswerColumns::of(completion.response)).collect();
    let query = items.bind(query, drafts().map(|draft| draft.fingerprint.0.as_slice()));
    let query = items.bind(query, drafts().map(|draft| Uuid::from_bytes(draft.recipe.0)));
    let query = items.bind(query, drafts().map(|draft| i64::from(draft.attempt)));
    let query = items.bind(query, drafts().map(|draft| Uuid::from(draft.owner)));
    let query = items.bind(query, drafts().map(|draft| draft.origin.as_str()));
    let query = items.bind(query, all().map(|completion| completion.created));
    let query = items.bind(query, all().map(|completion| completion.lease));
    let query = items.bind(query, all().map(|completion| completion.body_expires));
    let query = items.bind(query, all().map(|completion| completion.expires));
    let query = items.bind(query, all().map(|completion| completion.purge));
    let query = items.bind(query, resource().map(|resource| resource.map(|resource| stored(&resource.kind))));
    let query = items.bind(query, resource().map(|resource| resource.map(|resource| stored(&resource.id))));
    let query = items.bind(query, answers.iter().map(|answer| i32::from(answer.status)));
    let query = items.bind(query, answers.iter().map(AnswerColumns::headers_apart));
    let query = items.bind(query, answers.iter().map(|answer| answer.kind));
    let query = items.bind(query, answers.iter().map(|answer| answer.body));
    items.bind(query, answers.iter().map(|answer| answer.sum))
}

fn in_millis(when: When) -> Option<i64> {
    let (millis, relative) = moment(when);
    relative.then_some(millis)
}

fn at_millis(when: When) -> Option<i64> {
    let (millis, relative) = moment(when);
    (!relative).then_some(millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use semel::transition::{Act, Change, Claim, Reservation, Windows, act, reserve};
    use semel::{Body, Fingerprint, OperationId, Owner, Policy, RecipeId, RecordKey, Timestamp};

    fn reservation() -> Draft {
        let asked = Reservation {
            key: RecordKey::new("tenant", "operation", "key"),
            operation_id: OperationId::random(),
            fingerprint: Fingerprint([7; 32]),
            recipe: RecipeId([9; 16]),
            owner: Owner::random(),
        };
        reserve(asked, &Policy::default())
    }

    fn completion() -> Swap {
        let record = reservation().at(Timestamp::from_millis(1_000));
        let response = StoredResponse {
            status: 201,
            headers: vec![],
            body: Body::Stored(Bytes::from_static(b"body")),
            schema_version: None,
        };
        let windows = Windows::from(&Policy::default());
        let complete = Act::Complete { response: Some(response), resource: None, windows };
        let Ok(Change::Put { next, history }) = act(&record, &Claim::of(&record), &complete) else {
            unreachable!("an owner can complete")
        };
        Swap { expected: record.expected(), next, history }
    }

    #[test]
    fn what_the_state_machine_makes_on_the_happy_path_is_plain() {
        assert_eq!(lease_of_reservation(&reservation()), Some(30_000));
        assert!(Completion::of(&completion()).is_some());
    }

    #[test]
    fn what_the_short_statements_do_not_write_is_not_plain() {
        let different: [fn(&mut Draft); 7] = [
            |draft| draft.attempt = 2,
            |draft| draft.origin = Origin::Retry,
            |draft| draft.last_error = Some("timeout".into()),
            |draft| draft.recovery_point = Some("sent".into()),
            |draft| draft.reconcile_attempts = 1,
            |draft| draft.times.lease = When::At(Timestamp::from_millis(1)),
            |draft| draft.times.lease = When::In(Duration::MAX),
        ];
        for change in different {
            let mut draft = reservation();
            change(&mut draft);
            assert_eq!(lease_of_reservation(&draft), None, "{draft:?}");
        }
        let different: [fn(&mut Swap); 7] = [
            |swap| swap.next.state = State::FailedReplayable,
            |swap| swap.next.version += 1,
            |swap| swap.next.recovery_point = Some("sent".into()),
            |swap| swap.next.response = None,
            |swap| swap.next.times.lease = When::In(Duration::ZERO),
            |swap| swap.next.times.purge = Some(When::In(Duration::MAX)),
            |swap| {
                if let Some(response) = &mut swap.next.response {
                    response.schema_version = Some("v2".into());
                }
            },
        ];
        for change in different {
            let mut swap = completion();
            change(&mut swap);
            assert!(Completion::of(&swap).is_none(), "{swap:?}");
        }
    }
}
