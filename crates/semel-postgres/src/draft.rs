//! A batch of records as arrays, one per column.

use crate::text::stored;
use semel::columns::{body_columns, headers_json};
use semel::{Draft, Timestamp, When};
use sqlx::Postgres;
use sqlx::postgres::{PgArguments, PgBindIterExt};
use sqlx::query::Query;
use uuid::Uuid;

pub(crate) type PgQuery<'q> = Query<'q, Postgres, PgArguments>;

/// The moments of a record in the order of their bits in `relative`; the last one is what the record waits for.
pub(crate) const MOMENTS: usize = 8;

/// A duration that ends within 285 000 years of the end of time ends there: the store's now can be added to all others without
/// running over.
const LONGEST: i64 = i64::MAX - (1 << 53);

/// Milliseconds, and whether they count from the statement's now.
fn moment(when: When) -> (i64, bool) {
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
    let bit = |(at, when): (usize, &Option<When>)| i64::from(when.is_some_and(|when| moment(when).1)) << at;
    moments(draft).iter().enumerate().map(bit).sum()
}

/// Binds the parameters 3 to 31 of a statement that writes these records.
pub(crate) fn bind_records<'q>(query: PgQuery<'q>, drafts: &[&'q Draft]) -> PgQuery<'q> {
    let all = || drafts.iter().copied();
    let time = |at: usize| all().map(move |draft| moments(draft)[at].map(|when| moment(when).0));
    let response = || all().map(|draft| draft.response.as_ref());
    let body = || response().map(|response| response.map(|response| body_columns(&response.body)));
    let resource = || all().map(|draft| draft.resource.as_ref());
    let text = |text: &'q Option<String>| text.as_deref().map(stored);
    query
        .bind(all().map(|draft| draft.fingerprint.0.as_slice()).bind_iter())
        .bind(all().map(|draft| Uuid::from_bytes(draft.recipe.0)).bind_iter())
        .bind(all().map(|draft| draft.state.as_str()).bind_iter())
        .bind(all().map(|draft| stored_version(draft.version)).bind_iter())
        .bind(all().map(|draft| i64::from(draft.attempt)).bind_iter())
        .bind(all().map(|draft| Uuid::from(draft.owner)).bind_iter())
        .bind(all().map(|draft| draft.origin.as_str()).bind_iter())
        .bind(time(0).bind_iter())
        .bind(time(1).bind_iter())
        .bind(time(2).bind_iter())
        .bind(time(3).bind_iter())
        .bind(time(4).bind_iter())
        .bind(time(5).bind_iter())
        .bind(time(6).bind_iter())
        .bind(time(7).bind_iter())
        .bind(all().map(|draft| draft.due().map(|(kind, _)| kind.as_str())).bind_iter())
        .bind(all().map(|draft| i64::from(draft.reconcile_attempts)).bind_iter())
        .bind(all().map(|draft| draft.dead_letter).bind_iter())
        .bind(all().map(|draft| text(&draft.last_error)).bind_iter())
        .bind(all().map(|draft| text(&draft.recovery_point)).bind_iter())
        .bind(all().map(|draft| draft.checkpoint.as_deref()).bind_iter())
        .bind(resource().map(|resource| resource.map(|resource| stored(&resource.kind))).bind_iter())
        .bind(resource().map(|resource| resource.map(|resource| stored(&resource.id))).bind_iter())
        .bind(response().map(|response| response.map(|response| i32::from(response.status))).bind_iter())
        .bind(response().map(|response| response.map(|response| headers_json(&response.headers))).bind_iter())
        .bind(
            response()
                .map(|response| response.and_then(|response| text(&response.schema_version)))
                .bind_iter(),
        )
        .bind(body().map(|body| body.map(|(kind, _)| kind)).bind_iter())
        .bind(body().map(|body| body.and_then(|(_, bytes)| bytes)).bind_iter())
        .bind(all().map(relative).bind_iter())
}

/// A version as PostgreSQL keeps it. One beyond what it can count to is never written, so that looking for it finds nothing.
pub(crate) fn stored_version(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// The draft with every moment fixed, as it would have been written at `now`.
pub(crate) fn fixed_at(mut draft: Draft, now: Timestamp) -> Draft {
    draft.times = draft.times.map(|when| When::At(when.at(now)));
    draft
}
