//! What a listing is asked for. Whatever cannot be meant is refused with what can.

use super::problem::AdminProblem;
use semel::{Cursor, Filter, OperationId, State};

const LEAST: usize = 1;
const MOST: usize = 1_000;
const USUAL: usize = 100;

const PARAMETERS: [&str; 7] = ["state", "tenant", "operation", "key", "dead_letter", "limit", "cursor"];

/// Which records, from where, and how many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Listing {
    pub(super) filter: Filter,
    pub(super) from: Option<Cursor>,
    pub(super) limit: usize,
}

impl Listing {
    /// Reads the query of an address. A parameter without a value is as good as absent.
    pub(super) fn read(query: Option<&str>) -> Result<Self, AdminProblem> {
        let mut listing = Self { filter: Filter::default(), from: None, limit: USUAL };
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let Some(name) = PARAMETERS.into_iter().find(|known| *known == name) else {
                let known = PARAMETERS.join(", ");
                let detail = format!("There is no such parameter. These are there: {known}.");
                return Err(AdminProblem::parameter(&name, detail));
            };
            if seen.contains(&name) {
                let detail = "It is given more than once, and one value alone can be asked for.";
                return Err(AdminProblem::parameter(name, detail));
            }
            seen.push(name);
            if !value.is_empty() {
                listing.set(name, value.into_owned())?;
            }
        }
        Ok(listing)
    }

    fn set(&mut self, name: &'static str, value: String) -> Result<(), AdminProblem> {
        let filter = &mut self.filter;
        match name {
            "state" => filter.state = Some(state(&value)?),
            "tenant" => filter.tenant = Some(value),
            "operation" => filter.operation = Some(value),
            "key" => filter.key = Some(value),
            "dead_letter" => {
                let wanted =
                    value.parse().map_err(|_| AdminProblem::parameter(name, "It is true or false."))?;
                filter.dead_letter = Some(wanted);
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (LEAST..=MOST).contains(limit));
                let detail =
                    format!("It is a whole number from {LEAST} to {MOST}; without one it is {USUAL}.");
                self.limit = limit.ok_or_else(|| AdminProblem::parameter(name, detail))?;
            }
            _ => {
                let detail = "It is the next_cursor of the page before, unchanged.";
                self.from = Some(cursor(&value).ok_or_else(|| AdminProblem::parameter(name, detail))?);
            }
        }
        Ok(())
    }
}

fn state(name: &str) -> Result<State, AdminProblem> {
    State::from_name(name).ok_or_else(|| {
        let names = State::ALL.map(State::as_str).join(", ");
        AdminProblem::parameter("state", format!("It is one of {names}."))
    })
}

/// A place in a listing as text, for whoever asks for the next page.
pub(super) fn cursor_text(cursor: Cursor) -> String {
    format!("{:016x}", cursor.0)
}

fn cursor(text: &str) -> Option<Cursor> {
    let bits = u64::from_str_radix(text, 16).ok()?;
    (text.len() == 16).then_some(Cursor(bits.cast_signed()))
}

/// The operation id in a path.
pub(super) fn operation_id(text: &str) -> Result<OperationId, AdminProblem> {
    text.parse().map_err(|_| {
        let detail =
            "It is an operation id, such as 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4: see Semel-Operation-Id.";
        AdminProblem::parameter("id", detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_is_read() {
        let query =
            "state=unknown&tenant=a%20b&operation=POST+%2Fpayments&key=k%26k&dead_letter=true&limit=7";
        let listing = Listing::read(Some(query)).unwrap();
        let expected = Filter {
            state: Some(State::Unknown),
            tenant: Some("a b".into()),
            operation: Some("POST /payments".into()),
            key: Some("k&k".into()),
            dead_letter: Some(true),
        };
        assert_eq!(listing, Listing { filter: expected, from: None, limit: 7 });
    }

    #[test]
    fn nothing_asks_for_the_first_page_of_everything() {
        let all = Listing { filter: Filter::default(), from: None, limit: USUAL };
        for query in [None, Some(""), Some("state=&tenant=&operation=&key=&dead_letter=&limit=&cursor=")] {
            assert_eq!(Listing::read(query).unwrap(), all);
        }
    }

    #[test]
    fn a_place_survives_being_text() {
        for place in [0, 1, 1000, i64::MAX, -1, i64::MIN] {
            assert_eq!(cursor(&cursor_text(Cursor(place))), Some(Cursor(place)));
        }
        for text in ["", "1", "+00000000000003e8", "00000000000003eg", "00000000000003e80"] {
            assert_eq!(cursor(text), None, "{text}");
        }
    }
}
