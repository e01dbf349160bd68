//! Records as the parameters of a statement.

use crate::statements::Statement;
use crate::text::stored;
use semel::columns::AnswerColumns;
use semel::{Draft, DueKind, Now, When};
use sqlx::encode::Encode;
use sqlx::postgres::{PgArguments, PgBindIterExt, PgHasArrayType};
use sqlx::query::Query;
use sqlx::{Postgres, Type};
use uuid::Uuid;

pub(crate) type PgQuery<'q> = Query<'q, Postgres, PgArguments>;

/// The moments of a record in the order of their bits in `relative`; the last one is what the record waits for. That one has two bits: where it counts
/// from the latest time it is the next one.
pub(crate) const MOMENTS: usize = 8;

/// A duration that ends within 285 000 years of the end of time ends there: the store's now can be added to all others without
/// running over.
const LONGEST: i64 = i64::MAX - (1 << 53);

/// Milliseconds, and whether they count from the statement's now.
pub(crate) fn moment(when: When) -> (i64, bool) {
    match when {
        When::At(moment) => (moment.as_millis(), false),
        When::In(duration) => match i64::try_from(duration.as_millis()) {
            Ok(millis) if millis <= LONGEST => (millis, true),
            _ => (i64::MAX, false),
        },
    }
}

fn moments(draft: &Draft) -> [Option<When>; MOMENTS] {
    let times = &draft.times;
    [
        Some(times.created),
        Some(times.lease),
        times.completed,
        times.body_expires,
        times.expires,
        times.purge,
        times.reconcile,
        draft.due().map(|(_, when)| when),
    ]
}

fn relative(draft: &Draft) -> i64 {
    let late = matches!(draft.due(), Some((DueKind::Window | DueKind::Purge, _)));
    let place = |at: usize| if at == MOMENTS - 1 && late { MOMENTS } else { at };
    let bit =
        |(at, when): (usize, &Option<When>)| i64::from(when.is_some_and(|when| moment(when).1)) << place(at);
    moments(draft).iter().enumerate().map(bit).sum()
}

/// How the items of a statement are bound: a lone one by its values, a batch by an array for each column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items {
    One,
    Many,
}

impl Items {
    pub(crate) fn of(count: usize) -> Self {
        if count == 1 { Self::One } else { Self::Many }
    }

    /// The statement in the form for them.
    pub(crate) fn sql(self, statement: &Statement) -> &'static str {
        match self {
            Self::One => statement.one,
            Self::Many => statement.many,
        }
    }

    /// Binds one column of the items.
    pub(crate) fn bind<'q, 't, I>(self, query: PgQuery<'q>, mut column: I) -> PgQuery<'q>
    where
        I: Iterator,
        I::Item: Encode<'t, Postgres> + Type<Postgres> + PgHasArrayType + 't,
    {
        match self {
            Self::One => query.bind(column.next()),
            Self::Many => query.bind(column.bind_iter()),
        }
    }
}

/// Binds the parameters 3 to 32 of a statement that writes these records.
pub(crate) fn bind_records<'q>(query: PgQuery<'q>, items: Items, drafts: &[&'q Draft]) -> PgQuery<'q> {
    let all = || drafts.iter().copied();
    let time = |at: usize| all().map(move |draft| moments(draft)[at].map(|when| moment(when).0));
    let answers: Vec<_> = all().map(|draft| draft.response.as_ref().map(AnswerColumns::of)).collect();
    let answers = || answers.iter().map(Option::as_ref);
    let resource = || all().map(|draft| draft.resource.as_ref());
    let text = |text: &'q Option<String>| text.as_deref().map(stored);
    let query = items.bind(query, all().map(|draft| draft.fingerprint.0.as_slice()));
    let query = items.bind(query, all().map(|draft| Uuid::from_bytes(draft.recipe.0)));
    let query = items.bind(query, all().map(|draft| draft.state.as_str()));
    let query = items.bind(query, all().map(|draft| stored_version(draft.version)));
    let query = items.bind(query, all().map(|draft| i64::from(draft.attempt)));
    let query = items.bind(query, all().map(|draft| Uuid::from(draft.owner)));
    let query = items.bind(query, all().map(|draft| draft.origin.as_str()));
    let query = (0..MOMENTS).fold(query, |query, at| items.bind(query, time(at)));
    let query = items.bind(query, all().map(|draft| draft.due().map(|(kind, _)| kind.as_str())));
    let query = items.bind(query, all().map(|draft| i64::from(draft.reconcile_attempts)));
    let query = items.bind(query, all().map(|draft| draft.dead_letter));
    let query = items.bind(query, all().map(|draft| text(&draft.last_error)));
    let query = items.bind(query, all().map(|draft| text(&draft.recovery_point)));
    let query = items.bind(query, all().map(|draft| draft.checkpoint.as_deref()));
    let query = items.bind(query, resource().map(|resource| resource.map(|resource| stored(&resource.kind))));
    let query = items.bind(query, resource().map(|resource| resource.map(|resource| stored(&resource.id))));
    let query = items.bind(query, answers().map(|answer| answer.map(|answer| i32::from(answer.status))));
    let query = items.bind(query, answers().map(|answer| answer.and_then(AnswerColumns::headers_apart)));
    let query =
        items.bind(query, answers().map(|answer| answer.and_then(|answer| answer.schema.map(stored))));
    let query = items.bind(query, answers().map(|answer| answer.map(|answer| answer.kind)));
    let query = items.bind(query, answers().map(|answer| answer.and_then(|answer| answer.body)));
    let query = items.bind(query, answers().map(|answer| answer.map(|answer| answer.sum)));
    items.bind(query, all().map(relative))
}

/// A version as PostgreSQL keeps it. One beyond what it can count to is never written, so that looking for it finds nothing.
pub(crate) fn stored_version(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// The draft with every moment fixed, as it would have been written at `now`.
pub(crate) fn fixed_at(mut draft: Draft, now: Now) -> Draft {
    draft.times = draft.times.at(now).map(When::At);
    draft
}
