//! One reading of a file: what was found to be wrong, what must not be shown, and which settings are known.

use super::error::{ConfigError, ConfigErrors, Location};
use super::nearest::nearest;
use crate::secret::Environment;
use crate::setting::InvalidValue;
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use toml::de::DeTable;

/// A part of a file that holds settings, as messages call it.
pub(super) const TOP: &str = "the top of the file";

/// Whether what the file names elsewhere (variables, keys, certificates) has to be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Secrets {
    /// As for a start.
    Needed,
    /// For a check on a machine that has none of them.
    MadeUp,
}

/// Gathers everything that is wrong, so that all of it can be told at once.
pub(super) struct Reading<'i> {
    pub(super) text: &'i str,
    pub(super) environment: Environment<'i>,
    pub(super) secrets: Secrets,
    faults: RefCell<Vec<Fault>>,
    hidden: RefCell<Vec<Range<usize>>>,
    known: RefCell<Vec<(&'static str, &'static str)>>,
    unknown: RefCell<Vec<Unknown>>,
}

/// Something wrong at a place, and another place that it is about.
#[derive(PartialEq, Eq)]
struct Fault {
    at: Option<Range<usize>>,
    other: Option<Range<usize>>,
    wrong: InvalidValue,
}

/// A setting that no code asked for.
struct Unknown {
    section: &'static str,
    name: String,
    at: Range<usize>,
    value_at: Range<usize>,
}

/// The settings whose values may hold what must not be shown.
const SENSITIVE: [&str; 9] =
    ["token", "secret", "secrets", "keys", "store", "upstream", "poll", "sink", "url"];

impl<'i> Reading<'i> {
    pub(super) fn new(text: &'i str, environment: Environment<'i>, secrets: Secrets) -> Self {
        Self {
            text,
            environment,
            secrets,
            faults: RefCell::default(),
            hidden: RefCell::default(),
            known: RefCell::default(),
            unknown: RefCell::default(),
        }
    }

    /// Parses the file as TOML. Where that fails, all syntax errors are noted, and nothing is guessed about the settings.
    pub(super) fn parse(&self) -> Option<DeTable<'i>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        if errors.is_empty() {
            return Some(table.into_inner());
        }
        let mut errors: Vec<_> =
            errors.into_iter().map(|error| (self.whole(error.span()), error.message().to_owned())).collect();
        errors.sort_by_key(|(at, _)| at.start);
        let mut last_line = 0;
        for (at, message) in errors {
            // What follows a mistake on the same line is mostly its consequence.
            let line = self.line_of(at.start);
            if line == last_line {
                continue;
            }
            last_line = line;
            let hidden = self.hide_values_at(at.start);
            let found = if hidden { None } else { self.text.get(at.clone()) };
            self.fault(Some(at.clone()), not_toml(&message, found, self.is_in_plain_value(at.start)));
            // And what follows a bracket or a quote that does not close, on every line.
            if message.starts_with("unclosed") || message.contains("string,") {
                break;
            }
        }
        None
    }

    /// Notes what is wrong, once: a setting of `[defaults]` is read for each route.
    pub(super) fn fault(&self, at: Option<Range<usize>>, wrong: InvalidValue) {
        self.note(Fault { at, other: None, wrong });
    }

    /// Notes what is wrong between two places.
    pub(super) fn fault_between(&self, at: Range<usize>, other: Range<usize>, wrong: InvalidValue) {
        self.note(Fault { at: Some(at), other: Some(other), wrong });
    }

    fn note(&self, fault: Fault) {
        let mut faults = self.faults.borrow_mut();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    /// Keeps a part of the file out of all messages.
    pub(super) fn hide(&self, span: Range<usize>) {
        self.hidden.borrow_mut().push(span);
    }

    /// The file without what must not be shown, and without comments, in which anything may stand.
    pub(super) fn shown(&self) -> String {
        let mut hidden = self.hidden.borrow().clone();
        hidden.sort_by_key(|span| span.start);
        let (mut text, mut from) = (String::with_capacity(self.text.len()), 0);
        for span in hidden {
            let (Some(before), true) = (self.text.get(from..span.start), span.end >= from) else { continue };
            text.push_str(before);
            text.push_str("\"(hidden)\"");
            from = span.end;
        }
        text.push_str(self.text.get(from..).unwrap_or_default());
        without_comments(&text)
    }

    pub(super) fn know(&self, section: &'static str, name: &'static str) {
        self.known.borrow_mut().push((section, name));
    }

    pub(super) fn unknown(
        &self,
        section: &'static str,
        name: &str,
        at: Range<usize>,
        value_at: Range<usize>,
    ) {
        self.unknown.borrow_mut().push(Unknown { section, name: name.to_owned(), at, value_at });
    }

    /// The line of a place in the file.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.text[..self.text.floor_char_boundary(at)].matches('\n').count() + 1
    }

    /// What is wrong, if anything is.
    pub(super) fn end(self, file: &Path) -> Result<(), ConfigErrors> {
        for unknown in self.unknown.take() {
            let wrong = self.about_unknown(&unknown);
            self.fault(Some(unknown.at), wrong);
        }
        let hidden = self.hidden.into_inner();
        let errors: Vec<_> = self
            .faults
            .into_inner()
            .into_iter()
            .map(|Fault { at, other, wrong }| {
                let place = |at: Option<Range<usize>>| at.map(|at| Location::find(self.text, &at, &hidden));
                ConfigError { place: place(at), other: place(other), wrong }
            })
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors::new(file, errors)) }
    }

    /// The error for an unknown setting. Its value is redacted, unless the name resembles a setting that is no secret.
    fn about_unknown(&self, Unknown { section, name, at, value_at }: &Unknown) -> InvalidValue {
        let known = self.known.borrow();
        let problem = match *section {
            TOP => format!("`{name}` is not a setting"),
            section => format!("`{name}` is not a setting of {section}"),
        };
        let mut here: Vec<_> =
            known.iter().filter(|(of, _)| of == section).map(|(_, setting)| *setting).collect();
        here.dedup();
        // A setting of another section, spelt right, is in the wrong place: in TOML, whatever follows `[admin]` is of `[admin]`.
        let elsewhere = known.iter().find(|(_, setting)| setting == name).copied();
        let (meant, cure) = match (elsewhere, nearest(name, here.iter().copied())) {
            (Some((TOP, meant)), _) => {
                (Some(meant), format!("move `{meant}` to the top of the file, above the first section"))
            }
            (Some((elsewhere, meant)), _) => {
                (Some(meant), format!("`{meant}` is a setting of {elsewhere}: move it there"))
            }
            (None, Some(meant)) => (Some(meant), format!("did you mean `{meant}`?")),
            (None, None) => (None, format!("settings here: {}", here.join(", "))),
        };
        let is_heading = value_at.contains(&at.start);
        let sensitive =
            |meant| SENSITIVE.contains(&meant) || meant == "key" || self.is_in_encryption(at.start);
        if !is_heading && meant.is_none_or(sensitive) {
            self.hide(value_at.clone());
        }
        InvalidValue::new(problem, cure)
    }

    /// The parser counts bytes; a place has whole characters.
    fn whole(&self, span: Option<Range<usize>>) -> Range<usize> {
        let Range { start, end } = span.unwrap_or(0..0);
        self.text.floor_char_boundary(start)..self.text.ceil_char_boundary(end)
    }

    /// Whether a place is within a value that has no quotes, such as an address that should have some.
    fn is_in_plain_value(&self, at: usize) -> bool {
        let line_start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let value =
            self.text[line_start..].split_once('=').map(|(name, value)| (line_start + name.len(), value));
        value.is_some_and(|(equals, value)| {
            equals < at && value.trim_start().starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    }

    /// Whether a place is in the section of the keys: nothing there may be seen that could be one.
    fn is_in_encryption(&self, at: usize) -> bool {
        let mut headings = self.text[..at].lines().rev().map(str::trim).filter(|line| line.starts_with('['));
        headings
            .next()
            .is_some_and(|heading| heading.trim_start_matches('[').trim_start().starts_with("encryption"))
    }

    /// Redacts what may be a secret in a line of broken TOML, and returns whether that includes the place itself. Where a string ends
    /// is unknown there, so everything from the first quote on is redacted, and all of a value that is named like a secret.
    fn hide_values_at(&self, at: usize) -> bool {
        let line_start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline);
        let line = &self.text[line_start..line_end];
        let name = line.split(['=', '"', '\'']).find(|part| !part.trim().is_empty()).unwrap_or_default();
        let from = match nearest(name.trim(), SENSITIVE) {
            None if self.is_in_encryption(at) => line.find('=').map(|equals| equals + 1),
            Some(_) => line.find(name).map(|before| before + name.len()),
            None => line.find(['"', '\'']),
        };
        let Some(from) = from.map(|from| line_start + from) else { return false };
        self.hide(from..line_end);
        at >= from
    }
}

/// TOML without comments, and without the lines that were nothing else.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut quote = None;
    for line in text.lines() {
        let (mut end, mut is_escaped) = (line.len(), false);
        for (at, next) in line.char_indices() {
            match (quote, next) {
                _ if is_escaped => is_escaped = false,
                (Some('"'), '\\') => is_escaped = true,
                (Some(open), next) if open == next => quote = None,
                (None, '"' | '\'') => quote = Some(next),
                (None, '#') => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let line = line[..end].trim_end();
        if !line.is_empty() {
            // A section stands apart.
            if line.starts_with('[') && !kept.is_empty() {
                kept.push('\n');
            }
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn not_toml(message: &str, found: Option<&str>, plain_value: bool) -> InvalidValue {
    let (problem, expected) = match message.split_once(", expected ") {
        Some((problem, expected)) => (problem, Some(expected)),
        None => (message, None),
    };
    let cure = match (problem, found, expected) {
        ("duplicate key", ..) => {
            "it appears twice: keep one (every route starts with its own `[[route]]`)".into()
        }
        ("string values must be quoted", Some(found), _) => format!("put it in quotes: \"{}\"", found.trim()),
        _ if plain_value => "if it is meant as text, put all of it in quotes".into(),
        (_, _, None | Some("nothing")) => "remove it".into(),
        (_, _, Some(expected)) => format!("expected here: {expected}"),
    };
    InvalidValue::new(format!("this is not TOML: {problem}"), cure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_shown_without_secrets_and_comments() {
        let text = "# token was \"old\"\nupstream = \"http://a#b\" # c\n[admin]\ntoken = \"s3cret\"\nbody = 'it''s # no comment'\n";
        let reading = Reading::new(text, &|_| Err(std::env::VarError::NotPresent), Secrets::Needed);
        let at = text.find("\"s3cret\"").unwrap();
        reading.hide(at..at + 8);
        assert_eq!(
            reading.shown(),
            "upstream = \"http://a#b\"\n\n[admin]\ntoken = \"(hidden)\"\nbody = 'it''s # no comment'\n"
        );
    }
}
