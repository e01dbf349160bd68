//! What a listing is asked for. Whatever cannot be meant is refused with what can.

use super::problem::AdminProblem;
use super::schemas::{LEAST, MOST};
use super::selection::Selection;
use crate::setting::duration;
use semel::{Cursor, OperationId, State, Timestamp};
use semel_events::outbox::EntryFilter;
use utoipa::IntoParams;
use uuid::Uuid;

pub(super) const USUAL: usize = 100;

const PARAMETERS: [&str; 13] = [
    "state",
    "tenant",
    "operation",
    "key",
    "dead_letter",
    "error",
    "resource",
    "older_than",
    "created_after",
    "created_before",
    "order",
    "limit",
    "cursor",
];

/// The parameters as they are described.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes a query; never constructed")]
pub(super) struct OfOperations {
    #[param(schema_with = super::schemas::state_asked_for, required = false)]
    state: String,
    /// The tenant.
    #[param(required = false)]
    tenant: String,
    /// The operation's name.
    #[param(required = false)]
    operation: String,
    /// The client's key.
    #[param(required = false)]
    key: String,
    /// Only dead letters, which need an operator; `false`: only others.
    #[param(schema_with = super::schemas::flag_asked_for, required = false)]
    dead_letter: bool,
    /// The last error, such as `timeout`.
    #[param(required = false)]
    error: String,
    /// The resource: a type, or a type and an id, such as `payment/pay_1`.
    #[param(required = false)]
    resource: String,
    /// Only created longer ago than this: `10m`, `24h`.
    #[param(schema_with = super::schemas::duration_asked_for, required = false)]
    older_than: String,
    /// Only created at this moment or later (RFC 3339).
    #[param(schema_with = super::schemas::moment_asked_for, required = false)]
    created_after: String,
    /// Only created before this moment (RFC 3339).
    #[param(schema_with = super::schemas::moment_asked_for, required = false)]
    created_before: String,
    /// `newest` or `oldest` first. Default `newest`.
    #[param(schema_with = super::schemas::order_asked_for, required = false)]
    order: String,
    /// The most items of the page. Default 100.
    #[param(schema_with = super::schemas::limit_asked_for, required = false)]
    limit: u16,
    /// The `next_cursor` of the previous page.
    #[param(required = false, pattern = "^([0-9a-fA-F]{16})?$")]
    cursor: String,
}

/// A page of records: filter, start and size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Listing {
    pub(super) selection: Selection,
    pub(super) from: Option<Cursor>,
    pub(super) limit: usize,
}

impl Listing {
    /// Reads the query of an address. A parameter without a value is as good as absent.
    pub(super) fn read(query: Option<&str>) -> Result<Self, AdminProblem> {
        let mut listing = Self { selection: Selection::default(), from: None, limit: USUAL };
        each_parameter(query, &PARAMETERS, |name, value| listing.set(name, value))?;
        Ok(listing)
    }

    fn set(&mut self, name: &'static str, value: String) -> Result<(), AdminProblem> {
        let filter = &mut self.selection.filter;
        match name {
            "state" => filter.state = Some(state(&value)?),
            "tenant" => filter.tenant = Some(value),
            "operation" => filter.operation = Some(value),
            "key" => filter.key = Some(value),
            "dead_letter" => filter.dead_letter = Some(flag(name, &value)?),
            "error" => self.selection.error = Some(value),
            "resource" => self.selection.resource = Some(value),
            "older_than" => {
                let age = duration(&value).map_err(|_| {
                    AdminProblem::parameter(name, "Must be a duration, such as 90s, 10m, 24h or 7d.")
                })?;
                self.selection.older_than = Some(age);
            }
            "created_after" => filter.created_from = Some(moment(name, &value)?),
            "created_before" => filter.created_until = Some(moment(name, &value)?),
            "order" => {
                filter.oldest_first = match value.as_str() {
                    "oldest" => true,
                    "newest" => false,
                    _ => return Err(AdminProblem::parameter(name, "Must be newest or oldest.")),
                }
            }
            "limit" => self.limit = limit(name, &value)?,
            _ => self.from = Some(cursor(&value).ok_or_else(|| AdminProblem::not_a_cursor(name))?),
        }
        Ok(())
    }
}

const OF_RESOLUTION: [&str; 1] = ["dry_run"];

/// The parameters as they are described.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes a query; never constructed")]
pub(super) struct OfResolution {
    /// Whether to show what would follow, and change nothing.
    #[param(schema_with = super::schemas::flag_asked_for, required = false)]
    dry_run: bool,
}

/// Whether nothing is to be changed.
pub(super) fn wants_dry_run(query: Option<&str>) -> Result<bool, AdminProblem> {
    let mut wanted = false;
    each_parameter(query, &OF_RESOLUTION, |name, value| {
        wanted = flag(name, &value)?;
        Ok(())
    })?;
    Ok(wanted)
}

const OF_ONE_OPERATION: [&str; 1] = ["full_key"];

/// The parameters as they are described.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes a query; never constructed")]
pub(super) struct OfOneOperation {
    /// Whether to show all of the client's key; without it, its first 8 characters.
    #[param(schema_with = super::schemas::flag_asked_for, required = false)]
    full_key: bool,
}

/// Whether all of the client's key is to be shown.
pub(super) fn wants_full_key(query: Option<&str>) -> Result<bool, AdminProblem> {
    let mut wanted = false;
    each_parameter(query, &OF_ONE_OPERATION, |name, value| {
        wanted = flag(name, &value)?;
        Ok(())
    })?;
    Ok(wanted)
}

/// A moment, as RFC 3339 writes it.
pub(super) fn moment(name: &str, value: &str) -> Result<Timestamp, AdminProblem> {
    let moment =
        value.parse::<jiff::Timestamp>().map(|moment| Timestamp::from_millis(moment.as_millisecond()));
    moment.map_err(|_| {
        let detail = "Must be a moment with a time zone, such as 2026-02-03T04:05:06Z.";
        AdminProblem::parameter(name, detail)
    })
}

/// Each parameter of an address that has a value, once. Strangers are refused.
pub(super) fn each_parameter<const COUNT: usize>(
    query: Option<&str>,
    known: &[&'static str; COUNT],
    mut set: impl FnMut(&'static str, String) -> Result<(), AdminProblem>,
) -> Result<(), AdminProblem> {
    let mut seen = Vec::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let Some(name) = known.iter().find(|known| **known == name) else {
            let known = known.join(", ");
            let detail = format!("No such parameter. Valid parameters: {known}.");
            return Err(AdminProblem::parameter(&name, detail));
        };
        if seen.contains(name) {
            let detail = "Given more than once; only one value is allowed.";
            return Err(AdminProblem::parameter(name, detail));
        }
        seen.push(*name);
        if !value.is_empty() {
            set(name, value.into_owned())?;
        }
    }
    Ok(())
}

fn flag(name: &str, value: &str) -> Result<bool, AdminProblem> {
    value.parse().map_err(|_| AdminProblem::parameter(name, "Must be true or false."))
}

pub(super) fn limit(name: &str, value: &str) -> Result<usize, AdminProblem> {
    let limit = value.parse().ok().filter(|limit| (LEAST..=MOST).contains(limit));
    let detail = format!("Must be a whole number from {LEAST} to {MOST}; the default is {USUAL}.");
    limit.ok_or_else(|| AdminProblem::parameter(name, detail))
}

const OF_EVENTS: [&str; 5] = ["dead_letter", "aggregate", "kind", "limit", "cursor"];

/// The parameters as they are described.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes a query; never constructed")]
pub(super) struct OfEvents {
    /// Whether their receiver refused them for good.
    #[param(schema_with = super::schemas::flag_asked_for, required = false)]
    dead_letter: bool,
    /// The aggregate, such as `payment/pay_1`.
    #[param(required = false)]
    aggregate: String,
    /// The kind of event, such as `PaymentCreated`.
    #[param(required = false)]
    kind: String,
    /// The most items of the page. Default 100.
    #[param(schema_with = super::schemas::limit_asked_for, required = false)]
    limit: u16,
    /// The `next_cursor` of the previous page.
    #[param(required = false, pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$")]
    cursor: String,
}

/// Which events of the outbox, from where, and how many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EventListing {
    pub(super) filter: EntryFilter,
    pub(super) before: Option<Uuid>,
    pub(super) limit: usize,
}

impl EventListing {
    /// Reads the query of an address, as [`Listing::read`].
    pub(super) fn read(query: Option<&str>) -> Result<Self, AdminProblem> {
        let mut listing = Self { filter: EntryFilter::default(), before: None, limit: USUAL };
        each_parameter(query, &OF_EVENTS, |name, value| {
            match name {
                "dead_letter" => listing.filter.dead_letter = Some(flag(name, &value)?),
                "aggregate" => listing.filter.aggregate = Some(value),
                "kind" => listing.filter.kind = Some(value),
                "limit" => listing.limit = limit(name, &value)?,
                _ => listing.before = Some(value.parse().map_err(|_| AdminProblem::not_a_cursor(name))?),
            }
            Ok(())
        })?;
        Ok(listing)
    }
}

/// The event id in a path.
pub(super) fn event_id(text: &str) -> Result<Uuid, AdminProblem> {
    text.parse().map_err(|_| {
        let detail = "Must be an event id, such as 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4: the message id that receivers \
                      see.";
        AdminProblem::parameter("id", detail)
    })
}

fn state(name: &str) -> Result<State, AdminProblem> {
    State::from_name(name).ok_or_else(|| {
        let names = State::ALL.map(State::as_str).join(", ");
        AdminProblem::parameter("state", format!("Must be one of {names}."))
    })
}

/// What may be a cursor. Whether it is one, only the store can tell.
fn cursor(text: &str) -> Option<Cursor> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let may_be = (1..=Cursor::LONGEST).contains(&text.len()) && text.bytes().all(is_plain);
    may_be.then(|| Cursor::new(text))
}

/// The operation id in a path.
pub(super) fn operation_id(text: &str) -> Result<OperationId, AdminProblem> {
    text.parse().map_err(|_| {
        let detail =
            "Must be an operation id, such as 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4: see Semel-Operation-Id.";
        AdminProblem::parameter("id", detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::Filter;
    use std::time::Duration;

    #[test]
    fn every_filter_is_read() {
        let query = "state=unknown&tenant=a%20b&operation=POST+%2Fpayments&key=k%26k&dead_letter=true&error=timeout&resource=payment%2F1&older_than=10m&created_after=2026-02-03T04:05:06Z&created_before=2026-02-04T00:00:00Z&order=oldest&limit=7";
        let listing = Listing::read(Some(query)).unwrap();
        let filter = Filter {
            state: Some(State::Unknown),
            tenant: Some("a b".into()),
            operation: Some("POST /payments".into()),
            key: Some("k&k".into()),
            dead_letter: Some(true),
            created_from: Some(Timestamp::from_millis(1_770_091_506_000)),
            created_until: Some(Timestamp::from_millis(1_770_163_200_000)),
            oldest_first: true,
        };
        let selection = Selection {
            filter,
            error: Some("timeout".into()),
            resource: Some("payment/1".into()),
            older_than: Some(Duration::from_secs(600)),
        };
        assert_eq!(listing, Listing { selection, from: None, limit: 7 });
    }

    #[test]
    fn nothing_asks_for_the_first_page_of_everything() {
        let all = Listing { selection: Selection::default(), from: None, limit: USUAL };
        for query in [
            None,
            Some(""),
            Some("state=&tenant=&operation=&key=&dead_letter=&error=&resource=&limit=&cursor="),
            Some("older_than=&created_after=&created_before=&order=newest"),
        ] {
            assert_eq!(Listing::read(query).unwrap(), all);
        }
    }

    #[test]
    fn all_of_a_key_is_shown_to_whoever_asks_for_it() {
        for (query, wanted) in [(None, false), (Some("full_key="), false), (Some("full_key=true"), true)] {
            assert_eq!(wants_full_key(query).unwrap(), wanted, "{query:?}");
        }
        assert!(wants_full_key(Some("full_key=1")).is_err() && wants_full_key(Some("key=true")).is_err());
    }

    #[test]
    fn events_are_asked_for_by_what_they_have() {
        let id = "0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4";
        let query =
            format!("dead_letter=true&aggregate=payment%2Fpay_1&kind=PaymentCreated&limit=7&cursor={id}");
        let listing = EventListing::read(Some(&query)).unwrap();
        let filter = EntryFilter {
            dead_letter: Some(true),
            aggregate: Some("payment/pay_1".into()),
            kind: Some("PaymentCreated".into()),
        };
        assert_eq!(listing, EventListing { filter, before: Some(id.parse().unwrap()), limit: 7 });
        for query in ["state=unknown", "dead_letter=yes", "limit=0", "cursor=%2F", "kind=a&kind=b"] {
            assert!(EventListing::read(Some(query)).is_err(), "{query}");
        }
    }

    #[test]
    fn what_is_read_is_what_is_described() {
        fn names<T: IntoParams>() -> Vec<String> {
            T::into_params(|| None).into_iter().map(|parameter| parameter.name).collect()
        }
        assert_eq!(names::<OfOperations>(), PARAMETERS);
        assert_eq!(names::<OfOneOperation>(), OF_ONE_OPERATION);
        assert_eq!(names::<OfEvents>(), OF_EVENTS);
        assert_eq!(names::<OfResolution>(), OF_RESOLUTION);
    }

    #[test]
    fn a_cursor_is_short_and_plain() {
        let longest = "a".repeat(Cursor::LONGEST);
        for text in ["00000000000003e8", "AZ-az_09", &longest] {
            assert_eq!(cursor(text), Some(Cursor::new(text)));
        }
        for text in ["", "a b", "a/b", "é", &format!("{longest}a")] {
            assert_eq!(cursor(text), None, "{text}");
        }
    }
}
